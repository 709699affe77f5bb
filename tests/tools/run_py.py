#!/usr/bin/env python3
"""Runs unittest files and writes their counts: run_py.py [--json OUT] [-k PATTERN] FILE...

OUT: {"passed": n, "failed": n, "skipped": n, "skips": [[test, reason]...], "failures": [[test, text]...]}. A file that
cannot be imported is one failure. Exit code 1 on a failure.
"""

import argparse
import importlib.util
import json
import os
import sys
import time
import traceback
import unittest


class CountingResult(unittest.TextTestResult):
    """Counts a test once, however many of its subtests fail, and prints how long it took."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.passed, self.failed, self.seen, self.started_at = 0, {}, [], 0.0

    def startTest(self, test):  # noqa: N802 (unittest's name)
        self.started_at = time.monotonic()
        super().startTest(test)

    def stopTest(self, test):  # noqa: N802
        seconds = time.monotonic() - self.started_at
        if seconds > 1:
            self.stream.writeln(f"    {seconds:.1f} s")
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
        return loader.loadTestsFromTestCase(case)


def main(argv=None):
    parser = argparse.ArgumentParser(description="run unittest files")
    parser.add_argument("files", nargs="+")
    parser.add_argument("--json", help="where to write the counts")
    parser.add_argument("-k", dest="pattern", help="run only the tests whose name contains this")
    args = parser.parse_args(argv)
    loader = unittest.TestLoader()
    if args.pattern:
        loader.testNamePatterns = [f"*{args.pattern}*"]
    suite = unittest.TestSuite(load(path, loader) for path in args.files)
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2, resultclass=CountingResult).run(suite)
    counts = {
        "passed": result.passed + len(result.expectedFailures),
        "failed": len(result.failed),
        "skipped": len(result.skipped),
        "skips": [[test.id(), reason] for test, reason in result.skipped],
        "failures": [[name, text] for name, text in result.failed.items()] + [list(s) for s in result.seen],
    }
    if args.json:
        with open(args.json, "w", encoding="utf-8") as out:
            json.dump(counts, out)
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
