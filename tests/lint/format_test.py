"""Every C++ file is laid out as clang-format 14 lays it out (`./dev format` does it)."""

import shutil
import subprocess
import unittest

from sources import ROOT, tracked

TOOL = "clang-format-14"


class Format(unittest.TestCase):
    def test_sources_are_formatted(self):
        self.assertIsNotNone(shutil.which(TOOL), f"{TOOL} is not installed")
        paths = [str(path) for path in tracked("*.cc", "*.h")]
        done = subprocess.run([TOOL, "--dry-run", "--ferror-limit=1", *paths], cwd=ROOT, capture_output=True,
                              text=True, check=True)
        wrong = sorted({line.split(":")[0] for line in done.stderr.splitlines() if "clang-format-violations" in line})
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    unittest.main()
