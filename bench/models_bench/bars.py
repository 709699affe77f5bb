"""What the figures must show: each bar is (what, figure, limit, passed)."""

import math

# The network without convolutions or attention has a bar of its own.
APART = "mlp"


def geometric_mean(values):
    return math.exp(sum(math.log(v) for v in values) / len(values))


def at_least(what, figure, limit):
    return {"what": what, "figure": figure, "limit": f"≥ {limit:g}", "passed": figure >= limit}


def at_most(what, figure, limit):
    return {"what": what, "figure": figure, "limit": f"≤ {limit:g}", "passed": figure <= limit}


def net_bars(name, net):
    latency, memory, accuracy = net["latency"], net["memory"], net["accuracy"]
    bars = []
    if name == APART:
        bars.append(at_least(f"{name}: ratio by slope, 1 thread", net["slope"]["ratio"], 1.0))
    else:
        bars += [at_least(f"{name}: ratio, 1 thread", latency["threads1"]["ratio"], 1.2),
                 at_least(f"{name}: 2 threads to the better of the peer's", latency["ratio2_to_best_peer"], 1.1),
                 at_least(f"{name}: speed-up on 2 threads ÷ the probe's", latency["speedup"] / latency["probe_speedup"],
                          0.85),
                 at_most(f"{name}: memory beyond the weights ÷ the peer's", memory["ratio"], 0.8)]
    bars += [at_most(f"{name}: mod.params ÷ weights", memory["params_ratio"], 2.0),
             at_most(f"{name}: error against the peer", accuracy["against_peer"], 1e-4),
             at_most(f"{name}: error against the float64 reference", accuracy["against_reference"], 1e-5)]
    if name == "resnet50":
        bars.append(at_most(f"{name}: compile time, s", net["compile_s"], 5.0))
    return bars


def all_bars(nets):
    rated = [net for name, net in nets.items() if name != APART]
    bars = []
    if rated:
        bars = [at_least("geometric mean of the ratios, 1 thread",
                         geometric_mean([n["latency"]["threads1"]["ratio"] for n in rated]), 1.5),
                at_least("geometric mean of the ratios, batch 8",
                         geometric_mean([n["batch8"]["ratio"] for n in rated]), 1.3)]
    for name, net in nets.items():
        bars += net_bars(name, net)
    return bars
