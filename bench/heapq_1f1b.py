# Peer of sim_event_p64_m512: the same 1F1B run as a heapq loop, latency links. Prints events
# (computes and transfers) per second of CPU time, best of three.
import heapq
import time

P, M, F, B, C = 64, 512, 11325, 19417, 378


def orders():
    for s in range(P):
        warm = min(P - 1 - s, M)
        ops = [(0, i) for i in range(warm)]
        for i in range(M - warm):
            ops += [(0, warm + i), (1, i)]
        yield ops + [(1, i) for i in range(M - warm, M)]


def simulate():
    order = list(orders())
    at, free = [0] * P, [True] * P
    ready = [[set(), set()] for _ in range(P)]
    ready[0][0] = set(range(M))
    heap, seq, events, now = [], 0, 0, 0

    def start(s):
        nonlocal seq
        if free[s] and at[s] < len(order[s]):
            kind, i = order[s][at[s]]
            if i in ready[s][kind]:
                free[s] = False
                at[s] += 1
                seq += 1
                heapq.heappush(heap, (now + (B if kind else F), seq, s, kind, i, True))

    start(0)
    while heap:
        now, _, s, kind, i, compute = heapq.heappop(heap)
        events += 1
        if compute:
            free[s] = True
            if kind == 0 and s == P - 1:
                ready[s][1].add(i)
            to = s - 1 if kind else s + 1
            if 0 <= to < P:
                seq += 1
                heapq.heappush(heap, (now + C, seq, to, kind, i, False))
        else:
            ready[s][kind].add(i)
        start(s)
    return now, events


best = 0
for _ in range(3):
    begin = time.process_time()
    end, count = simulate()
    best = max(best, count / (time.process_time() - begin))
assert end == 18104546, end
print(best)
