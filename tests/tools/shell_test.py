"""The shell scripts parse, and shellcheck finds nothing in them."""

import errno
import os
import pty
import shutil
import subprocess
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ["dev", "config/build_progress", ".ci/run", "api/docs/install", "tests/docs/install", "tests/python/install", "config/package/make",
           "config/package/image", "config/package/prove", "docker/prove", "docker/image.sh", "tests/e2e/board_system"]


def everything(terminal):
    """What was written to the other side, which is closed: a read may give a part of it."""
    parts = []
    while True:
        try:
            parts.append(os.read(terminal, 4096))
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return b"".join(parts)


class Shell(unittest.TestCase):
    def run_tool(self, *command):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_scripts_parse(self):
        self.run_tool("bash", "-n", *SCRIPTS)

    def test_shellcheck(self):
        self.assertIsNotNone(shutil.which("shellcheck"), "shellcheck is not installed")
        self.run_tool("shellcheck", "-x", *SCRIPTS)

    def test_what_installs_take_is_told_apart(self):
        lines = (ROOT / "dev").read_text(encoding="utf-8").splitlines()
        told = next(line for line in lines if "counted apart" in line)
        self.assertLess(lines.index("  tests/tools/install_go_programs"), lines.index(told))
        self.assertIn("exec ", lines[lines.index(told) + 1])
        busy = "python3 -c 'import time\nwhile time.process_time() < 1.1: pass'"
        done = subprocess.run(["bash", "-c", "\n".join([*lines[:-1], busy, told]), "dev"], cwd=ROOT, capture_output=True, text=True,
                              check=True)
        self.assertRegex(done.stdout, r"^== installing other people's programs: \d+ s, [1-9]\d* s of CPU time, counted apart\n$")

    def test_the_compilers_cache_is_the_users_and_not_the_checkouts(self):
        """So a second clone, or one whose ignored files were cleaned away, compiles nothing again."""
        lines = (ROOT / "dev").read_text(encoding="utf-8").splitlines()[:-1]

        def folder(**environment):
            done = subprocess.run(["bash", "-c", "\n".join([*lines, 'bash -c "printenv CCACHE_DIR"']), "dev"], cwd=ROOT, text=True,
                                  env={"PATH": os.environ["PATH"], **environment}, capture_output=True, check=True)
            return done.stdout.strip()

        self.assertEqual(folder(HOME="/home/one"), "/home/one/.cache/ccache")
        self.assertEqual(folder(HOME="/home/one", XDG_CACHE_HOME="/fast"), "/fast/ccache")
        self.assertEqual(folder(HOME="/home/one", XDG_CACHE_HOME="/fast", CCACHE_DIR="/given"), "/given")
        # Nobody's home: the only folder that is certainly theirs.
        self.assertEqual(folder(), f"{ROOT}/.cache/ccache")

    STEPS = ("[1/196 2.5] Building a.o\n[49/196 155.080] Building b.o\nerror: FAILED [x/y] b.o\n  of two lines\n"
             "[195/196 600.0] Linking tensormill\n[196/196 605.0] done")

    def test_a_build_says_what_is_left(self):
        done = subprocess.run(["config/build_progress"], cwd=ROOT, input=self.STEPS, capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout.splitlines(),
                         ["[1/196, 2 s] Building a.o", "[49/196, 155 s, about 8 min left] Building b.o",
                          "error: FAILED [x/y] b.o", "  of two lines", "[195/196, 600 s, about 3 s left] Linking tensormill",
                          "[196/196, 605 s] done"])

    def test_steps_rewrite_one_line_of_a_terminal(self):
        ours, terminal = pty.openpty()
        subprocess.run(["config/build_progress"], cwd=ROOT, input=self.STEPS.encode(), stdout=terminal, check=True)
        os.close(terminal)
        shown = everything(ours).decode()
        os.close(ours)
        self.assertIn("\r\x1b[K[49/196, 155 s, about 8 min left] Building b.o\r\nerror: FAILED [x/y] b.o\r\n", shown)
        self.assertIn("a.o\r\x1b[K[49/196", shown)
        self.assertTrue(shown.endswith("[196/196, 605 s] done\r\n"), shown)

    def test_a_build_that_fails_fails(self):
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", "(echo '[1/2 1.0] x'; exit 3) | config/build_progress"], cwd=ROOT,
                              capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (3, "[1/2, 1 s, about 1 s left] x\n"))

    def test_an_unknown_verb_is_refused_with_code_2(self):
        done = subprocess.run(["./dev", "frobnicate"], cwd=ROOT, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("usage: ./dev VERB", done.stderr)


if __name__ == "__main__":
    unittest.main()
