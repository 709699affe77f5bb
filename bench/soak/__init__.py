"""Load on servers of its own, for long: soak [mixed|kills|cycles|faults|store|large] [--seconds N] [--rounds N] [--cycles N] [--packages N].

Prints a table of figures and bars, and stops with 1 when a bar is missed or anything was wrong."""

import argparse
import time

from soak import cycles, faults, kills, large, mixed, store


def parse(argv):
    parser = argparse.ArgumentParser(prog="soak", description=__doc__)
    parser.add_argument("part", nargs="?", choices=("mixed", "kills", "cycles", "faults", "store", "large"),
                        help="one of the six; all without it")
    parser.add_argument("--seconds", type=float, default=600, help="of mixed load")
    parser.add_argument("--rounds", type=int, default=200, help="kill -9")
    parser.add_argument("--cycles", type=int, default=1000, help="of load, infer and unload")
    parser.add_argument("--packages", type=int, help="of the large stores, ten blobs each: 10,000 in a folder, 100,000 of replicas")
    return parser.parse_args(argv)


def mixed_rows(seconds):
    done = mixed.run(seconds)
    for name, count in sorted(done.counts.items()):
        print(f"  {count} × {name}")
    if done.cancel_s:
        print(f"  cancels took effect within {max(done.cancel_s):.2f} s")
    print(f"  p99 beside ÷ alone: {', '.join(f'{ratio:.2f}' for ratio in done.ratios)}")
    return [("mixed load: wrong answers and unintended statuses", f"{len(done.problems)}", "0", not done.problems),
            ("mixed load: memory over the second half", f"{done.growth_kib:+.0f} KiB of {done.kib}",
             f"{mixed.tolerated_kib(done.kib):.0f} KiB", done.growth_kib <= mixed.tolerated_kib(done.kib)),
            ("mixed load: inference p99 with ÷ without the others", f"{done.ratio:.2f}", f"{mixed.RATIO_BAR:g}",
             0 < done.ratio <= mixed.RATIO_BAR)], done.problems


def kill_rows(rounds):
    wrong = kills.run(rounds)
    return [(f"kill -9, {rounds} rounds: lost, corrupt or left over", f"{len(wrong)}", "0", not wrong)], wrong


def cycle_rows(count):
    done = cycles.run(count)
    return [(f"{count} cycles of load, infer, unload: memory", f"{100 * done.growth:+.2f} % of {done.before} KiB",
             f"{100 * cycles.GROWTH_BAR:g} %", done.growth <= cycles.GROWTH_BAR),
            (f"{count} cycles: wrong answers", f"{len(done.wrong)}", "0", not done.wrong)], done.wrong


def fault_rows(_):
    wrong = faults.run()
    return [("a failing disk at every change of every operation: wrong", f"{len(wrong)}", "0", not wrong)], wrong


def store_rows(packages):
    done = store.run(packages)
    print(f"  start: {done.start_s:.1f} s")
    for name, (median, p99) in done.ms.items():
        print(f"  {name}: median {median:.2f} ms, p99 {p99:.2f} ms")
    print(f"  p99 of an inference: {', '.join(f'{ms:.2f} ms {name}' for name, ms in done.infer_ms.items())}")
    bars = [("metrics scrape", store.SCRAPE_BAR_MS)] + [(name, store.LIST_BAR_MS) for name in done.ms if "packages" in name]
    rows = [(f"{packages} packages: {name}", f"{done.ms[name][0]:.2f} ms", f"{bar:g} ms", done.ms[name][0] <= bar)
            for name, bar in bars]
    rows.append((f"{packages} packages: inference p99 during collections ÷ alone", f"{done.ratio:.2f}", f"{store.RATIO_BAR:g}",
                 done.ratio <= store.RATIO_BAR))
    return rows, done.wrong


def large_rows(packages):
    done = large.run(packages)
    for name, (median, p99) in done.ms.items():
        print(f"  {name}: median {median:.2f} ms, p99 {p99:.2f} ms")
    rows = [(f"a replica's catalog of {packages} packages: {name}, p99", f"{p99:.2f} ms", f"{large.BAR_MS:g} ms", p99 <= large.BAR_MS)
            for name, (_, p99) in done.ms.items() if name != large.OLDER]
    rows += [(f"a replica's catalog of {packages} packages: {name} after the start", f"{seconds:.2f} s", f"{large.START_BAR_S:g} s",
              seconds <= large.START_BAR_S) for name, seconds in done.start_s.items()]
    return rows, done.wrong


def main(argv):
    options, rows, problems = parse(argv), [], []
    parts = {"mixed": (mixed_rows, options.seconds), "kills": (kill_rows, options.rounds),
             "cycles": (cycle_rows, options.cycles), "faults": (fault_rows, 0), "store": (store_rows, options.packages or 10_000), "large": (large_rows, options.packages or 100_000)}
    for name, (part, much) in parts.items():
        if options.part not in (None, name):
            continue
        started = time.monotonic()
        print(f"== {name}", flush=True)
        more, wrong = part(much)
        print(f"   {time.monotonic() - started:.0f} s", flush=True)
        rows += more
        problems += wrong
    for what in problems:
        print(f"problem: {what}")
    print(f"\n{'':62} {'figure':>26} {'bar':>12}")
    for what, figure, bar, good in rows:
        print(f"{what:62} {figure:>26} {bar:>12}  {'met' if good else 'MISSED'}")
    return 0 if all(row[3] for row in rows) else 1
