"""Connections of a running server: clients that end their half, too many of one address, live responses past their number,
and the end of the process while requests are in work."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import tempfile
import unittest
from pathlib import Path

import numpy as np

import loop_models
import mill
import serving

DIGITS = mill.ROOT / "tests/models/digits.onnx"


class Raw:
    """A socket to a server, from an address of the loopback network; `port`: another one than that of HTTP."""

    def __init__(self, test, server, address="127.0.0.1", port=None):
        self.socket = socket.create_connection(("127.0.0.1", port or server.port), timeout=serving.DEADLINE,
                                               source_address=(address, 0))
        test.addCleanup(self.socket.close)

    def send(self, method, path, body=b"", *fields):
        lines = [f"{method} {path} HTTP/1.1", "Host: localhost", *fields]
        if body:
            lines += [f"Content-Length: {len(body)}"]
        self.socket.sendall("\r\n".join([*lines, "", ""]).encode() + body)

    def until(self, *ends):
        """What came up to one of `ends`, or to the end of the connection."""
        got = b""
        while not any(end in got for end in ends):
            some = self.socket.recv(1 << 16)
            if not some:
                return got
            got += some
        return got


class Pipe:
    """A pipe with a name that is open for reading, and that nobody reads."""

    def __init__(self, test, path):
        self.path = path
        os.mkfifo(path)
        # Both ends: who opens one of them waits for nobody.
        self.ends = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        test.addCleanup(os.close, self.ends)

    def fill(self):
        """Until it takes not a byte more."""
        for size in (4096, 1):
            with contextlib.suppress(BlockingIOError):
                while True:
                    os.write(self.ends, b"\n" * size)

    def lines(self):
        """What was written but for empty lines; it is empty then."""
        written = b""
        with contextlib.suppress(BlockingIOError):
            while True:
                written += os.read(self.ends, 1 << 16)
        return [line for line in written.decode().splitlines() if line]


class ConnectionsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = serving.make_server(cls, "--set", "http.max_streams=2")
        cls.server.upload("digits", DIGITS.read_bytes())
        cls.job = cls.server.submit("digits").json()["id"]
        package = cls.server.finished(cls.job)["result"]["package"]
        assert cls.server.deploy("digits", package).status in (200, 201)

    def test_who_sends_no_more_gets_the_answer(self):
        body = serving.npz({"image": np.zeros((1, 1, 28, 28), np.float32)})
        v2 = json.dumps({"inputs": [{"name": "image", "datatype": "FP32", "shape": [1, 1, 28, 28], "data": [0] * 784}]})
        for path, data, kind in (("/v1/deployments/digits/infer", body, "application/x-npz"),
                                 ("/v2/models/digits/infer", v2.encode(), "application/json"),
                                 ("/v1/targets/parse", b'{"target": "llvm"}', "application/json")):
            # The first ones run on a worker, those behind them where they are read.
            for _ in range(4):
                client = Raw(self, self.server)
                client.send("POST", path, data, f"Content-Type: {kind}")
                client.socket.shutdown(socket.SHUT_WR)
                answer = client.until()
                self.assertTrue(answer.startswith(b"HTTP/1.1 200 "), answer[:300])

    def test_live_responses_past_their_number_are_503(self):
        first, second = Raw(self, self.server), Raw(self, self.server)
        for client in (first, second):
            client.send("GET", "/v1/events")
            self.assertIn(b" 200 ", client.until(b"retry: 3000"))
        refused = self.server.request("GET", "/v1/events")
        self.assertEqual((refused.status, refused.headers["Retry-After"]), (503, "1"))
        self.assertIn("http.max_streams", refused.json()["detail"])
        # Streams keep no worker, and the others go on.
        self.assertEqual(self.server.request("GET", "/v1/info").status, 200)
        self.server.submit("digits", force=True)
        self.assertIn(b"event: state", first.until(b"event: state"))
        second.socket.close()

        def taken():
            third = Raw(self, self.server)
            third.send("GET", "/v1/events")
            return b" 200 " in third.until(b"retry: 3000", b"unavailable")
        serving.wait_for(taken, "a place of a client that has gone")

    def test_ranges_of_a_log(self):
        path = f"/v1/jobs/{self.job}/log"
        whole = self.server.request("GET", path).body
        self.assertGreater(len(whole), 20)
        part = self.server.request("GET", path, headers={"Range": "bytes=5-14"})
        self.assertEqual((part.status, part.body), (206, whole[5:15]))
        self.assertEqual(part.headers["Content-Range"], f"bytes 5-14/{len(whole)}")
        self.assertEqual(self.server.request("GET", path, headers={"Range": f"bytes={len(whole)}-"}).status, 416)

    def test_an_address_has_a_limit(self):
        server = serving.make_server(self, "--set", "http.max_connections_per_address=1")

        def hold():
            # Those before it may not have ended yet.
            client = Raw(self, server)
            client.send("GET", "/healthz")
            return client if b" 200 " in client.until(b"\r\n\r\n") else None
        held = serving.wait_for(hold, "the one place of an address")
        self.assertIn(b" 503 ", Raw(self, server).until(b"http.max_connections_per_address"))
        other = Raw(self, server, "127.0.0.2")
        other.send("GET", "/healthz")
        self.assertIn(b" 200 ", other.until(b"\r\n\r\n"))
        held.socket.close()
        self.assertEqual(server.stop(), 0)

    def test_a_proxy_that_is_trusted_brings_more(self):
        """All of its clients come from its address."""
        server = serving.make_server(self, "--set", "http.max_connections_per_address=1", "--set", "http.trusted_proxies=127.0.0.2")
        held = [Raw(self, server, "127.0.0.2") for _ in range(3)]
        for client in held:
            client.send("GET", "/healthz")
            self.assertIn(b" 200 ", client.until(b"\r\n\r\n"))

    def test_an_address_that_is_none_is_refused(self):
        done = mill.run_program("serve", "--listen", "127.0.0.1:0", "--set", "http.unlimited_addresses=here",
                                "--data", str(self.server.folder / "other"))
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("http.unlimited_addresses", done.stderr)
        done = mill.run_program("config", "check", "--set", "http.transport=beast")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("there is one HTTP listener", done.stderr)


class EndTest(unittest.TestCase):
    def test_the_end_waits_for_no_request(self):
        """One stalls in its body, one follows events, one runs a loop without end: none of them holds the process."""
        server = serving.make_server(self, "--set", "http.drain_timeout=200ms", "--set", "run.timeout=1h")
        server.upload("stepping", loop_models.stepping())
        package = server.compile("stepping")
        serving.wait_for(lambda: not server.children(), "the end of what compiled")
        stalled, following, running = (Raw(self, server) for _ in range(3))
        stalled.send("POST", "/v1/models?name=other", b"", "Content-Length: 1000", "Expect: 100-continue")
        self.assertIn(b" 100 ", stalled.until(b"\r\n\r\n"))
        following.send("GET", "/v1/events")
        self.assertIn(b" 200 ", following.until(b"retry: 3000"))
        body = serving.npz({"step": np.float32(0), "bound": np.float32(1)})
        running.send("POST", f"/v1/packages/{package}/run", b"", "Content-Type: application/x-npz",
                     f"Content-Length: {len(body)}", "Expect: 100-continue")
        self.assertIn(b" 100 ", running.until(b"\r\n\r\n"))
        running.socket.sendall(body)
        stalled.socket.sendall(b"the beginning")
        serving.wait_for(lambda: any(serving.cpu_ticks(pid) > 5 for pid in server.children()), "the run")
        self.assertEqual(server.stop(), 0)
        # Both were in work until they were cancelled, and have ended then: the guard, which ends what does not, was not needed.
        *answered, last = server.last_words()
        self.assertEqual({(line["route"], line["status"]) for line in answered},
                         {("/v1/models", 503), ("/v1/packages/{package}/run", 409)})
        self.assertEqual(last["msg"], "stopped")
        for client in (stalled, following, running):
            client.until()
        server.start()
        self.assertEqual(server.request("GET", "/v1/models/stepping").status, 200)
        self.assertEqual(server.request("GET", f"/v1/packages/{package}").status, 200)
        self.assertEqual(server.request("GET", "/v1/models/other").status, 404)

    def test_the_guard_ends_what_a_handler_holds(self):
        """The line of the audit log that is due for an upload goes into a pipe that takes none: its handler never ends."""
        folder = self.folder()
        audit = Pipe(self, folder / "audit")
        server = serving.Server(folder, "--set", "http.drain_timeout=200ms", "--set", f"audit_log={audit.path}")
        self.addCleanup(server.stop, signal.SIGKILL)
        audit.fill()
        upload = Raw(self, server)
        upload.send("POST", "/v1/models?name=other", b"", "Content-Length: 4", "Expect: 100-continue")
        self.assertIn(b" 100 ", upload.until(b"\r\n\r\n"))
        upload.socket.sendall(b"this")
        self.assertEqual(server.stop(), 0)
        self.assertEqual(server.last_words()[-1]["msg"], "the process ends although requests or jobs are still in work")
        self.assertEqual(audit.lines(), [])

    def test_the_guard_ends_a_server_whose_log_nobody_reads(self):
        """The first word of the end already does not pass: the thread that leads it stands still."""
        folder = self.folder()
        log = Pipe(self, folder / "server.log")
        server = serving.Server(folder, "--set", "http.drain_timeout=200ms")
        self.addCleanup(server.stop, signal.SIGKILL)
        said = []
        serving.wait_for(lambda: said.extend(log.lines()) or any('"listening"' in line for line in said), "the last word of the start")
        log.fill()
        self.assertEqual(server.stop(), 0)
        self.assertEqual(log.lines(), [])

    def test_the_guard_ends_a_server_that_cannot_say_that_it_starts(self):
        """The thread that would wait for the signal stands still before it."""
        folder = self.folder()
        log = Pipe(self, folder / "server.log")
        log.fill()
        command = [mill.PROGRAM, "serve", "--listen", "127.0.0.1:0", "--data", folder / "data", "--set", "http.drain_timeout=200ms"]
        with open(log.path, "w") as errors:
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)
        self.addCleanup(process.kill)

        def waits_for_signals():
            status = Path(f"/proc/{process.pid}/status").read_text()
            return int(status.split("SigBlk:")[1].split()[0], 16) >> (signal.SIGTERM - 1) & 1

        serving.wait_for(waits_for_signals, "a server that takes signals when it wants to")
        process.terminate()
        self.assertEqual(process.wait(timeout=serving.DEADLINE), 0)
        self.assertEqual(log.lines(), [])

    def folder(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        return Path(folder.name)


if __name__ == "__main__":
    unittest.main()
