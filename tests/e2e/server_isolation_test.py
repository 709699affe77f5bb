"""`isolation: process`: a package in a confined process of its own. The answers are those of the server's own process, bit
for bit; a process that dies or hangs costs the requests that it had, and no other. And loads that take long, which no number
of kills of the server makes a failure, while a crash does."""

import os
import signal
import tempfile
import threading
import unittest
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import interpreted_test
import mill
import serving
from packages import floats, write

DIGITS = mill.ROOT / "tests/models/digits.onnx"
PICTURES = mill.ROOT / "tests/models/pictures"
SIDE = 256


def long_runs(rounds):
    """A product of matrices, `rounds` times in a loop: a run takes about a millisecond a round."""
    weight = np.eye(SIDE, dtype=np.float32)
    body = helper.make_graph(
        [helper.make_node("MatMul", ["v", "w"], ["next"]), helper.make_node("Identity", ["go"], ["still"])], "body",
        [helper.make_tensor_value_info("i", TensorProto.INT64, []), helper.make_tensor_value_info("go", TensorProto.BOOL, []),
         helper.make_tensor_value_info("v", TensorProto.FLOAT, [SIDE, SIDE])],
        [helper.make_tensor_value_info("still", TensorProto.BOOL, []),
         helper.make_tensor_value_info("next", TensorProto.FLOAT, [SIDE, SIDE])])
    graph = helper.make_graph(
        [helper.make_node("Loop", ["n", "yes", "x"], ["y"], body=body)], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [SIDE, SIDE])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [SIDE, SIDE])],
        [numpy_helper.from_array(weight, "w"), numpy_helper.from_array(np.array(rounds, np.int64), "n"),
         numpy_helper.from_array(np.array(True), "yes")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 16)])
    model.ir_version = 8
    return model.SerializeToString()


def executors(server):
    """Pids of the processes that run packages of this server."""
    found = []
    for pid in server.children():
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue  # it ended meanwhile
        if len(words) > 1 and words[1] == b"child-execute":
            found.append(pid)
    return found


def status_of(pid):
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


class Isolation(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = serving.make_server(cls, "--set", "run.timeout=20s", "--set", "run.memory=2GiB")
        cls.server.upload("digits", DIGITS.read_bytes())
        cls.package = cls.server.compile("digits", {"image": [4, 1, 28, 28]})
        cls.server.upload("long", long_runs(2000))
        cls.long = cls.server.compile("long")
        cls.images = np.random.default_rng(7).random((16, 1, 28, 28), dtype=np.float32)

    def deploy(self, name, package, **more):
        answer = self.server.deploy(name, package, **more)
        self.assertEqual(answer.status, 201, answer.body)
        self.addCleanup(self.server.request, "DELETE", f"/v1/deployments/{name}")

    def logits(self, name, images):
        answer = self.server.infer(name, {"image": images})
        self.assertEqual(answer.status, 200, answer.body)
        return serving.from_npz(answer.body)["logits"]

    def test_answers_are_the_same_bits(self):
        for more in ({}, {"max_batch": 4, "max_delay_us": 2000}, {"instances": 2, "max_batch": 4}):
            self.deploy("here", self.package, **more)
            self.deploy("apart", self.package, isolation="process", **more)
            rows = 1 if "max_batch" in more else 4
            self.assertEqual(len(executors(self.server)), 1)
            for first in range(0, 16, 4):
                images = self.images[first:first + 4]
                parts = [images[i:i + rows] for i in range(0, 4, rows)]
                here = [self.logits("here", part) for part in parts]
                answers = [None] * len(parts)

                def client(i, parts=parts, answers=answers):
                    answers[i] = self.logits("apart", parts[i])

                threads = [threading.Thread(target=client, args=(i,)) for i in range(len(parts))]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                for one, other in zip(here, answers):
                    self.assertEqual(one.tobytes(), other.tobytes())
            stats = self.server.request("GET", "/v2/models/apart/stats").json()["model_stats"][0]
            self.assertEqual(stats["inference_stats"]["success"]["count"], 16 // rows)
            if rows == 1:
                self.assertEqual(stats["inference_count"], 16)
                self.assertEqual(stats["inference_count"],
                                 sum(b["batch_size"] * b["compute_infer"]["count"] for b in stats["batch_stats"]))
            self.assertEqual(self.server.request("GET", "/v2/models/apart").json()["inputs"],
                             self.server.request("GET", "/v2/models/here").json()["inputs"])
            for name in ("here", "apart"):
                self.assertEqual(self.server.request("DELETE", f"/v1/deployments/{name}").status, 204)
            serving.wait_for(lambda: not executors(self.server), "the end of the process of a deployment that has gone")

    def test_pictures_and_v2_are_answered_alike(self):
        single = self.server.compile("digits", {"image": [1, 1, 28, 28]})
        more = {"labels": [str(digit) for digit in range(10)], "preprocess": {"resize": 28, "crop": 28, "color": "gray"}}
        self.deploy("here", single, **more)
        self.deploy("apart", single, isolation="process", **more)
        for picture in sorted(PICTURES.glob("*.png"))[:3]:
            here, apart = (self.server.request("POST", f"/v1/deployments/{name}/classify?top=3", picture.read_bytes(),
                                               {"Content-Type": "image/png"}) for name in ("here", "apart"))
            self.assertEqual(apart.status, 200, apart.body)
            self.assertEqual(apart.json()["top"], here.json()["top"])
            self.assertEqual(apart.json()["top"][0]["label"], picture.stem)
        broken = self.server.request("POST", "/v1/deployments/apart/classify", b"\x89PNG\r\n\x1a\nno", {"Content-Type": "image/png"})
        self.assertEqual((broken.status, broken.json()["code"]), (422, "invalid_image"), broken.body)
        image = self.images[:1]
        tensor = {"name": "image", "shape": list(image.shape), "datatype": "FP32", "data": image.flatten().tolist()}
        here, apart = (self.server.send_json("POST", f"/v2/models/{name}/infer", {"id": "7", "inputs": [tensor]})
                       for name in ("here", "apart"))
        self.assertEqual(apart.status, 200, apart.body)
        self.assertEqual((apart.json()["id"], apart.json()["outputs"]), ("7", here.json()["outputs"]))
        wrong = self.server.send_json("POST", "/v2/models/apart/infer", {"inputs": [{**tensor, "datatype": "INT8"}]})
        self.assertEqual(wrong.status, 400, wrong.body)

    def test_shapes_without_kernels_are_interpreted_in_the_process(self):
        with tempfile.TemporaryDirectory() as folder:
            self.server.upload("reshaped", write(folder, interpreted_test.RESHAPED).read_bytes())
        package = self.server.compile("reshaped", {})
        self.deploy("here", package)
        self.deploy("apart", package, isolation="process")
        x = floats(4, 6)
        pid = executors(self.server)[0]
        for shape in ((1, 4, 2, 3), (3, 4, 2, 1)):
            inputs = {"x": x, "s": np.int64(shape)}
            here, apart = (self.server.infer(name, inputs) for name in ("here", "apart"))
            self.assertEqual((here.status, apart.status), (200, 200), apart.body)
            self.assertEqual(serving.from_npz(apart.body)["y"].tobytes(), serving.from_npz(here.body)["y"].tobytes())
            np.testing.assert_array_equal(serving.from_npz(apart.body)["y"], interpreted_test.turned(x.reshape(shape)))
        self.assertEqual(executors(self.server), [pid], "no run costs the process")
        wrong = {"x": x, "s": np.int64((1, 4, 2, 4))}
        here, apart = (self.server.infer(name, wrong) for name in ("here", "apart"))
        self.assertEqual((here.status, here.json()["code"]), (apart.status, apart.json()["code"]), apart.body)

    def test_errors_are_the_same(self):
        self.deploy("here", self.package)
        self.deploy("apart", self.package, isolation="process")
        for inputs in ({"image": np.zeros((4, 1, 28, 27), np.float32)}, {"nothing": self.images[:4]}):
            here, apart = (self.server.infer(name, inputs) for name in ("here", "apart"))
            self.assertEqual((here.status, here.json()["code"], here.json()["detail"]),
                             (apart.status, apart.json()["code"], apart.json()["detail"]))
        refused = self.server.deploy("no", self.package, isolation="process", max_batch=64)
        self.assertEqual((refused.status, refused.json()["code"]), (422, "invalid_argument"), refused.body)
        self.assertEqual(self.server.deploy("no", self.package, isolation="vm").status, 422)

    def test_the_process_is_confined(self):
        self.deploy("apart", self.package, isolation="process")
        walls = self.server.request("GET", "/v1/info").json()["confinement"]
        status = status_of(executors(self.server)[0])
        self.assertEqual(status["NoNewPrivs"], "1")
        self.assertEqual(int(status["CapEff"], 16), 0)
        self.assertEqual(status["Seccomp"], "2" if walls["seccomp"] else "0")
        self.assertEqual(int(status["Uid"].split()[0]), walls["user"] or os.geteuid())

    def test_a_killed_process_is_replaced(self):
        self.deploy("apart", self.package, isolation="process")
        expected = self.logits("apart", self.images[:4])
        for _ in range(2):
            before = executors(self.server)
            os.kill(before[0], signal.SIGKILL)
            serving.wait_for(lambda gone=before: executors(self.server) not in ([], gone), "another process")
            np.testing.assert_array_equal(self.logits("apart", self.images[:4]), expected)

    def test_a_request_whose_process_dies_is_told_and_the_next_is_served(self):
        self.deploy("slow", self.long, isolation="process", warmup=False)
        x = np.ones((SIDE, SIDE), np.float32)
        answers = []
        client = threading.Thread(target=lambda: answers.append(self.server.infer("slow", {"x": x})))
        pid = executors(self.server)[0]
        begun = serving.cpu_ticks(pid)
        client.start()
        serving.wait_for(lambda: serving.cpu_ticks(pid) > begun + 2, "the run of the request")
        os.kill(pid, signal.SIGKILL)
        client.join()
        self.assertEqual((answers[0].status, answers[0].json()["code"]), (500, "job_failed"), answers[0].body)
        self.assertIn("replaced", answers[0].json()["detail"])
        served = self.server.infer("slow", {"x": x})
        self.assertEqual(served.status, 200, served.body)
        np.testing.assert_array_equal(serving.from_npz(served.body)["y"], x)

    def test_a_process_that_hangs_is_replaced(self):
        self.deploy("apart", self.package, isolation="process")
        expected = self.logits("apart", self.images[:4])
        before = executors(self.server)
        os.kill(before[0], signal.SIGSTOP)
        late = self.server.request("POST", "/v1/deployments/apart/infer?timeout_ms=100", serving.npz({"image": self.images[:4]}),
                                   {"Content-Type": "application/x-npz"})
        self.assertEqual((late.status, late.json()["code"]), (504, "deadline_exceeded"), late.body)
        serving.wait_for(lambda: executors(self.server) not in ([], before), "another process")
        np.testing.assert_array_equal(self.logits("apart", self.images[:4]), expected)

    def test_it_is_there_again_after_a_restart(self):
        self.deploy("apart", self.package, isolation="process")
        expected = self.logits("apart", self.images[:4])
        self.assertEqual(self.server.stop(), 0)
        self.server.start()
        np.testing.assert_array_equal(self.logits("apart", self.images[:4]), expected)


class SlowLoads(unittest.TestCase):
    # However little of the machine this gets, a warm-up comes to its end.
    PATIENT = ("--set", "run.timeout=10m", "--set", "deployments.load_wait=10m")

    def state(self, server):
        return server.request("GET", "/v1/deployments/slow").json()["versions"]["1"]["state"]

    def load(self, server):
        """Waits until the server computes what warms the deployment up."""
        begun = serving.cpu_ticks(server.process.pid)
        serving.wait_for(lambda: serving.cpu_ticks(server.process.pid) > begun + 15, "the run that warms up")
        self.assertEqual(self.state(server), "loading")

    def ended(self, server, how):
        """Ends a server that is loading."""
        server.start(until_ready=False)
        self.load(server)
        self.assertEqual(server.stop(how), 0 if how == signal.SIGTERM else -how)

    def test_kills_are_no_crashes_and_crashes_are(self):
        server = serving.make_server(self, *self.PATIENT)
        server.upload("long", long_runs(5000))
        package = server.compile("long")
        self.assertEqual(server.deploy("slow", package).status, 201)
        server.stop()
        for how in (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL):
            self.ended(server, how)
        server.start()
        self.assertEqual(self.state(server), "ready")
        server.stop()
        for _ in range(2):
            self.ended(server, signal.SIGSEGV)
        server.start()
        found = server.request("GET", "/v1/deployments/slow").json()["versions"]["1"]
        self.assertEqual((found["state"], found["reason"]), ("failed", "load: the process crashed 2 times while it was loaded"))

    def test_the_end_of_the_server_ends_a_load_that_has_none(self):
        server = serving.make_server(self, "--set", "run.timeout=1h", "--set", "deployments.load_wait=0ms")
        server.upload("endless", long_runs(1 << 40))
        package = server.compile("endless")
        self.assertEqual(server.deploy("slow", package).status, 202)
        self.load(server)
        for _ in range(2):
            self.assertEqual(server.stop(), 0)
            # Not by the guard, which leaves what does not end.
            self.assertEqual(server.last_words()[-1]["msg"], "stopped")
            # No failure of the deployment: it is loaded again.
            server.start(until_ready=False)
            self.load(server)


if __name__ == "__main__":
    unittest.main()
