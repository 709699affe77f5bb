#!/usr/bin/env python3
"""Puts listed compiler bugs into a copy of the sources, one at a time: the suite must catch each of them.

The rows stand in mutants.toml. The copy and its build lie in build-mutants/; a mutant costs one file's compilation, one
link and the part of a test program that the row names. What was caught is remembered in build-mutants/caught.json with
the digest of all sources, so that a run that was stopped goes on where it was. The table at the end lists every row.
"""

import hashlib
import json
import shutil
import sys
import time
import tomllib
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

from source_copy import SourceCopy  # noqa: E402  (found through the line above)

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "build-mutants"
SOURCE = WORK / "source"
BUILD = SOURCE / "build"
COPY = SourceCopy(SOURCE)
CAUGHT = WORK / "caught.json"
RUN_LIMIT_S = 600

MUTANTS = tomllib.loads((ROOT / "tests/mutants/mutants.toml").read_text(encoding="utf-8"))["mutant"]


def build(*targets):
    return COPY.build(BUILD, *targets)


def run_suite(row):
    return COPY.call([BUILD / "bin/tests" / row["suite"], f"--gtest_filter={row['filter']}", "--gtest_brief=1"],
                     RUN_LIMIT_S)


def key_of(row, digest):
    return hashlib.sha256((digest + json.dumps(row, sort_keys=True)).encode()).hexdigest()


class Mutants(unittest.TestCase):
    """One test a row; setUpClass builds the copy without a bug and checks that its suites pass."""

    results = {}

    @classmethod
    def setUpClass(cls):
        SOURCE.mkdir(parents=True, exist_ok=True)
        cls.digest = COPY.sync()
        cls.caught = json.loads(CAUGHT.read_text()) if CAUGHT.exists() else {}
        cls.open = [row for row in MUTANTS if key_of(row, cls.digest) not in cls.caught]
        if not cls.open:
            return
        started = time.monotonic()
        # A mutant compiles its own file; the others are compiled in batches, once.
        alone = ";".join(sorted({row["file"] for row in MUTANTS}))
        code, output = COPY.call(["cmake", "--preset", "dev", "-DTENSORMILL_TESTS=ON", "-DTENSORMILL_BATCH=32",
                                  f"-DTENSORMILL_ALONE={alone}"])
        assert code == 0, output
        code, output = build(*sorted({row["suite"] for row in cls.open}))
        assert code == 0, output[-4000:]
        for suite, pattern in sorted({(row["suite"], row["filter"]) for row in cls.open}):
            code, output = run_suite({"suite": suite, "filter": pattern})
            assert code == 0, f"{suite} {pattern} fails without any bug:\n{output[-4000:]}"
            assert "0 tests from 0 test suites ran" not in output, f"{suite} {pattern} runs no test"
        print(f"sources without a bug: {(time.monotonic() - started) / 60:.1f} min", flush=True)

    @classmethod
    def tearDownClass(cls):
        print(f"\n{'mutant':44} {'suite':14} {'seconds':>8}  outcome")
        for row in MUTANTS:
            seconds, outcome = cls.results.get(row["name"], (0.0, "not run"))
            print(f"{row['name']:44} {row['suite']:14} {seconds:8.1f}  {outcome}")
        print(f"{sum(seconds for seconds, _ in cls.results.values()) / 60:.1f} min", flush=True)

    def check(self, row):
        key = key_of(row, self.digest)
        if key in self.caught:
            self.results[row["name"]] = (0.0, "caught before")
            return
        started, take_back = time.monotonic(), COPY.plant(row)
        try:
            code, output = build(row["suite"])
            self.assertEqual(code, 0, "the mutant does not compile:\n" + output[-3000:])
            code, output = run_suite(row)
        finally:
            take_back()
        outcome = "survived" if code == 0 else f"caught ({first_failure(code, output)})"
        self.results[row["name"]] = (time.monotonic() - started, outcome)
        self.assertNotEqual(code, 0, f"{row['suite']} --gtest_filter={row['filter']} does not notice")
        self.caught[key] = row["name"]
        CAUGHT.write_text(json.dumps(self.caught, indent=1, sort_keys=True))


def first_failure(code, output):
    for line in output.splitlines():
        if line.startswith("[  FAILED  ]"):
            return line.split("]", 1)[1].strip().split(",")[0].split(" (")[0]
    return f"stopped with {code}"


for _row in MUTANTS:
    setattr(Mutants, f"test_{_row['name']}", lambda self, row=_row: self.check(row))

if __name__ == "__main__":
    if "--clean" in sys.argv:
        shutil.rmtree(WORK, ignore_errors=True)
        sys.argv.remove("--clean")
    unittest.main(verbosity=1)
