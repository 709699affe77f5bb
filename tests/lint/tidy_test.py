"""clang-tidy 14 finds nothing in the files that differ from main (`./dev lint --all`: in any)."""

import shutil
import subprocess
import tempfile
import unittest
from functools import partial
from pathlib import Path

import compile_commands
from sources import ROOT, changed, in_parallel

TOOL = "clang-tidy-14"


def findings(database, path):
    done = subprocess.run([TOOL, "-p", database, "--quiet", str(path)], cwd=ROOT, capture_output=True, text=True,
                          check=False)
    lines = [line for line in done.stdout.splitlines() if ": error:" in line or ": warning:" in line]
    return lines or ([f"{path}: {TOOL} stopped with {done.returncode}: {done.stderr[-500:]}"] if done.returncode else [])


class Tidy(unittest.TestCase):
    def test_no_findings(self):
        self.assertIsNotNone(shutil.which(TOOL), f"{TOOL} is not installed")
        known = {entry["file"] for entry in compile_commands.entries()}
        self.assertTrue(known, "build/compile_commands.json names no file")
        # On main itself none differs, and nothing can be found: ./dev lint --all looks at every file.
        paths = [path for path in changed("*.cc", "*.h") if str(ROOT / path) in known]
        with tempfile.TemporaryDirectory() as folder:
            compile_commands.write(Path(folder))
            results = in_parallel(partial(findings, folder), paths)
        found = {line.replace(f"{ROOT}/", "") for lines in results for line in lines}
        self.assertEqual(sorted(found), [])


if __name__ == "__main__":
    unittest.main()
