"""`tensormill backup` of a store that a server has open and changes, and `tensormill restore`."""

import tempfile
import threading
import unittest
from pathlib import Path

import numpy as np

import mill
import serving

DIGITS = mill.ROOT / "tests/models/digits.onnx"
SHAPES = {"image": [1, 1, 28, 28]}
PICTURE = {"image": np.zeros((1, 1, 28, 28), np.float32)}


class BackupTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.server = serving.make_server(self)
        self.assertEqual(self.server.upload("digits", DIGITS.read_bytes()).status, 201)

    def serve(self, data):
        """A server on a restored store."""
        home = Path(data).parent
        server = serving.Server(home)
        self.addCleanup(server.stop, serving.signal.SIGKILL)
        return server

    def test_a_deployment_comes_back_from_a_backup(self):
        package = self.server.compile("digits", SHAPES, opt_level=1)
        self.assertEqual(self.server.deploy("digits", package).status, 201)
        answer = serving.from_npz(self.server.infer("digits", PICTURE).body)
        backup = self.folder / "backup"
        mill.check_program(self, "backup", "--data", self.server.folder / "data", "-o", backup)
        self.assertEqual(mill.run_program("fsck", "--data", backup).returncode, 0)
        self.assertEqual(self.server.infer("digits", PICTURE).status, 200)
        (self.folder / "home").mkdir()
        data = self.folder / "home/data"
        self.assertEqual(mill.run_program("restore", self.folder / "nothing", "--data", data).returncode, 3)
        mill.check_program(self, "restore", backup, "--data", data)
        again = mill.run_program("restore", backup, "--data", data)
        self.assertEqual(again.returncode, 3)
        self.assertIn("is a store already", again.stderr)
        restored = self.serve(data)
        np.testing.assert_array_equal(serving.from_npz(restored.infer("digits", PICTURE).body)["logits"], answer["logits"])
        busy = mill.run_program("backup", "--data", backup, "-o", data)
        self.assertEqual(busy.returncode, 3, busy.stderr)

    def test_backups_while_models_come_and_go(self):
        stop, problems, data = threading.Event(), [], DIGITS.read_bytes()

        def change():
            number = 0
            while not stop.is_set():
                number += 1
                answer = self.server.upload("other", data + bytes([0x12, 0x04]) + f"{number:04d}".encode(), "&replace=1")
                problems.extend([] if answer.status == 201 else [answer.body])
                self.server.request("POST", "/v1/gc")
        worker = threading.Thread(target=change)
        worker.start()
        try:
            for _ in range(5):
                mill.check_program(self, "backup", "--data", self.server.folder / "data", "-o", self.folder / "backup")
                checked = mill.run_program("fsck", "--data", self.folder / "backup")
                self.assertEqual(checked.returncode, 0, checked.stdout)
        finally:
            stop.set()
            worker.join()
        self.assertEqual(problems, [])


if __name__ == "__main__":
    unittest.main()
