"""KServe v2: metadata, readiness, inference in JSON and with binary tensors, and its errors."""

import gzip
import json
import unittest
import zlib

import numpy as np

import mill
import serving

DIGITS = mill.ROOT / "tests/models/digits.onnx"
LENGTH = "Inference-Header-Content-Length"


class V2Test(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = serving.make_server(cls)
        cls.server.upload("digits", DIGITS.read_bytes())
        package = cls.server.compile("digits", {"image": [1, 1, 28, 28]})
        answer = cls.server.deploy("digits", package, version="7")
        if answer.status != 201:
            raise AssertionError(answer.body)
        cls.image = np.random.default_rng(3).random((1, 1, 28, 28), dtype=np.float32)
        cls.logits = serving.from_npz(cls.server.infer("digits", {"image": cls.image}).body)["logits"]

    def get(self, path):
        return self.server.request("GET", path)

    def infer(self, value, raw=b"", path="/v2/models/digits/infer", **headers):
        text = json.dumps(value).encode()
        if raw:
            headers.setdefault(LENGTH, str(len(text)))
        return self.server.request("POST", path, text + raw, {"Content-Type": "application/octet-stream", **headers})

    def image_input(self, **more):
        return {"name": "image", "shape": [1, 1, 28, 28], "datatype": "FP32", **more}

    def binary_input(self):
        return self.image_input(parameters={"binary_data_size": self.image.nbytes})

    def refused(self, answer, status=400):
        self.assertEqual(answer.status, status, answer.body)
        self.assertTrue(answer.json()["error"])

    def test_metadata_and_readiness(self):
        self.assertIn("binary_tensor_data", self.get("/v2").json()["extensions"])
        model = self.get("/v2/models/digits").json()
        self.assertEqual(model["versions"], ["7"])
        self.assertEqual(model["inputs"], [{"name": "image", "datatype": "FP32", "shape": [1, 1, 28, 28]}])
        self.assertEqual(self.get("/v2/models/digits/versions/7").json(), model)
        for path in ("/v2/health/live", "/v2/health/ready", "/v2/models/digits/ready", "/v2/models/digits/versions/7/ready"):
            answer = self.get(path)
            self.assertEqual((answer.status, answer.body), (200, b""), path)
        self.assertEqual(self.get("/v2/models/digits/versions/8/ready").status, 400)
        self.refused(self.get("/v2/models/digits/versions/8"), 404)
        self.refused(self.get("/v2/models/nothing"), 404)
        self.refused(self.get("/v2/models/nothing/ready"), 404)

    def test_json_in_json_out(self):
        for data in (self.image.tolist(), self.image.ravel().tolist()):
            answer = self.infer({"id": "a1", "inputs": [self.image_input(data=data)]})
            self.assertEqual(answer.status, 200, answer.body)
            body = answer.json()
            self.assertEqual((body["id"], body["model_name"], body["model_version"]), ("a1", "digits", "7"))
            output = body["outputs"][0]
            self.assertEqual((output["name"], output["datatype"], output["shape"]), ("logits", "FP32", [1, 10]))
            np.testing.assert_array_equal(np.float32(output["data"]), self.logits.ravel())

    def test_binary_in_binary_out(self):
        request = {"inputs": [self.binary_input()], "outputs": [{"name": "logits", "parameters": {"binary_data": True}}]}
        for value in (request, {"inputs": request["inputs"], "parameters": {"binary_data_output": True}}):
            answer = self.infer(value, self.image.tobytes(), "/v2/models/digits/versions/7/infer")
            self.assertEqual(answer.status, 200, answer.body)
            self.assertEqual(answer.headers["Content-Type"], "application/octet-stream")
            split = int(answer.headers[LENGTH])
            output = json.loads(answer.body[:split])["outputs"][0]
            self.assertEqual(output["parameters"], {"binary_data_size": 40})
            np.testing.assert_array_equal(np.frombuffer(answer.body[split:], np.float32), self.logits.ravel())
        mixed = self.infer({"inputs": [self.binary_input()]}, self.image.tobytes())
        np.testing.assert_array_equal(np.float32(mixed.json()["outputs"][0]["data"]), self.logits.ravel())

    def test_configuration_statistics_and_classification(self):
        config = self.get("/v2/models/digits/config").json()
        self.assertEqual((config["max_batch_size"], config["input"][0]["dims"]), (0, [1, 1, 28, 28]))
        before = self.get("/v2/models/digits/versions/7/stats").json()["model_stats"][0]
        wish = [{"name": "logits", "parameters": {"classification": 3}}]
        answer = self.infer({"inputs": [self.binary_input()], "outputs": wish}, self.image.tobytes())
        output = answer.json()["outputs"][0]
        self.assertEqual((output["datatype"], output["shape"]), ("BYTES", [3]))
        best = np.argsort(-self.logits.ravel())[:3]
        self.assertEqual([int(text.split(":")[1]) for text in output["data"]], best.tolist())
        after = self.get("/v2/models/stats").json()["model_stats"][0]
        self.assertEqual(after["inference_count"], before["inference_count"] + 1)
        self.assertGreater(after["inference_stats"]["compute_infer"]["ns"], before["inference_stats"]["compute_infer"]["ns"])

    def test_bodies_are_decoded_and_encoded(self):
        plain = json.dumps({"inputs": [self.image_input(data=self.image.ravel().tolist())]}).encode()
        for name, encode, decode in (("gzip", gzip.compress, gzip.decompress), ("deflate", zlib.compress, zlib.decompress)):
            answer = self.server.request("POST", "/v2/models/digits/infer", encode(plain),
                                         {"Content-Encoding": name, "Accept-Encoding": name})
            self.assertEqual(answer.status, 200, answer.body)
            self.assertEqual(answer.json()["outputs"][0]["shape"], [1, 10], "too small to be encoded")
            large = self.server.request("GET", "/openapi.json", headers={"Accept-Encoding": name})
            self.assertEqual(large.headers["Content-Encoding"], name)
            self.assertEqual(json.loads(decode(large.body))["openapi"], "3.1.0")
        binary = json.dumps({"inputs": [self.binary_input()]}).encode()
        answer = self.server.request("POST", "/v2/models/digits/infer", gzip.compress(binary + self.image.tobytes()),
                                     {"Content-Encoding": "gzip", LENGTH: str(len(binary))})
        np.testing.assert_array_equal(np.float32(answer.json()["outputs"][0]["data"]), self.logits.ravel())

    def test_repository(self):
        package = self.get("/v1/deployments/digits").json()["versions"]["7"]["package"]
        self.assertEqual(self.server.deploy("moved", package).status, 201)
        control = lambda path: self.server.request("POST", f"/v2/repository/{path}", b"")
        self.assertIn({"name": "moved", "version": "1", "state": "READY", "reason": ""}, control("index").json())
        self.assertEqual(control("models/moved/unload").status, 200)
        self.assertEqual(self.get("/v2/models/moved/ready").status, 400)
        good = {"inputs": [self.binary_input()]}
        self.refused(self.infer(good, self.image.tobytes(), "/v2/models/moved/infer"), 503)
        self.assertIn({"name": "moved", "version": "1", "state": "UNAVAILABLE", "reason": "unloaded"}, control("index").json())
        self.assertEqual(control("models/moved/load").status, 200)
        self.assertEqual(self.infer(good, self.image.tobytes(), "/v2/models/moved/infer").status, 200)
        self.refused(control("models/nothing/load"), 404)
        self.assertEqual(self.server.request("DELETE", "/v1/deployments/moved").status, 204)

    def test_what_is_wrong_is_told(self):
        good, raw = self.binary_input(), self.image.tobytes()
        flat = self.image.ravel().tolist()
        for value in ({}, {"inputs": 3}, {"inputs": [3]}, {"inputs": [{}]}, {"inputs": []},
                      {"inputs": [self.image_input()]}, {"inputs": [self.image_input(data=flat[:-1])]},
                      {"inputs": [self.image_input(data=flat + [1])]}, {"inputs": [self.image_input(data=["x"] * 784)]},
                      {"inputs": [self.image_input(data=flat, datatype="FP64")]},
                      {"inputs": [{**self.image_input(data=flat), "name": "picture"}]},
                      {"inputs": [{**self.image_input(data=flat), "shape": [-1, 784]}]},
                      {"inputs": [{**self.image_input(data=[1]), "shape": [1 << 30, 1 << 9]}]},
                      {"inputs": [{**self.image_input(data=[1]), "shape": [1 << 62, 1 << 62]}]},
                      {"inputs": [{**self.image_input(data=flat), "datatype": "FP99"}]},
                      {"inputs": [self.image_input(data=flat)], "outputs": [{"name": "labels"}]}):
            self.refused(self.infer(value))
        self.refused(self.infer({"inputs": [good]}, raw[:-4]))
        self.refused(self.infer({"inputs": [good]}, raw + b"more"))
        self.refused(self.infer({"inputs": [good]}, raw, **{"Inference-Header-Content-Length": "99999999"}))
        self.refused(self.infer({"inputs": [{**good, "parameters": {"binary_data_size": 1 << 60}}]}, raw))
        self.refused(self.infer({"inputs": [{**self.image_input(data=["a"]), "datatype": "BYTES"}]}))
        self.refused(self.infer({"inputs": [good]}, raw, "/v2/models/nothing/infer"), 404)
        self.refused(self.infer({"inputs": [good]}, raw, "/v2/models/digits/versions/8/infer"), 404)
        self.refused(self.server.request("POST", "/v2/models/digits/infer", b"{", {"Content-Type": "application/json"}))
        self.refused(self.server.request("POST", "/v2/models/digits/infer", b"{}", {"Content-Type": "text/html"}))
        self.assertEqual(self.infer({"inputs": [good]}, raw).status, 200)

    def test_numbers_that_a_type_does_not_have(self):
        pixels = self.image.ravel().tolist()
        for value in ("1e39", "-1e39", "true", "null", '"1"', "1e400"):
            text = json.dumps({"inputs": [self.image_input(data=[*pixels[:-1], "last"])]}).replace('"last"', value)
            answer = self.server.request("POST", "/v2/models/digits/infer", text, {"Content-Type": "application/json"})
            self.refused(answer)
            self.assertIn("783" if value != "1e400" else "/inputs/0/data/783", answer.json()["error"])

    def test_members_in_order_of_name(self):
        text = json.dumps({"inputs": [self.image_input(data=self.image.tolist())]}, sort_keys=True)
        answer = self.server.request("POST", "/v2/models/digits/infer", text, {"Content-Type": "application/json"})
        self.assertEqual(answer.status, 200, answer.body)
        np.testing.assert_allclose(answer.json()["outputs"][0]["data"], self.logits.ravel(), rtol=1e-6)

    def test_a_few_bytes_that_unfold_to_very_many_elements(self):
        """A reader whose work grew as the square of these took hours, and did not notice that its client left."""
        image = b'{"inputs":[{"name":"image","shape":[1,1,28,28],"datatype":"FP32","data":['
        wide = b'{"inputs":[{"name":"image","shape":[60000000],"datatype":"UINT8","data":['
        for head, unit in ((b'{"inputs":[', b"{},"), (b"[", b"{},"), (b'{"a":[', b"[],"), (b'{"a":', b'{"a":'), (image, b"1,"),
                           (image, b"[],"), (wide, b"1,"), (b'{"inputs":[{"data":[', b"1,"), (b'{"a":"', b"aaa"), (b"", b"   ")):
            packer = zlib.compressobj(1, wbits=31)
            body = [packer.compress(head)]
            piece = unit * 100_000
            body.extend(packer.compress(piece) for _ in range((64 << 20) // len(piece)))
            body.append(packer.flush())
            answer = self.server.request("POST", "/v2/models/digits/infer", b"".join(body),
                                         {"Content-Type": "application/json", "Content-Encoding": "gzip"})
            self.assertIn(answer.status, (400, 413), (head, unit))
        self.assertEqual(self.infer({"inputs": [self.image_input(data=self.image.tolist())]}).status, 200)


if __name__ == "__main__":
    unittest.main()
