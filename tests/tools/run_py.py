#!/usr/bin/env python3
"""Runs unittest files and writes their counts: run_py.py [--json OUT] [-k PATTERN] FILE...

OUT: {"passed": n, "failed": n, "skipped": n, "left_to_sweeps": n, "skips": [[test, reason]...], "failures": [[test,
text]...]}. A file that cannot be imported is one failure. Without a pattern, the tests that scope.py chooses are run.
Exit code 1 on a failure.
"""

import argparse
import importlib.util
import json
import os
import resource
import sys
import time
import traceback
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import scope  # noqa: E402 (found through the line above)


def cpu_seconds():
    """CPU time of this process and of all that it waited for."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


class CountingResult(unittest.TextTestResult):
    """Counts a test once, however many of its subtests fail, and prints how long it took."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.passed, self.failed, self.seen, self.started_at, self.cpu_before = 0, {}, [], 0.0, 0.0

    def startTest(self, test):  # noqa: N802 (unittest's name)
        self.started_at, self.cpu_before = time.monotonic(), cpu_seconds()
        super().startTest(test)

    def stopTest(self, test):  # noqa: N802
        seconds = time.monotonic() - self.started_at
        if seconds > 1:
            self.stream.writeln(f"    {seconds:.1f} s, {cpu_seconds() - self.cpu_before:.1f} s of CPU time")
        super().stopTest(test)

    def addSuccess(self, test):  # noqa: N802
        super().addSuccess(test)
        self.passed += 1

    def note_failure(self, test, error):
        text = "".join(traceback.format_exception_only(error[0], error[1])).strip()
        self.failed.setdefault(test.id(), text)

    def addFailure(self, test, err):  # noqa: N802
        super().addFailure(test, err)
        self.note_failure(test, err)

    def addError(self, test, err):  # noqa: N802
        super().addError(test, err)
        self.note_failure(test, err)

    def addSubTest(self, test, subtest, err):  # noqa: N802
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.note_failure(test, err)
            self.seen.append((subtest.id(), str(err[1]).splitlines()[0] if str(err[1]) else str(err[0])))

    def addUnexpectedSuccess(self, test):  # noqa: N802
        super().addUnexpectedSuccess(test)
        self.failed[test.id()] = "passed, though expected to fail"


def load(path, loader):
    """The tests of one file; an import error becomes a failing test."""
    name = os.path.splitext(os.path.basename(path))[0]
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    try:
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        return loader.loadTestsFromModule(module)
    except Exception:
        text = traceback.format_exc()

        def broken(self):
            self.fail(f"{path} cannot be imported:\n{text}")

        case = type(name, (unittest.TestCase,), {"test_import": broken})
        return unittest.TestLoader().loadTestsFromTestCase(case)  # whatever pattern the tests are chosen by


def tests_of(suite):
    """The tests of a suite and of the suites in it, in their order."""
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from tests_of(item)
        else:
            yield item


def in_scope(path, suite):
    """The part of a file's suite that this run takes, and how many tests it leaves."""
    root = Path(__file__).resolve().parents[2]
    whole = Path(path).resolve()
    if not whole.is_relative_to(root):
        return suite, 0
    # "TestCase.test_name", as samples.toml has it.
    tests = {".".join(test.id().split(".")[-2:]): test for test in tests_of(suite)}
    chosen = set(scope.chosen_tests(whole.relative_to(root).as_posix(), tests))
    if len(chosen) == len(tests):
        return suite, 0
    return unittest.TestSuite(test for name, test in tests.items() if name in chosen), len(tests) - len(chosen)


def main(argv=None):
    parser = argparse.ArgumentParser(description="run unittest files")
    parser.add_argument("files", nargs="+")
    parser.add_argument("--json", help="where to write the counts")
    parser.add_argument("-k", dest="pattern", help="run only the tests whose name contains this")
    args = parser.parse_args(argv)
    loader = unittest.TestLoader()
    if args.pattern:
        loader.testNamePatterns = [f"*{args.pattern}*"]
    suites = [(path, load(path, loader)) for path in args.files]
    parts = [(suite, 0) if args.pattern else in_scope(path, suite) for path, suite in suites]
    suite = unittest.TestSuite(part for part, _ in parts)
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2, resultclass=CountingResult).run(suite)
    counts = {
        "passed": result.passed + len(result.expectedFailures),
        "failed": len(result.failed),
        "skipped": len(result.skipped),
        "left_to_sweeps": sum(left for _, left in parts),
        "skips": [[test.id(), reason] for test, reason in result.skipped],
        "failures": [[name, text] for name, text in result.failed.items()] + [list(s) for s in result.seen],
    }
    if args.json:
        with open(args.json, "w", encoding="utf-8") as out:
            json.dump(counts, out)
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
