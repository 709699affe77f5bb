#!/usr/bin/env python3
"""The whole test run: builds, runs every program in groups, adds up their counts.

    run_tests.py [PATTERN]

PATTERN is a group's name, part of a program's name, or part of a test's name. The last line is
`N passed, N failed, N skipped`. A program that crashes, times out or says "internal error" is a failure. `mutants` is
run only when it is named.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from glob import glob
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PYTHON = "/usr/bin/python3"
PROGRAM_LIMIT_S = 20 * 60
# Of a build with a cold cache on a machine that others keep busy.
BUILD_LIMIT_S = 60 * 60
SANITIZER_ENV = {
    "ASAN_OPTIONS": "detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1",
}
INTERNAL_ERROR = re.compile(r"\binternal error\b", re.IGNORECASE)


class Totals:
    """Counts over all programs, with the names that the summary repeats."""

    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        self.failures, self.skips = [], []

    def add(self, passed, failures, skips):
        self.passed += passed
        self.failed += len(failures)
        self.skipped += len(skips)
        self.failures += failures
        self.skips += skips


def say(line):
    print(line, flush=True)


def run_program(command, env=None, show=say, limit=PROGRAM_LIMIT_S):
    """Runs one program, with each line that matters given to `show`; returns (exit code or the words for a time-out,
    output)."""
    show(f"-- {' '.join(str(c) for c in command)}")
    started, lines, timed_out = time.monotonic(), [], []

    def stop():
        timed_out.append(True)
        process.kill()

    with subprocess.Popen([str(c) for c in command], cwd=ROOT, env={**os.environ, **(env or {})}, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          errors="replace") as process:
        timer = threading.Timer(limit, stop)
        timer.start()
        for line in process.stdout:
            lines.append(line)
            # Passing tests are one line each in their thousands: only what matters is shown.
            if not line.startswith(("[ RUN      ]", "[       OK ]")):
                show(line.rstrip("\n"))
        code = process.wait()
        timer.cancel()
    show(f"   {time.monotonic() - started:.1f} s")
    return f"a time-out after {limit} s" if timed_out else code, "".join(lines)


def end_of(code, output):
    """How a program ended, for the summary: the code, the test that it was in and its last line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    inside = next((line[12:].strip() for line in reversed(lines) if line.startswith(("[ RUN      ]", "[       OK ]"))), None)
    where = f" in or after {inside}" if inside else ""
    return f"stopped with {code}{where}" + (f"; last line: {lines[-1][:300]}" if lines else "")


def with_exit_check(name, code, output, failures):
    """Adds the failures that a program's counts do not show."""
    if code != 0 and not failures:
        failures.append((name, end_of(code, output)))
    if INTERNAL_ERROR.search(output):
        line = next(l for l in output.splitlines() if INTERNAL_ERROR.search(l))
        failures.append((name, f"said: {line.strip()}"))


def run_gtest(program, show, test_filter=None, env=None, label=""):
    """One GoogleTest program: (passed, failures, skips)."""
    name = f"{label}{program.name}"
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [program, f"--gtest_output=json:{report}", "--gtest_brief=0"]
        if test_filter:
            command.append(f"--gtest_filter=*{test_filter}*")
        code, output = run_program(command, env, show)
        counts = json.loads(report.read_text()) if report.exists() else {"testsuites": []}
    passed, failures, skips = 0, [], []
    for suite in counts["testsuites"]:
        for test in suite.get("testsuite", []):
            full = f"{name}: {suite['name']}.{test['name']}"
            if test.get("failures"):
                failures.append((full, " ".join(test["failures"][0]["failure"].split())[:300]))
            elif test.get("result") == "SKIPPED":
                reasons = [s.get("message", "") for s in test.get("skipped", [])]
                skips.append((full, " ".join(reasons).strip().replace("\n", " ") or skip_reason(output, suite, test)))
            elif test.get("status") == "RUN":
                passed += 1
            else:
                skips.append((full, "disabled in the source"))
    with_exit_check(name, code, output, failures)
    return passed, failures, [s for s in skips if not (test_filter and s[1] == "disabled in the source")]


def skip_reason(output, suite, test):
    """GoogleTest 1.12 leaves the reason out of its report: it stands in the output, above the SKIPPED line."""
    start = output.find(f"[ RUN      ] {suite['name']}.{test['name']}\n")
    end = output.find("[  SKIPPED ]", start)
    lines = [l.strip() for l in output[start:end].splitlines()[1:]
             if l.strip() and not re.match(r".*: Skipped$", l.strip())]
    return " ".join(lines) if start >= 0 and lines else "no reason given"


def run_python(path, show, pattern=None):
    """One file of Python tests: (passed, failures, skips)."""
    name = path.relative_to(ROOT).as_posix()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [PYTHON, "-u", "tests/tools/run_py.py", "--json", report, name]
        if pattern:
            command[-1:-1] = ["-k", pattern]
        code, output = run_program(command, show=show)
        counts = json.loads(report.read_text()) if report.exists() else None
    if counts is None:
        return 0, [(name, end_of(code, output))], []
    failures = [(f"{name}: {test}", text.splitlines()[0]) for test, text in counts["failures"][:counts["failed"]]]
    for test, text in counts["failures"][counts["failed"]:]:
        show(f"   subtest {test}: {text}")
    with_exit_check(name, code, output, failures)
    return counts["passed"], failures, [(f"{name}: {test}", why) for test, why in counts["skips"]]


def run_all(programs, totals):
    """Runs programs (functions of `show`) on all cores: most use one. What each prints stands together, when it ends;
    their counts are in the order of the programs."""
    printing = threading.Lock()

    def run(program):
        lines = []
        counts = program(lines.append)
        with printing:
            say("\n".join(lines))
        return counts

    with ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        for counts in pool.map(run, programs):
            totals.add(*counts)


def build(preset, folder, totals, *targets):
    """Configures and builds; True when it worked."""
    steps = [["cmake", "--preset", preset, "-DTENSORMILL_TESTS=ON"], ["cmake", "--build", folder, "--parallel", str(os.cpu_count() or 2)]]
    if targets:
        steps[1] += ["--target", *targets]
    for step in steps:
        code, _ = run_program(step, limit=BUILD_LIMIT_S)
        if code != 0:
            totals.add(0, [(f"build {preset}", f"{' '.join(step)} stopped with {code}")], [])
            return False
    totals.add(1, [], [])
    return True


def gtest_programs(folder):
    """The executables of a build's test folder, in the order of their names."""
    return [Path(p) for p in sorted(glob(str(ROOT / folder / "bin/tests/*"))) if os.access(p, os.X_OK) and os.path.isfile(p)]


def python_files(*folders):
    return [Path(p) for folder in folders for p in sorted(glob(str(ROOT / "tests" / folder / "*_test.py")))]


def run_sanitizers(totals):
    for preset in ("asan", "tsan"):
        folder = f"build-{preset}"
        if build(preset, folder, totals, "sanitize_tests"):
            listed = (ROOT / folder / "sanitize_tests.txt").read_text(encoding="utf-8").split()
            run_all([partial(run_gtest, ROOT / folder / "bin/tests" / name, env=SANITIZER_ENV, label=f"{preset} ")
                     for name in sorted(listed)], totals)


# Group -> the folders under tests/ whose *_test.py it runs. `unit` also runs the GoogleTest programs.
PYTHON_GROUPS = {
    "lint": ["lint"],
    "unit": ["tools", "peer"],
    "golden": ["golden", "conformance", "differential"],
    "e2e": ["e2e"],
    "determinism": ["determinism"],
    "docs": ["docs"],
    "mutants": ["mutants"],
}
GROUPS = ["build", "lint", "unit", "golden", "e2e", "sanitizers", "determinism", "docs", "mutants"]


def run_group(group, totals):
    if group == "build":
        return build("release", "build", totals)
    if group == "sanitizers":
        run_sanitizers(totals)
    programs = [partial(run_gtest, program) for program in gtest_programs("build")] if group == "unit" else []
    programs += [partial(run_python, path) for path in python_files(*PYTHON_GROUPS.get(group, []))]
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


def timed(label, action, *args):
    print(f"\n=== {label}", flush=True)
    started = time.monotonic()
    result = action(*args)
    minutes = (time.monotonic() - started) / 60
    print(f"=== {label}: {minutes:.1f} min", flush=True)
    return result, (label, minutes)


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
    totals.add(0 if missing else 1, [("error codes", f"never in an answer: {' '.join(missing)}")] if missing else [], [])


def main(argv):
    pattern = argv[0] if argv else ""
    totals, times = Totals(), []
    groups = [g for g in GROUPS if g != "mutants"] if not pattern else [pattern] if pattern in GROUPS else None
    if groups != ["build"] and (groups is None or "build" not in groups):
        built, spent = timed("build", run_group, "build", totals)
        times.append(spent)
        if not built:
            groups = []
    if groups is None:
        times.append(timed(f"tests named {pattern}", run_pattern, pattern, totals)[1])
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TEST_SEEN_CODES"] = folder
        done = True
        for group in groups or []:
            done, spent = timed(group, run_group, group, totals)
            times.append(spent)
            if not done:
                break  # nothing after a failed build says anything
        if done and groups and not pattern:
            check_codes(folder, totals)
    print("\n=== summary")
    for label, minutes in times:
        print(f"{minutes:7.1f} min  {label}")
    for name, why in totals.skips:
        print(f"skipped: {name}: {why}")
    for name, why in totals.failures:
        print(f"FAILED: {name}: {why}")
    print(f"{totals.passed} passed, {totals.failed} failed, {totals.skipped} skipped", flush=True)
    return 1 if totals.failed or totals.passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
