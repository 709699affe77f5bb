"""The console's committed files are what its sources give, byte for byte, and keep within what a start may load."""

import gzip
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CONSOLE = ROOT / "api/console"
LIMIT_S = 300
START_BYTES = 300_000
# What the page asks for before anything is clicked.
START = ("index.html", "console.js", "console.css", "icon.svg")


def node(*words):
    done = subprocess.run(["node", *map(str, words)], cwd=CONSOLE, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    return done.returncode, done.stdout + done.stderr


class ConsoleBundleTest(unittest.TestCase):
    maxDiff = None

    def test_the_committed_files_are_what_the_sources_give(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(*self.first_and_zero(node(CONSOLE / "node_modules/vite/bin/vite.js", "build", "--outDir", folder,
                                                       "--emptyOutDir")))
            built = {path.name: path.read_bytes() for path in Path(folder).iterdir()}
        kept = {path.name: path.read_bytes() for path in (CONSOLE / "dist").iterdir()}
        self.assertEqual(sorted(built), sorted(kept))
        self.assertEqual([name for name in built if built[name] != kept[name]], [],
                         "`npm run build` in api/console makes them anew")

    @staticmethod
    def first_and_zero(result):
        return result[0], 0, result[1]

    def test_the_sources_have_the_types_that_they_say(self):
        code, words = node(CONSOLE / "node_modules/typescript/bin/tsc", "--noEmit")
        self.assertEqual(code, 0, words)

    def test_every_kind_of_job_has_a_name(self):
        kinds = re.search(r'TM_SCHEMA\("JobKind", "(.*)"\)', (ROOT / "api/schema/schemas.def").read_text()).group(1)
        named = re.search(r"\bkinds: \{(.*?)\}", (CONSOLE / "src/strings.ts").read_text()).group(1)
        self.assertEqual(re.findall(r"(\w+):", named), re.findall(r"'(\w+)'", kinds))
        self.assertIn("kind: " + kinds + ";", (CONSOLE / "src/types.ts").read_text())

    def test_a_start_is_small(self):
        sizes = {name: len(gzip.compress((CONSOLE / "dist" / name).read_bytes(), 9, mtime=0)) for name in START}
        self.assertLess(sum(sizes.values()), START_BYTES, sizes)

    def test_what_people_read_is_in_one_file(self):
        """No text between tags, and none in the attributes that people hear or see, but from strings.ts."""
        text = re.compile(r">[^<>{}=;()/]*[A-Za-z]{3,}[^<>{}=;()]*</|\b(?:title|aria-label|label|alt)=\"[^\"]+\"")
        allowed = re.compile(r"> TensorMill</|>(?:CSV|logits|NCHW|NHWC)</")
        wrong = []
        for path in sorted((CONSOLE / "src").rglob("*.tsx")):
            for number, line in enumerate(path.read_text().splitlines(), 1):
                wrong += [f"{path.relative_to(CONSOLE)}:{number}: {found.group(0)}" for found in text.finditer(line)
                          if not allowed.search(found.group(0))]
        self.assertEqual(wrong, [])

    def test_what_is_shipped_names_its_licences(self):
        licences = (CONSOLE / "dist/licenses.txt").read_text()
        self.assertIn((CONSOLE / "node_modules/preact/LICENSE").read_text().strip(), licences)


if __name__ == "__main__":
    unittest.main()
