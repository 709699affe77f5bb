"""The gate's samples, and what a sweep remembers, without running one."""

import contextlib
import io
import re
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent))

import scope  # noqa: E402 (beside this file)
import run_sweeps  # noqa: E402
import run_tests  # noqa: E402
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
        with mock.patch.dict("os.environ", {"TM_TEST_SCOPE": "gate"}):
            self.assertEqual(scope.chosen_tests("a_tests", tests, table), ["Many/X.A/1", "Other.B"])
            self.assertEqual(scope.chosen_tests("b_tests", tests, table), tests)
        with mock.patch.dict("os.environ", {"TM_TEST_SCOPE": "sweep"}):
            self.assertEqual(scope.chosen_tests("a_tests", tests, table), tests)

    def test_the_gate_emulates_the_features_of_newer_processors(self):
        path = "tests/e2e/aarch64_test.py"
        own = [f"Aarch64.{name}" for name in re.findall(r"^    def (test_\w+)", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)]
        models = [f"Aarch64.test_{target}_{number}" for target in ("cortex_a72", "generic") for number in range(8)]
        with mock.patch.dict("os.environ", {"TM_TEST_SCOPE": "gate"}):
            chosen = scope.chosen_tests(path, own + models)
        self.assertIn("Aarch64.test_newer_processors_run_their_packages_and_others_say_what_they_lack", own)
        self.assertLessEqual(set(own), set(chosen))
        self.assertLess(len(chosen), len(own) + len(models) // 2)

    def test_no_variable_of_a_sweep_looks_like_a_setting(self):
        """Servers that a sweep starts have its environment, and refuse settings that they do not know."""
        names = {name for each in sweeps.SWEEPS for name in each.env}
        self.assertTrue(names)
        self.assertEqual([name for name in names if name.startswith("TENSORMILL_")], [])

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

    def test_a_program_that_says_nothing_is_stopped(self):
        waits, ends = "import signal; print('waits', flush=True); signal.pause()", "print('ends')"
        code, output, _ = run_sweeps.run_program([sys.executable, "-c", waits], show=lambda _: None, limit=0.3)
        self.assertEqual((code, output), ("a time-out after 0.3 s", "waits\n"))
        code, output, _ = run_sweeps.run_program([sys.executable, "-c", ends], show=lambda _: None)
        self.assertEqual((code, output), (0, "ends\n"))

    def test_the_sweep_of_tests_has_every_group(self):
        """Those of sanitizers and of mutants are sweeps of their own."""
        units = [unit for one in sweeps.SWEEPS if one.name in ("tests", "sanitizers", "mutants") for unit in one.units()]
        self.assertEqual(sorted(unit.removeprefix("./dev test ") for unit in units), sorted(set(run_tests.GROUPS) - {"build"}))

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

    def resumed(self, commits, again=False):
        """Runs a sweep of two commands, of which the second fails at first, on each of the commits; the commands of each run, and
        the rows that it left."""
        codes, ran, rows = iter([0, 1] + [0] * 8), [], []

        def run_program(command, **_):
            ran[-1].append(command[0])
            return next(codes), "", 6.0

        sweep = sweeps.Sweep("small", "two commands", sweeps.fixed("first", "second"))
        with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as patches:
            for name, value in (("STATE", Path(folder)), ("RESULTS", Path(folder) / "sweeps.md"), ("SWEEPS", [sweep]),
                                ("run_program", run_program)):
                patches.enter_context(mock.patch.object(run_sweeps, name, value))
            patches.enter_context(contextlib.redirect_stdout(io.StringIO()))
            for commit in commits:
                ran.append([])
                with mock.patch.object(run_sweeps, "commit", lambda now=commit: now):
                    run_sweeps.run(sweep, again and len(ran) > 1)
                rows.append((Path(folder) / "sweeps.md").read_text(encoding="utf-8").splitlines()[-1])
        return ran, rows

    def test_a_sweep_goes_on_where_it_was(self):
        ran, rows = self.resumed(["aaaa", "aaaa", "aaaa"])
        self.assertEqual(ran, [["first", "second"], ["second"], []])
        self.assertRegex(rows[0], r"^\| small \| \d{4}-\d\d-\d\d \| aaaa \| .* \| 2 of 2 \| 1 passed, 1 failed, 0 skipped \| 0.2 \|$")
        self.assertRegex(rows[1], r"\| 2 passed, 0 failed, 0 skipped \| 0.2 \|$")
        self.assertEqual(rows[2], rows[1])

    def test_another_commit_and_changes_begin_anew(self):
        self.assertEqual(self.resumed(["aaaa", "bbbb"])[0], [["first", "second"]] * 2)
        self.assertEqual(self.resumed(["aaaa+", "aaaa+"])[0], [["first", "second"]] * 2)
        self.assertEqual(self.resumed(["aaaa", "aaaa"], again=True)[0], [["first", "second"]] * 2)


    def test_rows_are_no_change(self):
        with tempfile.TemporaryDirectory() as folder:
            root, rows = Path(folder), Path(folder) / "bench/sweeps.md"
            rows.parent.mkdir()

            def change(path, message=None):
                path.write_text(path.read_text() + "x" if path.exists() else "")
                run_sweeps.git("add", ".")
                if message:
                    run_sweeps.git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", message)

            with mock.patch.object(run_sweeps, "ROOT", root), mock.patch.object(run_sweeps, "RESULTS", rows):
                run_sweeps.git("init", "-q")
                change(rows)
                change(root / "code", "both")
                measured = run_sweeps.commit()
                self.assertEqual(measured, run_sweeps.git("rev-parse", "--short=10", "HEAD"))
                change(rows)
                self.assertEqual(run_sweeps.commit(), measured)
                change(rows, "a row")
                self.assertEqual(run_sweeps.commit(), measured)
                change(root / "code")
                self.assertEqual(run_sweeps.commit(), measured + "+")
                change(root / "code", "code")
                self.assertNotIn(run_sweeps.commit(), (measured, measured + "+"))


class Budget(unittest.TestCase):
    def printed(self, cpu_min, calls, cache="/usr/bin/ccache"):
        """What a whole gate says that took so many CPU minutes, with these lines in the log of the compiler's cache, if any."""
        totals = run_tests.Totals()
        totals.cpu = [("quick_tests", 6), ("slow_tests", 60 * cpu_min - 6)]
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as out:
            log = Path(folder) / "stats"
            if calls:
                log.write_text("\n".join(calls), encoding="utf-8")
            with mock.patch.dict("os.environ", {"CCACHE_STATSLOG": str(log)}), mock.patch("shutil.which", lambda _: cache):
                run_tests.print_spent([run_tests.Spent("unit", 2.0, cpu_min)], totals, True)
        return out.getvalue()

    def test_minutes_by_group_and_what_is_over_budget(self):
        warm = ["direct_cache_hit", "preprocessed_cache_hit", "cache_miss"]
        text = self.printed(40, warm)
        self.assertIn("    2.0 min,   40.0 CPU min  unit\n", text)
        self.assertIn("10.0 CPU min OVER the budget of 30 CPU min with a warm compiler cache", text)
        self.assertLess(text.index("slow_tests"), text.index("quick_tests"))
        self.assertIn("within the budget of 45 CPU min with a cold compiler cache", self.printed(40, warm[1:]))
        self.assertIn("5.0 CPU min OVER the budget of 45", self.printed(50, ["cache_miss"]))

    def test_a_tree_that_is_up_to_date_has_the_warm_budget(self):
        self.assertIn("10.0 CPU min OVER the budget of 30 CPU min with a warm compiler cache", self.printed(40, []))
        self.assertIn("within the budget of 45 CPU min with a cold compiler cache", self.printed(40, [], cache=None))


if __name__ == "__main__":
    unittest.main()
