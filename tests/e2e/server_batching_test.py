"""Dynamic batching through HTTP: rows share runs, every answer is its own, the queue is bounded, deadlines hold."""

import json
import threading
import unittest
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from onnx import TensorProto

import made_models
import mill
import serving

DIGITS = mill.ROOT / "tests/models/digits.onnx"


class BatchingTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = serving.make_server(cls)
        cls.server.upload("digits", DIGITS.read_bytes())
        cls.package = cls.server.compile("digits", {"image": [4, 1, 28, 28]})
        cls.images = np.random.default_rng(5).random((32, 1, 28, 28), dtype=np.float32)
        whole = [serving.from_npz(cls.server.run(cls.package, {"image": cls.images[i:i + 4]}).body)["logits"] for i in range(0, 32, 4)]
        cls.logits = np.concatenate(whole)

    def deploy(self, name, **more):
        answer = self.server.deploy(name, self.package, **more)
        self.assertEqual(answer.status, 201, answer.body)

    def answer_of(self, name, first, count):
        answer = self.server.infer(name, {"image": self.images[first:first + count]})
        self.assertEqual(answer.status, 200, answer.body)
        return serving.from_npz(answer.body)["logits"]

    def test_requests_share_runs_and_answers_are_their_own(self):
        self.deploy("batched", max_batch=4, max_delay_us=50000)
        sizes = [1, 2, 1, 3, 1, 4, 1, 1]

        def client(which):
            for turn in range(4):
                size = sizes[(which + turn) % len(sizes)]
                first = (which * 4 + turn) % (32 - size + 1)
                got = self.answer_of("batched", first, size)
                np.testing.assert_array_equal(got, self.logits[first:first + size])
            return True

        with ThreadPoolExecutor(8) as pool:
            self.assertTrue(all(pool.map(client, range(8))))
        stats = self.server.request("GET", "/v2/models/batched/stats").json()["model_stats"][0]
        self.assertEqual(stats["inference_stats"]["success"]["count"], 32)
        self.assertLess(stats["execution_count"], 32)
        self.assertEqual(stats["inference_count"], sum(b["batch_size"] * b["compute_infer"]["count"] for b in stats["batch_stats"]))
        self.assertLessEqual(max(b["batch_size"] for b in stats["batch_stats"]), 4)
        config = self.server.request("GET", "/v2/models/batched/config").json()
        self.assertEqual((config["max_batch_size"], config["input"][0]["dims"]), (4, [1, 28, 28]))
        self.assertEqual(self.server.request("GET", "/v2/models/batched").json()["inputs"][0]["shape"], [-1, 1, 28, 28])
        for shape in ((5, 1, 28, 28), (0, 1, 28, 28), (2, 28, 28), (1, 1, 28, 27)):
            answer = self.server.infer("batched", {"image": np.zeros(shape, np.float32)})
            self.assertEqual((answer.status, answer.json()["code"]), (422, "invalid_tensor"))

    def test_rows_are_read_where_they_were_received(self):
        columns, factor = 16384, 3
        made = made_models.one_node_model("Mul", [("x", TensorProto.FLOAT, [4, columns])], ("y", TensorProto.FLOAT, [4, columns]),
                                          [("c", np.full(columns, factor, np.float32))])
        self.server.upload("wide", made)
        answer = self.server.deploy("wide", self.server.compile("wide", {"x": [4, columns]}), max_batch=4, max_delay_us=20000)
        self.assertEqual(answer.status, 201, answer.body)

        def ask(row, binary, announced=columns):
            parameters = {"parameters": {"binary_data_size": row.nbytes}} if binary else {"data": row.ravel().tolist()}
            head = json.dumps({"inputs": [{"name": "x", "shape": [1, announced], "datatype": "FP32", **parameters}],
                               "parameters": {"binary_data_output": True}}).encode()
            fields = {"Inference-Header-Content-Length": str(len(head))} if binary else {}
            return self.server.request("POST", "/v2/models/wide/infer", head + (row.tobytes() if binary else b""), fields)

        def client(which):
            for turn in range(12):
                row = np.full((1, columns), 100 * which + turn, np.float32)
                # Some come in JSON, which has no place among the others, and some are broken after their place was taken.
                if (which + turn) % 5 == 4:
                    broken = ask(row, True, columns + 1)
                    if broken.json()["code"] != "invalid_tensor":
                        return broken.body
                answer = ask(row, (which * turn) % 7 != 6)
                got = np.frombuffer(answer.body[-row.nbytes:], np.float32)
                if answer.status != 200 or not np.array_equal(got, factor * row.ravel()):
                    return f"{answer.status}: {got[:2]} for {row[0, :2]}"
            return None

        with ThreadPoolExecutor(6) as pool:
            self.assertEqual(list(pool.map(client, range(6))), [None] * 6)
        stats = self.server.request("GET", "/v2/models/wide/stats").json()["model_stats"][0]
        self.assertEqual(stats["inference_count"], 72)
        self.assertLess(stats["execution_count"], 72)

    def test_a_batch_larger_than_the_packages_is_refused(self):
        answer = self.server.deploy("large", self.package, max_batch=5)
        self.assertEqual(answer.status, 422, answer.body)
        self.assertEqual(answer.json()["errors"][0]["pointer"], "/max_batch")

    def test_a_full_queue_and_a_deadline_are_told(self):
        self.deploy("narrow", max_queue=1)
        busy = threading.Event()
        done = threading.Event()

        def occupy():
            # Long enough for what follows, and ended by the client's going.
            while not done.is_set():
                busy.set()
                self.server.request("POST", "/v1/deployments/narrow/infer?repeat=300&fill_mode=ones", b"")

        with ThreadPoolExecutor(6) as pool:
            long = [pool.submit(occupy) for _ in range(4)]
            busy.wait()
            full = serving.wait_for(lambda: self.refusal("narrow", ""), "a full queue")
            self.assertEqual(full.headers["Retry-After"], "1")
            done.set()
            for one in long:
                one.result()

    def refusal(self, name, query):
        answer = self.server.request("POST", f"/v1/deployments/{name}/infer{query}", b"")
        return answer if answer.status == 503 and answer.json()["code"] == "unavailable" else None

    def test_a_deadline_in_the_queue_is_504(self):
        self.deploy("late", max_queue=8)
        with ThreadPoolExecutor(1) as pool:
            long = pool.submit(self.server.request, "POST", "/v1/deployments/late/infer?repeat=300&fill_mode=ones", b"")
            raw = self.images[:4]
            value = {"inputs": [{"name": "image", "shape": [4, 1, 28, 28], "datatype": "FP32", "data": raw.ravel().tolist()}],
                     "parameters": {"timeout": 1}}

            def late():
                answer = self.server.send_json("POST", "/v2/models/late/infer", json.dumps(value))
                return answer if answer.status == 504 else None

            answer = serving.wait_for(late, "a deadline that passes")
            self.assertIn("error", answer.json())
            self.assertEqual(long.result().status, 200)


if __name__ == "__main__":
    unittest.main()
