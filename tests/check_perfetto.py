"""check_perfetto.py TRACE.json TIMELINE.csv MESSAGES.csv DEVICES.csv: is the JSON strict, does
it hold every op and message once, do slices of a thread neither overlap nor vanish in a viewer's
rounding, does every flow start in the op that sends and end in the op that receives, are the
activations those of the simulator? Prints the first complaint, exit status 1."""
import csv
import json
import math
import sys
from collections import Counter, defaultdict
from decimal import Decimal


def need(condition, *what):
    if not condition:
        print(*what)
        sys.exit(1)


def unique(pairs):
    need(len(dict(pairs)) == len(pairs), "a key twice in", pairs)
    return dict(pairs)


def rows(path):
    with open(path) as f:
        return [{k.split(" ")[0]: v for k, v in row.items()} for row in csv.DictReader(f)]


def ns(number):
    exact = Decimal(number) * 1000
    need(exact == int(exact) >= 0, number, "us are no whole ns")
    return int(exact)


def check_serial(slices, begin, end, what):
    """No slice starts before the one before it ended."""
    last = 0
    for s in sorted(slices, key=lambda s: (begin(s), end(s))):
        need(begin(s) >= last, what, s, "starts before", last)
        last = max(last, end(s))


with open(sys.argv[1]) as f:
    trace = json.load(f, object_pairs_hook=unique, parse_float=Decimal, parse_constant=lambda c:
                      need(False, "not JSON:", c))
timeline, messages, devices = map(rows, sys.argv[2:5])
need(trace["displayTimeUnit"] == "ms", "displayTimeUnit")
events = defaultdict(list)
for e in trace["traceEvents"]:
    events[e["ph"]].append(e)
need(set(events) <= set("MXstfC"), "phases", set(events))

names = {(e["pid"], e.get("tid")): e["args"]["name"] for e in events["M"]
         if e["name"] in ("process_name", "thread_name")}
threads = defaultdict(list)
for e in events["X"]:
    e["from"], e["to"] = ns(e["ts"]), ns(e["ts"]) + ns(e["dur"])
    threads[e["pid"], e["tid"]].append(e)
for key, slices in threads.items():
    need(key in names, "no name for thread", key)
    need(names[key[0], None] == "device %d" % key[0], "name of process", key)
    check_serial(slices, lambda s: s["from"], lambda s: s["to"], key)
    for to_ns in (lambda us: math.floor(float(us) * 1000 + 0.5), ):  # Perfetto's reader
        check_serial(slices, lambda s: to_ns(s["ts"]),
                     lambda s: to_ns(s["ts"]) + to_ns(s["dur"]), key)

about = trace["otherData"]
chunks = about["P"] * about["v"] if "v" in about else 0


def instance(e):
    return e["args"].get("replica", 0) * chunks + e["args"]["chunk"]


ops = [e for e in events["X"] if e["cat"] != "transfer"]
flights = [e for e in events["X"] if e["cat"] == "transfer"]
need(Counter((e["cat"], e["pid"], instance(e), e["args"].get("micro", e["args"]["update"]),
              e["from"], e["to"]) for e in ops) ==
     Counter((r["kind"], int(r["device"]), int(r["chunk"]), int(r["micro"]),
              int(r["start"]) // 1000, int(r["end"]) // 1000) for r in timeline),
     "ops differ from the timeline")
for e in ops:
    need(e["name"].split(" ")[0] == e["cat"] + str(e["args"].get("micro", e["args"]["update"])),
         "name", e)
    if "tau" in e["args"]:
        need(e["args"]["tau"] == e["args"]["update"] - e["args"]["forward version"], "tau", e)
need(Counter((e["name"], e["pid"], e["from"], e["to"]) for e in flights) ==
     Counter(("%(kind)s%(micro)s to %(dst)s" % r, int(r["src"]), int(r["sent"]) // 1000,
              int(r["arrived"]) // 1000) for r in messages if r["sent"] != r["arrived"]),
     "flights differ from the messages")

flows = defaultdict(dict)
for phase in "stf":
    for e in events[phase]:
        need(phase not in flows[e["id"]], "flow", e["id"], "has two", phase)
        flows[e["id"]][phase] = e
need(len(flows) + trace["otherData"]["transfers without flow"] == len(messages), "flows")
at = defaultdict(list)  # slices by thread and place, for the binding
for e in events["X"]:
    at[e["pid"], e["tid"]].append(e)


def bound(e):
    """Slice that a flow event binds to: the one around its time, the last to start."""
    around = [s for s in at[e["pid"], e["tid"]]
              if s["from"] <= ns(e["ts"]) and (ns(e["ts"]) < s["to"] or s["from"] == ns(e["ts"]))]
    need(around, "flow event outside of slices", e)
    return max(around, key=lambda s: (s["from"], s["to"]))


for number, flow in flows.items():
    need("s" in flow and "f" in flow, "flow", number, "has no start or no end")
    r = messages[number - 1]
    need(flow["s"]["pid"] == int(r["src"]) and flow["f"]["pid"] == int(r["dst"]), "flow", flow, r)
    need(flow["f"]["bp"] == "e", "flow binds to the next slice", flow)
    sender, receiver = bound(flow["s"]), bound(flow["f"])
    kinds = ("F", ) if r["kind"] == "F" else ("B", "BW")
    for s in (sender, receiver):
        need(s["cat"] in kinds and s["args"]["micro"] == int(r["micro"]), "flow", r, "binds to", s)
    need(instance(sender) == int(r["chunk"]), "flow", r, "starts in", sender)
    need(instance(receiver) - instance(sender) == (1 if r["kind"] == "F" else -1),
         "flow between chunks", sender, receiver)
    need(sender["to"] - ns(flow["s"]["ts"]) <= 1, "flow starts before the end of", sender)
    need(ns(flow["f"]["ts"]) == receiver["from"], "flow does not end at the start of", receiver)
    need(sender["to"] <= int(r["sent"]) // 1000 <= int(r["arrived"]) // 1000 <= receiver["from"],
         "message", r, "before its op or after its receiver")
    need(("t" in flow) == (r["sent"] != r["arrived"]), "flow", number, "and its flight")
    if "t" in flow:
        need(bound(flow["t"])["cat"] == "transfer", "flow", number, "misses its flight")

held = defaultdict(list)
for e in events["C"]:
    if e["name"] == "activations":
        held[e["pid"]].append((ns(e["ts"]), e["args"]["in flight"]))
for device, values in held.items():
    times = [t for t, v in values]
    need(times == sorted(set(times)), "counter of device", device, "out of order")
    need(min(v for t, v in values) >= 0 and values[-1][1] == 0, "activations", device)
peak = [max(v for t, v in held[d]) for d in sorted(held)]
if devices:
    need(peak == [int(r["peak_activations"]) for r in devices], "peaks", peak)
