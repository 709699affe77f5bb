"""Tests of the test runner: what counts as passed, failed and skipped."""

import json
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import programs  # noqa: E402 (beside this file)


class RunPy(unittest.TestCase):
    def run_file(self, text, *options):
        with tempfile.TemporaryDirectory() as folder:
            path, report = os.path.join(folder, "sample_test.py"), os.path.join(folder, "report.json")
            with open(path, "w", encoding="utf-8") as file:
                file.write(textwrap.dedent(text))
            done = subprocess.run([sys.executable, os.path.join(HERE, "run_py.py"), "--json", report, *options, path],
                                  capture_output=True, text=True, check=False)
            with open(report, encoding="utf-8") as file:
                return done.returncode, json.load(file)

    def test_counts(self):
        code, counts = self.run_file("""
            import unittest
            class T(unittest.TestCase):
                def test_good(self): pass
                def test_bad(self): self.assertEqual(1, 2)
                def test_error(self): raise ValueError("broken")
                @unittest.skip("no such machine")
                def test_skipped(self): pass
                def test_subtests(self):
                    for i in range(4):
                        with self.subTest(i=i): self.assertEqual(i % 2, 0)
        """)
        self.assertEqual(code, 1)
        self.assertEqual((counts["passed"], counts["failed"], counts["skipped"]), (1, 3, 1))
        self.assertEqual(counts["skips"][0][1], "no such machine")

    def test_a_file_that_cannot_be_imported_is_a_failure(self):
        for options in ((), ("-k", "one")):
            code, counts = self.run_file("import no_such_module_anywhere", *options)
            self.assertEqual((code, counts["passed"], counts["failed"]), (1, 0, 1))

    def test_pattern_selects_tests(self):
        code, counts = self.run_file("""
            import unittest
            class T(unittest.TestCase):
                def test_one(self): pass
                def test_two(self): self.fail()
        """, "-k", "one")
        self.assertEqual((code, counts["passed"], counts["failed"]), (0, 1, 0))


class EndOfAProgram(unittest.TestCase):
    def test_a_crash_names_its_test_and_its_last_words(self):
        output = "[ RUN      ] A.One\n[       OK ] A.One (1 ms)\n[ RUN      ] A.Two\nterminate called\n\n"
        self.assertEqual(programs.end_of(-6, output), "stopped with -6 in or after A.Two; last line: terminate called")
        self.assertEqual(programs.end_of(1, ""), "stopped with 1")


if __name__ == "__main__":
    unittest.main()
