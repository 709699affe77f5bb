"""tensormill bench against a server of the program: both protocols, what is counted, what is refused."""

import contextlib
import http.server
import json
import ssl
import subprocess
import tempfile
import threading
import unittest
from pathlib import Path

import numpy as np

import mill
import serving

SMALL = ["--duration", "0.25", "--connections", "4", "--warmup", "1"]


class Bench(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        cls.server = serving.Server(cls.folder)
        cls.addClassCleanup(cls.server.stop)
        cls.server.upload("digits", (mill.ROOT / "tests/models/digits.onnx").read_bytes())
        package = cls.server.compile("digits", {"image": [1, 1, 28, 28]}, opt_level=1)
        answer = cls.server.send_json("PUT", "/v1/deployments/digits", {"package": package, "max_queue": 256})
        assert answer.status in (200, 201), answer.body
        cls.url = f"http://127.0.0.1:{cls.server.port}"

    def bench(self, *args, rate="200"):
        return json.loads(mill.check_program(self, "bench", *args, "--rate", rate, *SMALL, "--json"))

    def test_both_protocols(self):
        feed = self.folder / "in.npz"
        np.savez(feed, image=np.zeros((1, 1, 28, 28), np.float32))
        for args in (["--protocol", "v2"], ["--protocol", "npz"], ["--protocol", "npz", "-i", feed], ["--arrival", "poisson", "--seed", 3]):
            made = self.bench(f"{self.url}/v1/deployments/digits", *args)
            row, = made["rates"]
            self.assertEqual((made["deployment"], row["offered_rate"]), ("digits", 200))
            self.assertEqual((row["answered"], row["failed"]), (row["requests"], {}))
            if "poisson" not in args:
                self.assertEqual(row["requests"], 50)
            for times in (row["latency_ms"], row["service_ms"]):
                self.assertEqual(sorted(times), sorted(["mean", "p50", "p90", "p95", "p99", "p99_9", "max"]))
                self.assertLessEqual(times["p50"], times["p99"])
                self.assertLessEqual(times["p99"], times["max"])
            self.assertLessEqual(row["service_ms"]["p50"], row["latency_ms"]["p50"])

    def test_the_server_counts_as_many(self):
        def answered():
            stats, = self.server.request("GET", "/v2/models/digits/stats").json()["model_stats"]
            return stats["inference_count"]

        before = answered()
        made = self.bench(self.url, rate="100,300")
        self.assertEqual([row["requests"] for row in made["rates"]], [25, 75])
        self.assertEqual(answered() - before, 100 + 1)  # and one before the first rate
        text = mill.check_program(self, "bench", self.url, "--rate", "200", *SMALL)
        self.assertRegex(text, r"^200 requests/s, even: 50 of 50 answered, ")
        self.assertIn("p99.9", text)

    def test_what_is_refused(self):
        for code, words, args in ((2, "no http or https address", ["ftp://x"]), (2, "PEM", ["https://127.0.0.1:1", "--ca", __file__]), (2, "--insecure", ["https://127.0.0.1:1", "--ca", "x", "--insecure"]),
                                  (2, "/v1/other", [f"{self.url}/v1/other"]),
                                  (3, "none", [f"{self.url}/v1/deployments/none"]), (2, "deployment's name", [self.url, "--deployment", "a b"]),
                                  (5, "127.0.0.1:1", ["http://127.0.0.1:1"]), (2, "--rate", [self.url, "--rate", "0"]),
                                  (3, "20 million", [self.url, "--rate", "1000000", "--duration", "1000"]),
                                  (3, "[1,1,28,27]", [self.url, "--input-shapes", "image:[1,1,28,27]"])):
            done = mill.run_program("bench", *args)
            self.assertEqual(done.returncode, code, f"{args}: {done.stderr}")
            self.assertIn(words, done.stderr)

    @contextlib.contextmanager
    def server_of(self, answers, context=None):
        """The address of a server of the test's own that gives these statuses, one after the other; 200 behind them."""
        waiting = iter(answers)

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(next(waiting, 200))
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            if context:
                # In the connection's own thread: one that fails must not hold up the others.
                server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
                server.handle_error = lambda *_: None
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            try:
                yield f"http{'s' if context else ''}://127.0.0.1:{server.server_port}/v1/deployments/x"
            finally:
                server.shutdown()
                thread.join()

    def feed(self):
        path = self.folder / "x.npz"
        np.savez(path, x=np.zeros(1, np.float32))
        return ["-i", path, "--rate", "100", "--duration", "0.2", "--connections", "1", "--warmup", "1", "--json"]

    def test_failures_are_counted_by_status(self):
        with self.server_of([200] + [200, 503] * 10) as url:
            made = json.loads(mill.check_program(self, "bench", url, *self.feed()))
        self.assertEqual((made["rates"][0]["answered"], made["rates"][0]["failed"]), (10, {"503": 10}))

    def certificate(self, name):
        """A context of a certificate for that name or address, and its file."""
        key, file = self.folder / "key.pem", self.folder / f"{name.replace(':', '-')}.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key,
                        "-out", file, "-subj", "/CN=test", "-addext", f"subjectAltName={name}"], check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file, key)
        return context, file

    def test_tls(self):
        context, file = self.certificate("IP:127.0.0.1")
        with self.server_of([], context) as url:
            for args in (["--ca", file], ["--insecure"]):
                made = json.loads(mill.check_program(self, "bench", url, *args, *self.feed()))
                self.assertEqual((made["rates"][0]["answered"], made["url"]), (20, url.rsplit("/v1", 1)[0]))
            done = mill.run_program("bench", url, *self.feed())
            self.assertEqual(done.returncode, 5)
            self.assertIn("its certificate: self-signed", done.stderr)
        context, file = self.certificate("DNS:other.example")
        with self.server_of([], context) as url:
            done = mill.run_program("bench", url, "--ca", file, *self.feed())
            self.assertEqual(done.returncode, 5)
            self.assertIn("its certificate: IP address mismatch", done.stderr)


if __name__ == "__main__":
    unittest.main()
