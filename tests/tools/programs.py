"""Runs one test program and reads what it says of itself: counts, skips, failures, CPU time."""

import json
import os
import re
import subprocess
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import scope

ROOT = Path(__file__).resolve().parents[2]
PYTHON = "/usr/bin/python3"
# Without a line, and in all: a program of many tests, under a sanitizer on a machine that others load, takes long.
PROGRAM_LIMIT_S, WHOLE_LIMIT_S = 20 * 60, 90 * 60
INTERNAL_ERROR = re.compile(r"\binternal error\b", re.IGNORECASE)


class Totals:
    """Counts over all programs, with the names that the summary repeats, and the CPU seconds that each took."""

    def __init__(self):
        self.passed = self.failed = self.skipped = self.left_to_sweeps = 0
        self.failures, self.skips, self.cpu = [], [], []

    def add(self, counts):
        self.passed += counts.passed
        self.failed += len(counts.failures)
        self.skipped += len(counts.skips)
        self.left_to_sweeps += counts.left_to_sweeps
        self.failures += counts.failures
        self.skips += counts.skips
        self.cpu.append((counts.name, counts.cpu_s))

    def cpu_s(self):
        return sum(seconds for _, seconds in self.cpu)


class Counts:
    """What came of one program: failures and skips are [(test, reason)]."""

    def __init__(self, name, passed=0, failures=(), skips=(), cpu_s=0.0, left_to_sweeps=0):
        self.name, self.passed, self.cpu_s, self.left_to_sweeps = name, passed, cpu_s, left_to_sweeps
        self.failures, self.skips = list(failures), list(skips)


def say(line):
    print(line, flush=True)


class Watchdog:
    """Kills a process that says nothing for `limit` seconds, or runs for `whole`; `killed` are the seconds that it was given."""

    def __init__(self, process, limit, whole):
        self.process, self.limit, self.whole, self.killed = process, limit, max(whole, limit), None
        self.end, self.ended = time.monotonic() + self.whole, threading.Event()
        self.heard = time.monotonic()
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.thread.start()

    def hear(self):
        self.heard = time.monotonic()

    def close(self):
        self.ended.set()
        self.thread.join()

    def _watch(self):
        while not self.ended.wait(max(0.0, min(self.heard + self.limit, self.end) - time.monotonic())):
            now = time.monotonic()
            if now >= min(self.heard + self.limit, self.end):
                self.killed = self.limit if now < self.end else self.whole
                self.process.kill()
                return


def run_program(command, env=None, show=say, limit=PROGRAM_LIMIT_S, whole=WHOLE_LIMIT_S):
    """Runs one program, with each line that matters given to `show`; returns (exit code or the words for a time-out,
    output, CPU seconds of it and of all that it waited for). It is stopped where it says nothing for `limit` seconds."""
    show(f"-- {' '.join(str(c) for c in command)}")
    started, lines = time.monotonic(), []

    with subprocess.Popen([str(c) for c in command], cwd=ROOT, env={**os.environ, **(env or {})}, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          errors="replace") as process:
        watchdog = Watchdog(process, limit, whole)
        for line in process.stdout:
            watchdog.hear()
            lines.append(line)
            # Passing tests are one line each in their thousands: only what matters is shown.
            if not line.startswith(("[ RUN      ]", "[       OK ]")):
                show(line.rstrip("\n"))
        _, status, usage = os.wait4(process.pid, 0)
        code = process.returncode = os.waitstatus_to_exitcode(status)
        watchdog.close()
    cpu_s = usage.ru_utime + usage.ru_stime
    show(f"   {time.monotonic() - started:.1f} s, {cpu_s:.1f} s of CPU time")
    return f"a time-out after {watchdog.killed} s" if watchdog.killed else code, "".join(lines), cpu_s


def end_of(code, output):
    """How a program ended, for the summary: the code, the test that it was in and its last line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    inside = next((line[12:].strip() for line in reversed(lines) if line.startswith(("[ RUN      ]", "[       OK ]"))), None)
    where = f" in or after {inside}" if inside else ""
    return f"stopped with {code}{where}" + (f"; last line: {lines[-1][:300]}" if lines else "")


def add_exit(counts, code, output):
    """Adds the failures that a program's counts do not show."""
    if code != 0 and not counts.failures:
        counts.failures.append((counts.name, end_of(code, output)))
    if INTERNAL_ERROR.search(output):
        line = next(l for l in output.splitlines() if INTERNAL_ERROR.search(l))
        counts.failures.append((counts.name, f"said: {line.strip()}"))
    return counts


def run_gtest(program, show, test_filter=None, env=None, label=""):
    """One GoogleTest program; without a filter, those of its tests that are in the scope of this run."""
    counts = Counts(f"{label}{program.name}")
    with tempfile.TemporaryDirectory() as folder:
        report, flags = Path(folder) / "report.json", Path(folder) / "flags"
        command = [program, f"--gtest_output=json:{report}", "--gtest_brief=0"]
        if test_filter:
            command.append(f"--gtest_filter=*{test_filter}*")
        else:
            tests = gtest_names(program, env)
            chosen = scope.chosen_tests(counts.name, tests)
            counts.left_to_sweeps = len(tests) - len(chosen)
            if counts.left_to_sweeps:
                flags.write_text(f"--gtest_filter={':'.join(chosen)}\n", encoding="utf-8")
                command.append(f"--gtest_flagfile={flags}")
        code, output, counts.cpu_s = run_program(command, env, show)
        suites = json.loads(report.read_text())["testsuites"] if report.exists() else []
    for suite in suites:
        for test in suite.get("testsuite", []):
            full = f"{counts.name}: {suite['name']}.{test['name']}"
            if test.get("failures"):
                counts.failures.append((full, " ".join(test["failures"][0]["failure"].split())[:300]))
            elif test.get("result") == "SKIPPED":
                reasons = [s.get("message", "") for s in test.get("skipped", [])]
                reason = " ".join(reasons).strip().replace("\n", " ") or skip_reason(output, suite, test)
                counts.skips.append((full, reason))
            elif test.get("status") == "RUN":
                counts.passed += 1
            elif test["name"].startswith("DISABLED_"):
                counts.skips.append((full, "disabled in the source"))
    return add_exit(counts, code, output)


def gtest_names(program, env):
    """Every test of a GoogleTest program, as its filter names it."""
    listed = subprocess.run([str(program), "--gtest_list_tests"], capture_output=True, text=True, check=True, cwd=ROOT,
                            env={**os.environ, **(env or {})}).stdout
    names, suite = [], ""
    for line in listed.splitlines():
        text = line.split("#")[0].rstrip()
        if text.startswith("  "):
            names.append(suite + text.strip())
        elif text.endswith("."):
            suite = text
    return names


def skip_reason(output, suite, test):
    """GoogleTest 1.12 leaves the reason out of its report: it stands in the output, above the SKIPPED line."""
    start = output.find(f"[ RUN      ] {suite['name']}.{test['name']}\n")
    end = output.find("[  SKIPPED ]", start)
    lines = [l.strip() for l in output[start:end].splitlines()[1:]
             if l.strip() and not re.match(r".*: Skipped$", l.strip())]
    return " ".join(lines) if start >= 0 and lines else "no reason given"


def run_python(path, show, pattern=None, limit=PROGRAM_LIMIT_S):
    """One file of Python tests; without a pattern, those of its tests that are in the scope of this run."""
    counts = Counts(path.relative_to(ROOT).as_posix())
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [PYTHON, "-u", "tests/tools/run_py.py", "--json", report, counts.name]
        if pattern:
            command[-1:-1] = ["-k", pattern]
        code, output, counts.cpu_s = run_program(command, show=show, limit=limit)
        said = json.loads(report.read_text()) if report.exists() else None
    if said is None:
        counts.failures.append((counts.name, end_of(code, output)))
        return counts
    counts.passed, counts.left_to_sweeps = said["passed"], said["left_to_sweeps"]
    counts.failures = [(f"{counts.name}: {test}", text.splitlines()[0]) for test, text in said["failures"][:said["failed"]]]
    counts.skips = [(f"{counts.name}: {test}", why) for test, why in said["skips"]]
    for test, text in said["failures"][said["failed"]:]:
        show(f"   subtest {test}: {text}")
    return add_exit(counts, code, output)


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
            totals.add(counts)
