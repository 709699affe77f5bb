#!/usr/bin/env python3
"""The bugs that tests/mutants puts in have their places in the sources: a row whose text has moved would plant none."""

import tomllib
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MUTANTS = tomllib.loads((ROOT / "tests/mutants/mutants.toml").read_text(encoding="utf-8"))["mutant"]


class Table(unittest.TestCase):
    def test_rows(self):
        names = [row["name"] for row in MUTANTS]
        self.assertGreaterEqual(len(names), 30)
        self.assertEqual(len(names), len(set(names)))
        for row in MUTANTS:
            with self.subTest(row["name"]):
                self.assertEqual((ROOT / row["file"]).read_text(encoding="utf-8").count(row["find"]), 1)


if __name__ == "__main__":
    unittest.main()
