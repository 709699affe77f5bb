"""The gate's samples, and what a sweep remembers, without running one."""

import sys
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent))

import scope  # noqa: E402 (beside this file)
import run_sweeps  # noqa: E402
import sweeps  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]


class Scope(unittest.TestCase):
    def test_a_sample_is_spread_over_the_items_and_has_the_last(self):
        self.assertEqual(scope.spread(range(10), 3), [2, 5, 9])
        self.assertEqual(scope.spread(range(3), 8), [0, 1, 2])
        for count in range(1, 40):
            for keep in range(1, 40):
                picked = scope.spread(range(count), keep)
                self.assertEqual(len(picked), min(count, keep))
                self.assertEqual(len(set(picked)), len(picked))

    def test_only_what_a_row_names_is_sampled(self):
        table = [{"program": "a_tests", "tests": "Many/*", "keep": 1}]
        tests = ["Many/X.A/0", "Many/X.A/1", "Other.B"]
        with mock.patch.dict("os.environ", {"TENSORMILL_SCOPE": "gate"}):
            self.assertEqual(scope.chosen_tests("a_tests", tests, table), ["Many/X.A/1", "Other.B"])
            self.assertEqual(scope.chosen_tests("b_tests", tests, table), tests)
        with mock.patch.dict("os.environ", {"TENSORMILL_SCOPE": "sweep"}):
            self.assertEqual(scope.chosen_tests("a_tests", tests, table), tests)

    def test_rows_name_programs_that_there_are(self):
        for row in scope.rows():
            name = row["program"]
            with self.subTest(row=row):
                self.assertGreater(row["keep"], 0)
                if name.endswith(".py"):
                    self.assertTrue((ROOT / name).is_file())
                else:
                    self.assertIn(f"tm_test({name.split()[-1]} ", (ROOT / "tests/CMakeLists.txt").read_text(encoding="utf-8"))


class Sweeps(unittest.TestCase):
    def test_closing_counts_are_read(self):
        self.assertEqual(run_sweeps.outcome(0, "x\n3 passed, 0 failed, 2 skipped\n"), {"passed": 3, "failed": 0, "skipped": 2})
        self.assertEqual(run_sweeps.outcome(1, "3 passed, 0 failed\n")["failed"], 1)
        self.assertEqual(run_sweeps.outcome(0, "no counts"), {"passed": 1, "failed": 0, "skipped": 0})
        self.assertEqual(run_sweeps.outcome("a time-out after 3 s", "")["failed"], 1)

    def test_commands_name_verbs_and_files_that_there_are(self):
        dev = (ROOT / "dev").read_text(encoding="utf-8")
        for one in sweeps.SWEEPS:
            for unit in one.units():
                with self.subTest(unit=unit):
                    words = unit.split()
                    if words[0] == "./dev":
                        self.assertIn(f"    {words[1]}) ", dev)
                    else:
                        self.assertTrue((ROOT / words[words[0] == sweeps.PYTHON]).exists())


if __name__ == "__main__":
    unittest.main()
