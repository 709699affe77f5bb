"""A server whose catalog is a PostgreSQL database: everything works as with a file, the database may go and come, and several
processes may have it open."""

import http.client
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np

import mill
import serving

sys.path.insert(0, str(mill.ROOT / "tests/tools"))

import postgres_server  # noqa: E402

DIGITS = mill.ROOT / "tests/models/digits.onnx"
SHAPES = {"image": [1, 1, 28, 28]}
IMAGE = {"image": np.zeros((1, 1, 28, 28), np.float32)}
PASSWORD = "correct horse battery staple"


class PostgresTest(unittest.TestCase):
    def setUp(self):
        self.database = postgres_server.PostgresServer(password=PASSWORD)
        self.addCleanup(self.database.close)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.secret = Path(folder.name) / "password"
        self.secret.write_text(PASSWORD + "\n")

    def options(self, *more):
        return ("--catalog", self.database.tcp_url(), "--set", f"catalog.password_file={self.secret}", *more)

    def serve(self, *more):
        return serving.make_server(self, *self.options(*more))

    def test_a_model_is_compiled_deployed_and_served_and_all_of_it_is_in_the_database(self):
        server = self.serve()
        self.assertIn(server.upload("digits", DIGITS.read_bytes()).status, (200, 201))
        package = server.compile("digits", SHAPES)
        self.assertEqual(server.submit("digits", SHAPES).status, 200, "the same work is done once")
        self.assertIn(server.deploy("d", package).status, (200, 201, 202))
        serving.wait_for(lambda: server.infer("d", IMAGE).status == 200, "the deployment")
        self.assertEqual(self.database.sql("SELECT name FROM deployments"), "d")
        self.assertEqual(self.database.sql("SELECT state FROM jobs"), "succeeded")
        self.assertFalse((server.folder / "data/catalog.db").exists())
        self.assertEqual(server.stop(), 0)
        server.start()
        serving.wait_for(lambda: server.infer("d", IMAGE).status == 200, "the deployment after a restart")
        self.no_secret_is_told(server)
        self.assertEqual(server.stop(), 0)
        # The folder's blobs are named there: a collection by another catalog would take them for garbage.
        alone = self.program("serve", "--listen", "127.0.0.1:0", "--data", str(server.folder / "data"))
        self.assertEqual(alone.returncode, 3, alone.stderr)
        self.assertIn("belongs to the PostgreSQL catalog", alone.stderr)
        checked = self.program("fsck", "--data", str(server.folder / "data"), "--catalog", self.database.tcp_url(),
                               "--password-file", str(self.secret))
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)

    def program(self, *words):
        return subprocess.run([str(mill.PROGRAM), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              stdin=subprocess.DEVNULL, timeout=serving.DEADLINE)

    def no_secret_is_told(self, server):
        told = [Path(f"/proc/{server.process.pid}/cmdline").read_bytes().decode(), "\n".join(server.settings),
                (server.folder / "server.log").read_text(), server.request("GET", "/v1/config").body.decode()]
        for text in told:
            self.assertNotIn(PASSWORD, text)

    def test_loaded_models_answer_while_the_database_is_away_and_jobs_go_on_after(self):
        server = self.serve()
        server.upload("digits", DIGITS.read_bytes())
        package = server.compile("digits", SHAPES)
        server.deploy("d", package)
        serving.wait_for(lambda: server.infer("d", IMAGE).status == 200, "the deployment")
        self.database.stop()
        self.assertEqual(server.submit("digits", SHAPES, opt_level=1).status, 503)
        self.assertEqual(server.request("GET", "/v1/jobs").status, 503)
        self.assertEqual(server.infer("d", IMAGE).status, 200)
        self.assertEqual(server.request("GET", "/readyz").status, 200)
        self.database.start()
        self.assertTrue(server.compile("digits", SHAPES, opt_level=1))

    def test_one_process_cancels_what_another_runs_and_takes_nothing_up_that_is_leased(self):
        runs = self.serve()
        model = mill.generated("squeezenet11").read_bytes()
        runs.upload("slow", model)
        job = runs.submit("slow", {"data": [1, 3, 224, 224]}).json()["id"]
        state = lambda server: server.request("GET", f"/v1/jobs/{job}").json()["state"]
        serving.wait_for(lambda: state(runs) == "running", "the job")
        other = self.serve()
        self.assertEqual(state(other), "running", "it is not taken up again")
        self.assertEqual(self.database.sql(f"SELECT attempt FROM jobs WHERE id = '{job}'"), "1")
        self.assertIn(other.request("POST", f"/v1/jobs/{job}/cancel").status, (200, 202))
        self.assertEqual(other.finished(job)["state"], "cancelled")
        serving.wait_for(lambda: not runs.children(), "the child's end")
        text = other.request("GET", f"/v1/jobs/{job}/events").body.decode()
        self.assertIn("event: end", text)

    def test_a_stream_of_all_events_tells_what_another_process_does(self):
        first, second = self.serve(), self.serve()
        connection = http.client.HTTPConnection("127.0.0.1", second.port, timeout=serving.DEADLINE)
        self.addCleanup(connection.close)
        connection.request("GET", "/v1/events")
        stream = connection.getresponse()
        self.assertEqual(stream.status, 200)
        first.upload("digits", DIGITS.read_bytes())
        job = first.submit("digits", SHAPES).json()["id"]
        for line in stream:
            if job in line.decode():
                return
        self.fail("the stream ended")

    def test_what_is_not_allowed_is_refused_before_anything_is_listened_on(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        for url, code, why in ((f"postgresql://u:{PASSWORD.split()[0]}@127.0.0.1/tm", 2, "password"),
                               ("postgresql://db.example.org/tm?sslmode=require", 2, "verify-full"),
                               ("http://127.0.0.1/tm", 2, "expected postgresql://"),
                               (self.database.tcp_url(), 5, "password")):
            done = self.program("serve", "--listen", "127.0.0.1:0", "--data", folder.name, "--catalog", url)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(why, done.stderr)
            self.assertNotIn("correct", done.stderr)


if __name__ == "__main__":
    unittest.main()
