"""clang-tidy 14 finds nothing in the files that differ from main (`./dev lint --all`: in any).

All files are looked at as they are compiled, in batches: most of the time for a file alone goes into the headers that it reads.
"""

import shutil
import subprocess
import tempfile
import unittest
from functools import partial
from pathlib import Path

import compile_commands
from sources import ALL, ROOT, changed, in_parallel, tracked

TOOL = "clang-tidy-14"
# A batch includes files, which is what this check is against.
CHECKS = "--checks=-bugprone-suspicious-include"


def findings(database, ours, path):
    """What is found in files of ours, which are read by the compilation of one."""
    done = subprocess.run([TOOL, "-p", database, "--quiet", CHECKS, str(path)], cwd=ROOT, capture_output=True, text=True,
                          check=False)
    lines = [line.replace(f"{ROOT}/", "") for line in done.stdout.splitlines() if ": error:" in line or ": warning:" in line]
    if done.returncode and not lines:
        return [f"{path}: {TOOL} stopped with {done.returncode}: {done.stderr[-500:]}"]
    return [line for line in lines if Path(line.split(":")[0]) in ours]


class Tidy(unittest.TestCase):
    def test_no_findings(self):
        self.assertIsNotNone(shutil.which(TOOL), f"{TOOL} is not installed")
        rows = compile_commands.compiled() if ALL else compile_commands.entries()
        # What is generated is not looked at.
        rows = [row for row in rows if "/build/" not in row["file"] or "/batches/" in row["file"]]
        known = {row["file"] for row in rows}
        self.assertTrue(known, "build/compile_commands.json names no file")
        # On main itself none differs, and nothing can be found: ./dev lint --all looks at every file.
        paths = sorted(known) if ALL else [path for path in changed("*.cc", "*.h") if str(ROOT / path) in known]
        with tempfile.TemporaryDirectory() as folder:
            compile_commands.write(Path(folder), rows)
            results = in_parallel(partial(findings, folder, set(tracked("*.cc", "*.h", "*.def"))), paths)
        found = sorted({line for lines in results for line in lines})
        self.assertFalse(found, "\n".join(found))


if __name__ == "__main__":
    unittest.main()
