"""The commands in the documents work as they are written, and the files and verbs that they name exist."""

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/e2e"), str(ROOT / "tests/docs")]

import numpy as np  # noqa: E402

import mill  # noqa: E402
import pages  # noqa: E402
import serving  # noqa: E402

LINK = re.compile(r"\]\(([^)#\s]+)\)")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
# In code quotes: a path below one of the folders, with a file's ending.
PATH = re.compile(r"`((?:runtime|compiler|storage|api|server|config|tests|bench|docker)/[\w./-]+\.[a-z]{1,4})`")
# Names that stand for something to be written.
PLACEHOLDER = re.compile(r"(^|/)x[._]|(^|/)x_")


def documents():
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"], cwd=ROOT,
                            capture_output=True, text=True, check=True)
    return [Path(name) for name in listed.stdout.split()]


class Commands(unittest.TestCase):
    def run_block(self, block, folder):
        """Runs a block as it stands, but for the place of what it reads and writes."""
        for name in ("build/bin/tensormill", "tests/models/"):
            block = block.replace(name, f"{ROOT}/{name}")
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", block], cwd=folder, capture_output=True, text=True,
                              env={**os.environ, "no_proxy": "*"}, timeout=mill.PROGRAM_LIMIT_S, check=False)
        self.assertEqual(done.returncode, 0, f"{block}\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def server_that_compiled(self):
        """One that has the package: on a machine that is busy with more, a compile outlasts the 30 s that a request waits."""
        server = serving.make_server(self)
        server.upload("digits", (ROOT / "tests/models/digits.onnx").read_bytes())
        server.compile("digits", {"image": [1, 1, 28, 28]})
        return server

    def test_readme_with_a_server(self):
        block = pages.shell_blocks("README.md")[1]
        start, rest = block.split("\n", 1)
        self.assertRegex(start, r"^build/bin/tensormill serve --listen 127\.0\.0\.1:8080 --data \S+ >build/\S+ 2>&1 &$")
        server = self.server_that_compiled()
        with tempfile.TemporaryDirectory() as folder:
            out = self.run_block(rest.replace("127.0.0.1:8080", f"127.0.0.1:{server.port}"), folder)
            self.assertRegex(out, r'"label" *: *"7"')

    def test_readme_on_the_command_line(self):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "build").mkdir()
            out = self.run_block(pages.shell_blocks("README.md")[0], folder)
            self.assertRegex(out, r"(?m)^\s*\S+ %\s+7$")

    def test_readme_is_one_screen(self):
        self.assertLess(len((ROOT / "README.md").read_text().splitlines()), 64)

    def test_http_page(self):
        server = self.server_that_compiled()
        with tempfile.TemporaryDirectory() as folder:
            np.savez(Path(folder) / "in.npz", image=np.zeros((1, 1, 28, 28), np.float32))
            for block in pages.shell_blocks("api/docs/pages/reference/http-rules.md"):
                self.run_block(block.replace("127.0.0.1:8080", f"127.0.0.1:{server.port}"), folder)
            with np.load(Path(folder) / "out.npz") as archive:
                self.assertEqual(archive["logits"].shape, (1, 10))

    def test_every_command_of_the_program_is_in_its_help(self):
        rows = re.findall(r'^TM_COMMAND\(\w+, "([a-z]+)"', (ROOT / "server/cli/commands.def").read_text(), re.MULTILINE)
        text = mill.check_program(self, "--help")
        self.assertEqual([name for name in rows if name not in text], [])


class Names(unittest.TestCase):
    maxDiff = None

    def test_links_lead_somewhere(self):
        """Those of the site's pages, also to what is generated, are looked at in the built site."""
        wrong = [f"{path}: {link}" for path in documents() for link in LINK.findall((ROOT / path).read_text())
                 if "://" not in link and not (ROOT / path.parent / link).exists() and pages.PAGES not in (ROOT / path).parents]
        self.assertEqual(wrong, [])

    def test_named_files_exist(self):
        wrong = []
        for path in documents():
            text = FENCE.sub("", (ROOT / path).read_text())
            wrong += [f"{path}: {name}" for name in PATH.findall(text)
                      if not PLACEHOLDER.search(name) and not (ROOT / name).exists()]
        self.assertEqual(wrong, [])

    def test_named_verbs_exist(self):
        verbs = set(re.findall(r"^    ([a-z]+)\) \w+", (ROOT / "dev").read_text(), re.MULTILINE))
        self.assertIn("demo", verbs)
        wrong = [f"{path}: ./dev {verb}" for path in documents()
                 for verb in re.findall(r"\./dev ([a-z]+)\b", (ROOT / path).read_text()) if verb not in verbs | {"help"}]
        self.assertEqual(wrong, [])

    def test_fuzz_targets_have_a_corpus(self):
        rows = re.findall(r"^TM_FUZZ\((\w+),", (ROOT / "tests/fuzz/targets.def").read_text(), re.MULTILINE)
        folders = sorted(path.name for path in (ROOT / "tests/fuzz/corpus").iterdir())
        self.assertEqual(sorted(rows), folders)


if __name__ == "__main__":
    unittest.main()
