"""A disk that fills up: every operation says 507, or its job fails and says why; nothing half-written stays; what was
there goes on serving; when space returns, all goes on."""

import errno
import os
import subprocess
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
SIZE = "16m"
# What is left when an operation begins: it fails at its first write, later, or at its last ones.
LEFT = (0, 16 << 10, 128 << 10, 400 << 10, 700 << 10)


def renamed(data, number):
    """The model with another producer: other bytes, same answers."""
    return data + bytes([0x12, 0x04]) + f"{number:04d}".encode()


class DiskFullTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.data = Path(folder.name) / "data"
        self.data.mkdir()
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(self.data)],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            self.skipTest(f"no small disk to fill: {done.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", "-l", str(self.data)], check=True)
        self.server = serving.Server(folder.name)
        self.addCleanup(self.server.stop, serving.signal.SIGKILL)
        self.model = DIGITS.read_bytes()
        self.assertEqual(self.server.upload("digits", self.model).status, 201)
        self.package = self.server.compile("digits", SHAPES)
        self.assertEqual(self.server.deploy("digits", self.package).status, 201)

    def fill(self, left):
        """Leaves about `left` bytes of the disk. The server writes meanwhile, so that no free space that was asked for
        is certain to be there: halves of it are taken until a page is refused, and what is to be left is given back."""
        disk = os.statvfs(self.data)
        step, size = disk.f_bavail * disk.f_bsize, 0
        with open(self.data / "filler", "wb") as file:
            while step >= disk.f_bsize:
                try:
                    os.posix_fallocate(file.fileno(), size, step)
                    size += step
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
                    step //= 2
            file.truncate(max(size - left, 0))

    def release(self):
        (self.data / "filler").unlink()

    def serves(self):
        answer = self.server.infer("digits", PICTURE)
        self.assertEqual(answer.status, 200, answer.body)
        self.assertEqual(self.server.request("GET", "/healthz").status, 200)

    def check_refused(self, answer, good):
        """True when it was refused, which must be for want of space."""
        if answer.status in good:
            return False
        self.assertEqual((answer.status, answer.json()["code"]), (507, "disk_full"), answer.body)
        return True

    def submit(self):
        """The id of a compile of its own; None when it was refused for want of space."""
        answer = self.server.submit("digits", SHAPES, opt_level=1, force=True)
        return None if self.check_refused(answer, (200, 202)) else answer.json()["id"]

    def ended(self, job):
        """The job, which ended well or for want of space."""
        found = self.server.finished(job)
        if found["state"] != "succeeded":
            self.assertEqual(found["error"]["code"], "disk_full", found)
        return found

    def test_every_operation_fails_cleanly_and_recovers(self):
        refused = {"import": 0, "upload": 0, "deploy": 0, "compile": 0}
        for number, left in enumerate(LEFT):
            before = serving.blobs(self.server)
            with self.subTest(left=left):
                self.fill(left)
                model = renamed(self.model, number)
                if self.check_refused(self.server.upload(f"m{number}", model), (201,)):
                    refused["import"] += 1
                    self.assertEqual(self.server.request("GET", f"/v1/models/m{number}").status, 404)
                    # What an operation before this one left may have been collected meanwhile.
                    names, unfinished = serving.blobs(self.server)
                    self.assertEqual((sorted(set(names) - set(before[0])), unfinished), ([], []))
                self.serves()
                begun = self.server.request("POST", "/v1/uploads")
                if not self.check_refused(begun, (201,)):
                    path = f"/v1/uploads/{begun.json()['id']}"
                    refused["upload"] += self.check_refused(self.server.request("PATCH", path, bytes(1 << 20)), (202,))
                    self.check_refused(self.server.request("DELETE", path), (204,))
                # Its end may have to wait for room too: it is a row of the store.
                job = self.submit()
                self.serves()
                answer = self.server.deploy("digits", self.package, version=str(number + 2))
                refused["deploy"] += self.check_refused(answer, (200,))
                self.serves()
                self.release()
                again = self.server.upload(f"m{number}", model)
                self.assertIn(again.status, (200, 201), again.body)
                refused["compile"] += job is None or self.ended(job)["state"] != "succeeded"
                self.assertEqual(self.ended(self.submit())["state"], "succeeded")
                self.assertIn(self.server.deploy("digits", self.package, version=str(number + 2)).status, (200, 201))
                self.serves()
                self.assertEqual(serving.blobs(self.server)[1], [], "unfinished writes stay")
        self.assertGreater(refused["import"], 1, refused)
        self.assertGreater(refused["upload"], 1, refused)
        self.assertGreater(refused["compile"], 0, refused)
        self.fill(0)
        self.check_refused(self.server.request("POST", "/v1/gc"), (200,))
        self.assertIn(self.server.request("DELETE", "/v1/models/m0").status, (204, 507))
        self.release()
        self.assertEqual(self.server.request("POST", "/v1/gc").status, 200)
        self.assertEqual(self.server.stop(), 0)
        done = mill.run_program("fsck", "--data", self.data)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_a_start_on_a_full_disk_is_ready_when_there_is_room(self):
        self.assertEqual(self.server.stop(), 0)
        self.fill(0)
        self.server.port = None

        def complaint():
            reason = self.server.port and self.server.request("GET", "/readyz").json()["reason"]
            return reason if reason and reason.startswith("restoring") else None

        def make_room():
            serving.wait_for(complaint, "a server that says why it is not ready")
            self.release()
        maker = threading.Thread(target=make_room)
        maker.start()
        self.server.start()
        maker.join()
        self.serves()


if __name__ == "__main__":
    unittest.main()
