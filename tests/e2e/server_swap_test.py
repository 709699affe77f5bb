"""A new version takes the place of the old one under load: no request fails, and each answer is the one of the version that
it names. Many connections that do nothing, or stall, hold up nobody."""

import socket
import threading
import unittest

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import mill
import serving

DIGITS = mill.ROOT / "tests/models/digits.onnx"
SWAPS, CLIENTS = 8, 4
IDLE, STALLED = 500, 50
# A server that gives up a connection long after a request that had to wait for it has failed.
PATIENT = [word for name in ("header", "body", "keep_alive") for word in ("--set", f"http.{name}_timeout=1h")]


def adding(value):
    """A model of one node: x + value."""
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "c"], ["y"])], "adding",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])],
        [numpy_helper.from_array(np.full(4, value, np.float32), "c")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 7
    return model.SerializeToString()


class SwapTest(unittest.TestCase):
    def test_no_request_fails_and_each_answer_is_its_versions(self):
        server = serving.make_server(self)
        packages = []
        for version in range(1, SWAPS + 1):
            self.assertEqual(server.upload(f"add{version}", adding(version)).status, 201)
            packages.append(server.compile(f"add{version}", {"x": [4]}))
        self.assertEqual(len(set(packages)), SWAPS)
        self.assertEqual(server.deploy("swapped", packages[0], version="1").status, 201)
        wrong, seen, stop = [], [[] for _ in range(CLIENTS)], threading.Event()

        def client(which):
            x = np.arange(4, dtype=np.float32) + which
            while not stop.is_set():
                answer = server.infer("swapped", {"x": x})
                version = int(answer.headers.get("X-Deployment-Version") or 0)
                if answer.status != 200 or not np.array_equal(serving.from_npz(answer.body)["y"], x + version):
                    wrong.append((answer.status, version, answer.body[:200]))
                    return
                seen[which].append(version)

        threads = [threading.Thread(target=client, args=(which,)) for which in range(CLIENTS)]
        for thread in threads:
            thread.start()
        try:
            for version in range(2, SWAPS + 1):
                answers = [len(one) for one in seen]
                serving.wait_for(lambda before=answers: wrong or all(len(one) > n for one, n in zip(seen, before)),
                                 "an answer for each client")
                answer = server.deploy("swapped", packages[version - 1], version=str(version))
                self.assertIn(answer.status, (200, 201), answer.body)
                self.assertEqual(answer.json()["default_version"], str(version))
            serving.wait_for(lambda: wrong or all(one and one[-1] == SWAPS for one in seen), "the last version's answers")
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        self.assertEqual(wrong, [])
        for one in seen:
            self.assertEqual(one, sorted(one), "nobody sees an old version after a new one")
        self.assertEqual(set().union(*seen), set(range(1, SWAPS + 1)))
        self.assertEqual(list(server.request("GET", "/v1/deployments/swapped").json()["versions"]), [str(SWAPS)])


class ConnectionsTest(unittest.TestCase):
    def connect(self, server, text=b""):
        connection = socket.create_connection(("127.0.0.1", server.port), timeout=serving.DEADLINE)
        self.addCleanup(connection.close)
        connection.sendall(text)
        return connection

    def test_idle_and_stalled_ones(self):
        server = serving.make_server(self, *PATIENT, "--set", "http.max_connections_per_address=1000")
        server.upload("digits", DIGITS.read_bytes())
        package = server.compile("digits", {"image": [1, 1, 28, 28]})
        self.assertEqual(server.deploy("digits", package).status, 201)
        idle = [self.connect(server) for _ in range(IDLE)]
        # Half of them stall in the head, half in the body of a request that a worker has begun to read.
        head = b"POST /v1/models?name=m HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\n"
        stalled = [self.connect(server, head if i % 2 else head + b"Content-Length: 1000\r\n\r\nsome") for i in range(STALLED)]
        image = np.zeros((1, 1, 28, 28), np.float32)
        for path in ("/healthz", "/v1/models", "/v1/jobs", "/v1/deployments/digits") * 4:
            self.assertEqual(server.request("GET", path).status, 200)
            self.assertEqual(server.infer("digits", {"image": image}).status, 200)
        # They are all still there: an idle one serves, a stalled one goes on where it stopped.
        idle[-1].sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        self.assertTrue(idle[-1].recv(4096).startswith(b"HTTP/1.1 200 "))
        stalled[0].sendall(b"x" * 996)
        self.assertTrue(stalled[0].recv(4096).startswith(b"HTTP/1.1 422 "))


if __name__ == "__main__":
    unittest.main()
