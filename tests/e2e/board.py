"""A board on the desk, of which the processor alone is emulated: the program, cross-compiled for 64-bit ARM, is a worker in a Debian
of that architecture under qemu-user, with processes and children as on a board. A server of this machine tunes for it and builds,
the board measures, and runs the package that came out.

    board.py [--folder FOLDER]      (./dev sweep board; the folder, 1.5 GB, is kept)
"""

import argparse
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import numpy as np

import mill
import serving
import workers

FOLDER = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "tensormill/board"
SYSTEM = mill.ROOT / "tests/e2e/board_system"
BUILD = mill.ROOT / "build-board"
DIGITS = mill.ROOT / "tests/models/digits.onnx"
TARGET = "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72 -num-cores=1"
SHAPES = "image:[1,1,28,28]"
LABEL = "board=rpi4"
NICE = ["nice", "-n", "10"]


def run(*words, env=None):
    done = subprocess.run(list(map(str, words)), cwd=mill.ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          env={**os.environ, **(env or {})})
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, words))}\n{done.stdout[-8000:]}")
    return done.stdout


def build_program(folder):
    """The program in FOLDER/root/opt."""
    run(SYSTEM, folder)
    root = folder / "root"
    libraries = f"{root}/usr/lib/aarch64-linux-gnu/pkgconfig:{root}/usr/share/pkgconfig"
    env = {"SYSROOT": str(root), "PKG_CONFIG_SYSROOT_DIR": str(root), "PKG_CONFIG_LIBDIR": libraries}
    run("cmake", "--preset", "board", env=env)
    run(*NICE, "cmake", "--build", BUILD, "--target", "tensormill", "--parallel", os.cpu_count(), env=env)
    (root / "opt").mkdir(exist_ok=True)
    shutil.copy(BUILD / "bin/tensormill", root / "opt/tensormill")


class Board(workers.Worker):
    """The worker's process is the emulator's: what enters the other system becomes it."""

    def __init__(self, test, folder, url, *options):
        home = Path(tempfile.mkdtemp(dir=folder / "root/tmp"))
        test.addCleanup(shutil.rmtree, home)
        self.folder, self.path = home, home / "worker.log"
        inside = "/" + str(home.relative_to(folder / "root"))
        with open(self.path, "ab") as log:
            self.process = subprocess.Popen(
                [str(SYSTEM), str(folder), "/opt/tensormill", "worker", "--server", url, "--data", f"{inside}/data", *options],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        test.addCleanup(self.end)


class BoardTest(unittest.TestCase):
    folder = FOLDER

    @classmethod
    def setUpClass(cls):
        build_program(cls.folder)

    def key(self, folder, name, scopes):
        """A file with a new key."""
        made = mill.check_program(self, "keys", "--keys-file", folder / "keys", "add", name, "--scopes", scopes)
        path = folder / f"{name}.key"
        path.write_text(made.strip() + "\n", encoding="utf-8")
        return path

    def check_beside(self, board, *args):
        """What the command prints, which must succeed; where the board's program ends it has nothing to wait for."""
        process = subprocess.Popen([str(mill.PROGRAM), *map(str, args)], cwd=mill.ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   stdin=subprocess.DEVNULL, text=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        while True:
            try:
                said, _ = process.communicate(timeout=5)
                break
            except subprocess.TimeoutExpired:
                self.assertIsNone(board.process.poll(), board.log())
        self.assertEqual(process.returncode, 0, said + board.log())
        return said

    def test_the_program_is_the_other_processors(self):
        said = run(SYSTEM, self.folder, "/opt/tensormill", "--version")
        self.assertIn(run(mill.PROGRAM, "--version").split()[0], said)
        self.assertEqual((self.folder / "root/opt/tensormill").read_bytes()[18:20], b"\xb7\x00", "EM_AARCH64")

    def test_a_kernel_is_tuned_on_the_board_and_the_package_runs_there(self):
        work = Path(self.enterContext(tempfile.TemporaryDirectory()))
        measure = self.key(work, "board", f"worker:measure,label:{LABEL}")
        me = self.key(work, "me", "read,write,infer")
        server = serving.make_server(self, "--keys-file", str(work / "keys"))
        url = f"http://127.0.0.1:{server.port}"
        inside = self.folder / "root/tmp" / work.name
        inside.mkdir()
        self.addCleanup(shutil.rmtree, inside)
        shutil.copy(measure, inside / "board.key")
        board = Board(self, self.folder, url, "--key-file", f"/tmp/{work.name}/board.key", "--name", "desk", "--verbs", "measure,benchmark,run")
        remote = ("--on", LABEL, "--server", url, "--key-file", me)
        tuned = self.check_beside(board, "tune", DIGITS, "--target", TARGET, "--input-shapes", SHAPES, "--tasks", "0", "--trials", "8",
                                  "--tuner", "random", "--min-repeat-ms", "1", *remote, "-o", work / "records.json")
        self.assertRegex(tuned, rf"the model on {LABEL}: \d+\.\d+ -> \d+\.\d+ ms after 8 trials")
        self.assertIn("aarch64", (work / "records.json").read_text(encoding="utf-8"))
        [package] = set(re.findall(r"sha256:[0-9a-f]{64}", tuned))
        feed = work / "in.npz"
        np.savez(feed, image=np.random.default_rng(0).random((1, 1, 28, 28), dtype=np.float32))
        self.check_beside(board, "run", package, "-i", feed, "-o", work / "there.npz", *remote)
        mill.check_program(self, "compile", DIGITS, "--input-shapes", SHAPES, "-o", work / "here.tar")
        mill.run_package(self, work / "here.tar", feed, work / "here.npz")
        self.assertEqual(mill.compare.compare_sets(mill.load_npz(work / "there.npz"), mill.load_npz(work / "here.npz"), mill.tolerance(3)), [])
        print(tuned.strip().splitlines()[-2:], flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    options, rest = parser.parse_known_args()
    BoardTest.folder = options.folder
    unittest.main(argv=["board.py", *rest], verbosity=2)
