#!/usr/bin/env python3
"""The whole test run: builds, runs every program in groups, adds up their counts and their CPU time.

    run_tests.py [PATTERN]

PATTERN is a group's name, part of a program's name, or part of a test's name. The last line is
`N passed, N failed, N skipped`. A program that crashes, times out or says "internal error" is a failure. `mutants` is
run only when it is named. Which tests a run takes of those that are many of one kind: scope.py.
"""

import os
import re
import shutil
import sys
import tempfile
import time
from functools import partial
from glob import glob
from pathlib import Path

import scope
from programs import Counts, Totals, ROOT, run_all, run_gtest, run_program, run_python

# Of a build with a cold cache on a machine that others keep busy.
BUILD_LIMIT_S = 60 * 60
# Frames on the heap make the parsers' programs four times as slow: a sweep looks for uses of a frame behind its return.
SANITIZER_ENV = {
    "ASAN_OPTIONS": f"detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return={int(scope.is_sweep())}",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1",
}
# CPU minutes of a whole gate, with a compiler cache that holds nothing, and with one that holds all.
BUDGET_COLD_MIN, BUDGET_WARM_MIN = 45, 30


def build(preset, folder, totals, *targets):
    """Configures and builds; True when it worked."""
    checks = f"-DTENSORMILL_WHOLE_CHECKS={'ON' if scope.is_sweep() else 'OFF'}"
    steps = [["cmake", "--preset", preset, "-DTENSORMILL_TESTS=ON", checks], ["cmake", "--build", folder, "--parallel", str(os.cpu_count() or 2)]]
    if targets:
        steps[1] += ["--target", *targets]
    counts = Counts(f"build {preset}", passed=1)
    for step in steps:
        code, _, cpu_s = run_program(step, limit=BUILD_LIMIT_S)
        counts.cpu_s += cpu_s
        if code != 0:
            counts.passed, counts.failures = 0, [(counts.name, f"{' '.join(step)} stopped with {code}")]
            break
    totals.add(counts)
    return counts.passed == 1


def gtest_programs(folder):
    """The executables of a build's test folder, in the order of their names."""
    return [Path(p) for p in sorted(glob(str(ROOT / folder / "bin/tests/*"))) if os.access(p, os.X_OK) and os.path.isfile(p)]


def python_files(*folders):
    return [Path(p) for folder in folders for p in sorted(glob(str(ROOT / "tests" / folder / "*_test.py")))]


def run_sanitizers(totals):
    """The address sanitizer for what parses, the thread sanitizer for what has threads; a sweep has all under both."""
    target = "sanitize_all_tests" if scope.is_sweep() else "sanitize_tests"
    for preset in ("asan", "tsan"):
        folder = f"build-{preset}"
        if build(preset, folder, totals, target):
            listed = (ROOT / folder / f"{target}.txt").read_text(encoding="utf-8").split()
            run_all([partial(run_gtest, ROOT / folder / "bin/tests" / name, env=SANITIZER_ENV, label=f"{preset} ")
                     for name in sorted(listed)], totals)


# Group -> the folders under tests/ whose *_test.py it runs. `unit` also runs the GoogleTest programs.
PYTHON_GROUPS = {
    "lint": ["lint"],
    "unit": ["tools", "peer"],
    "golden": ["golden", "conformance", "differential"],
    "e2e": ["e2e"],
    "python": ["python"],
    "determinism": ["determinism"],
    "docs": ["docs"],
    "mutants": ["mutants"],
}
GROUPS = ["build", "lint", "unit", "golden", "e2e", "python", "sanitizers", "determinism", "docs", "mutants"]


def run_group(group, totals):
    if group == "build":
        return build("release", "build", totals)
    if group == "sanitizers":
        run_sanitizers(totals)
    programs = [partial(run_gtest, program) for program in gtest_programs("build")] if group == "unit" else []
    # They build most of the product, or read all of it.
    limit = {"limit": BUILD_LIMIT_S} if group in ("mutants", "lint") else {}
    programs += [partial(run_python, path, **limit) for path in python_files(*PYTHON_GROUPS.get(group, []))]
    run_all(programs, totals)
    return True


def run_pattern(pattern, totals):
    """Programs whose name contains `pattern`, or else all tests whose name does."""
    programs = gtest_programs("build")
    files = python_files(*(folder for folders in PYTHON_GROUPS.values() for folder in folders if folder != "mutants"))
    named = [p for p in programs if pattern in p.name], [f for f in files if pattern in f.name]
    whole = any(named)
    test_filter = None if whole else pattern
    run_all([partial(run_gtest, program, test_filter=test_filter) for program in (named[0] if whole else programs)]
            + [partial(run_python, path, pattern=test_filter) for path in (named[1] if whole else files)], totals)


class Spent:
    """What a group took: minutes of the clock and of the CPU."""

    def __init__(self, label, clock_min, cpu_min):
        self.label, self.clock_min, self.cpu_min = label, clock_min, cpu_min


def timed(label, totals, action, *args):
    print(f"\n=== {label}", flush=True)
    started, cpu_s = time.monotonic(), totals.cpu_s()
    result = action(*args)
    spent = Spent(label, (time.monotonic() - started) / 60, (totals.cpu_s() - cpu_s) / 60)
    print(f"=== {label}: {spent.clock_min:.1f} min, {spent.cpu_min:.1f} CPU min", flush=True)
    return result, spent


def error_codes():
    """The names in the table of error codes."""
    table = (ROOT / "runtime/base/error_codes.def").read_text(encoding="utf-8")
    return set(re.findall(r'^TM_ERROR_CODE\(\w+, "(\w+)"', table, re.MULTILINE))


def check_codes(folder, totals):
    """Every code of the table was in an answer of this run."""
    seen = {line for path in Path(folder).iterdir() for line in path.read_text(encoding="utf-8").split()}
    known = error_codes()
    print(f"error codes in answers: {len(seen & known)} of {len(known)}")
    missing = sorted(known - seen)
    failures = [("error codes", f"never in an answer: {' '.join(missing)}")] if missing else []
    totals.add(Counts("error codes", passed=0 if missing else 1, failures=failures))


def is_cache_warm():
    """Whether the compiler's cache answered more than half of this run's calls, or nothing had to be compiled; False where there is
    no cache, which would not tell."""
    if shutil.which("ccache") is None:
        return False
    log = Path(os.environ["CCACHE_STATSLOG"])
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    hits, misses = sum(line in ("direct_cache_hit", "preprocessed_cache_hit") for line in lines), lines.count("cache_miss")
    return hits > misses or hits + misses == 0


def print_spent(times, totals, whole):
    for spent in times:
        print(f"{spent.clock_min:7.1f} min, {spent.cpu_min:6.1f} CPU min  {spent.label}")
    minutes = sum(spent.cpu_min for spent in times)
    print(f"{sum(spent.clock_min for spent in times):7.1f} min, {minutes:6.1f} CPU min  in all")
    if whole:
        warm = is_cache_warm()
        budget = BUDGET_WARM_MIN if warm else BUDGET_COLD_MIN
        over = f"{minutes - budget:.1f} CPU min OVER" if minutes > budget else "within"
        print(f"{over} the budget of {budget} CPU min with a {'warm' if warm else 'cold'} compiler cache; the longest:")
        for name, seconds in sorted(totals.cpu, key=lambda one: -one[1])[:12]:
            print(f"  {seconds / 60:6.2f} CPU min  {name}")
    if totals.left_to_sweeps:
        print(f"{totals.left_to_sweeps} tests of kinds that are sampled here are left to ./dev sweep tests")


def print_summary(times, totals, whole):
    print("\n=== summary")
    print_spent(times, totals, whole)
    for name, why in totals.skips:
        print(f"skipped: {name}: {why}")
    for name, why in totals.failures:
        print(f"FAILED: {name}: {why}")
    print(f"{totals.passed} passed, {totals.failed} failed, {totals.skipped} skipped", flush=True)


def main(argv):
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CCACHE_STATSLOG"] = f"{folder}/stats"
        return run(argv[0] if argv else "")


def run(pattern):
    totals, times = Totals(), []
    groups = [g for g in GROUPS if g != "mutants"] if not pattern else [pattern] if pattern in GROUPS else None
    if groups != ["build"] and (groups is None or "build" not in groups):
        built, spent = timed("build", totals, run_group, "build", totals)
        times.append(spent)
        if not built:
            groups = []
    if groups is None:
        times.append(timed(f"tests named {pattern}", totals, run_pattern, pattern, totals)[1])
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TEST_SEEN_CODES"] = folder
        done = True
        for group in groups or []:
            done, spent = timed(group, totals, run_group, group, totals)
            times.append(spent)
            if not done:
                break  # nothing after a failed build says anything
        if done and groups and not pattern:
            check_codes(folder, totals)
    print_summary(times, totals, bool(groups) and not pattern and not scope.is_sweep())
    return 1 if totals.failed or totals.passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
