/* Peer of sim_event_p64_m512: the same 1F1B run in SimGrid (S4U): an actor a stage, a
 * mailbox per stage and direction with its permanent receiver, so that a transfer starts
 * when it is sent, detached sends, network model CM02 without TCP window or cross
 * traffic. Prints computes plus transfers per second of CPU time (best of three runs,
 * each in a process of its own) and the makespan in our ticks.
 * Built by `make bench` where pkg-config knows simgrid. */
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

#include <simgrid/s4u.hpp>

namespace sg4 = simgrid::s4u;

static const int P = 64, M = 512;
static const double F = 11325, B = 19417, C = 378; /* ticks as seconds */

static int token;

static void stage(int s, std::vector<sg4::Mailbox *> down, std::vector<sg4::Mailbox *> up)
{
    down[s]->set_receiver(sg4::Actor::self());
    up[s]->set_receiver(sg4::Actor::self());
    auto forward = [&] {
        if (s > 0) down[s]->get<int>();
        sg4::this_actor::execute(F);
        if (s + 1 < P) down[s + 1]->put_init(&token, 1)->detach();
    };
    auto backward = [&] {
        if (s + 1 < P) up[s]->get<int>();
        sg4::this_actor::execute(B);
        if (s > 0) up[s - 1]->put_init(&token, 1)->detach();
    };
    int warm = P - 1 - s < M ? P - 1 - s : M;
    for (int i = 0; i < warm; i++) forward();
    for (int i = 0; i < M; i++) {
        if (i + warm < M) forward();
        backward();
    }
}

static void simulate(int *argc, char **argv, double *seconds, double *makespan)
{
    sg4::Engine engine(argc, argv);
    sg4::Engine::set_config("network/model:CM02");
    sg4::Engine::set_config("network/TCP-gamma:0");
    sg4::Engine::set_config("network/crosstraffic:0");
    sg4::NetZone *zone = sg4::create_full_zone("pipeline");
    std::vector<sg4::Host *> host;
    std::vector<sg4::Mailbox *> down, up;
    for (int s = 0; s < P; s++) {
        std::string name = std::to_string(s);
        host.push_back(zone->create_host("stage" + name, 1.0));
        down.push_back(sg4::Mailbox::by_name("down" + name));
        up.push_back(sg4::Mailbox::by_name("up" + name));
    }
    for (int s = 0; s + 1 < P; s++) {
        sg4::Link *link = zone->create_link("link" + std::to_string(s), 1e15);
        link->set_latency(C)->seal();
        zone->add_route(host[s]->get_netpoint(), host[s + 1]->get_netpoint(), nullptr,
                        nullptr, {sg4::LinkInRoute(link)}, true);
    }
    zone->seal();
    for (int s = 0; s < P; s++)
        sg4::Actor::create("stage", host[s], stage, s, down, up);
    clock_t begin = clock();
    engine.run();
    *seconds = double(clock() - begin) / CLOCKS_PER_SEC;
    *makespan = sg4::Engine::get_clock();
}

int main(int argc, char **argv)
{
    double best = 0, makespan = 0;
    for (int k = 0; k < 3; k++) {
        int ends[2], status;
        double result[2] = {0, 0};
        if (pipe(ends)) return 1;
        pid_t child = fork();
        if (child == 0) {
            simulate(&argc, argv, &result[0], &result[1]);
            return write(ends[1], result, sizeof result) != sizeof result;
        }
        if (child < 0 || waitpid(child, &status, 0) < 0 || status) return 1;
        if (read(ends[0], result, sizeof result) != sizeof result) return 1;
        double rate = (2.0 * P * M + 2.0 * (P - 1) * M) / result[0];
        if (rate > best) best = rate;
        makespan = result[1];
    }
    std::printf("%.6g %.9g\n", best, makespan);
    return 0;
}
