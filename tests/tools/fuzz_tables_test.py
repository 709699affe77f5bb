"""The tables of tests/fuzz name what is there: parser files, corpora, and for each planted bug its text, once."""

import re
import subprocess
import sys
import tomllib
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FUZZ = ROOT / "tests/fuzz"
sys.path.insert(0, str(FUZZ))

import coverage  # noqa: E402  (found through the line above)

TARGETS = re.findall(r"^TM_FUZZ\((\w+),", (FUZZ / "targets.def").read_text(encoding="utf-8"), re.MULTILINE)
WITH_PLANTED_BUGS = {"http_head", "forwarded", "settings", "json", "npz", "onnx", "archive", "package", "records", "target", "picture"}


class FuzzTables(unittest.TestCase):
    def test_targets(self):
        self.assertGreaterEqual(len(TARGETS), 18)
        self.assertEqual(sorted(TARGETS), sorted(path.name for path in (FUZZ / "corpus").iterdir()))
        for target in TARGETS:
            files = coverage.parser_files(target)
            self.assertTrue(files, target)
            for name in files:
                self.assertTrue((ROOT / name).is_file(), f"{target}: {name}")

    def test_names_that_dev_knows(self):
        known = re.search(r"known=\$\((sed -n .* tests/fuzz/targets\.def)\)", (ROOT / "dev").read_text(encoding="utf-8")).group(1)
        done = subprocess.run(["bash", "-c", known], cwd=ROOT, check=True, capture_output=True, text=True)
        self.assertEqual(done.stdout.split(), TARGETS)

    def test_bodies(self):
        """Each reader of a body is among what is fuzzed, and its file among those whose lines are counted."""
        target = (FUZZ / "targets/http_targets.cc").read_text(encoding="utf-8")
        readers = re.findall(r"\b(read_\w+)\(std::string_view body\)", (ROOT / "api/schema/requests.h").read_text(encoding="utf-8"))
        self.assertGreaterEqual(len(readers), 9)
        self.assertEqual([name for name in readers if f"schema::{name}(bytes)" not in target], [])
        files = [path for path in (ROOT / "api/schema").glob("*.cc")
                 if any(re.search(rf"^\S.* {name}\(std::string_view", path.read_text(encoding="utf-8"), re.MULTILINE) for name in readers)]
        self.assertLessEqual({str(path.relative_to(ROOT)) for path in files}, set(coverage.parser_files("http_body")))

    def test_planted_bugs(self):
        bugs = tomllib.loads((FUZZ / "planted.toml").read_text(encoding="utf-8"))["bug"]
        self.assertEqual(len({bug["name"] for bug in bugs}), len(bugs))
        for bug in bugs:
            self.assertEqual((ROOT / bug["file"]).read_text(encoding="utf-8").count(bug["find"]), 1, bug["name"])
            self.assertIn(bug["file"], coverage.parser_files(bug["target"]), bug["name"])
        self.assertLessEqual(WITH_PLANTED_BUGS, {bug["target"] for bug in bugs})


if __name__ == "__main__":
    unittest.main()
