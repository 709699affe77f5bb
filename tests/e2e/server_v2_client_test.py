"""KServe v2 over HTTP as tritonclient speaks it, which knows nothing of this server."""

import sys
import unittest
from pathlib import Path

sys.path[:0] = [str(path) for path in (Path(__file__).resolve().parents[1] / "python/venv/lib").glob("python3*/site-packages")]

import numpy as np  # noqa: E402 (tritonclient's own)
import tritonclient.http as triton  # noqa: E402
from tritonclient.utils import InferenceServerException  # noqa: E402

import public_examples  # noqa: E402
import serving  # noqa: E402


class HttpClientTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = serving.make_server(cls)
        public_examples.serve(cls.server, ("simple",))
        cls.client = triton.InferenceServerClient(f"127.0.0.1:{cls.server.port}", concurrency=4)
        cls.addClassCleanup(cls.client.close)
        cls.left, cls.right = np.arange(16, dtype=np.int32).reshape(1, 16), np.ones((1, 16), np.int32)

    def inputs(self, binary=True):
        made = [triton.InferInput(name, [1, 16], "INT32") for name in ("INPUT0", "INPUT1")]
        for one, values in zip(made, (self.left, self.right)):
            one.set_data_from_numpy(values, binary_data=binary)
        return made

    def outputs(self, binary=True):
        return [triton.InferRequestedOutput(name, binary_data=binary) for name in ("OUTPUT0", "OUTPUT1")]

    def check(self, result):
        np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), self.left + self.right)
        np.testing.assert_array_equal(result.as_numpy("OUTPUT1"), self.left - self.right)

    def test_states_and_metadata(self):
        self.assertTrue(self.client.is_server_live(headers={"test": "1"}))
        self.assertTrue(self.client.is_server_ready())
        self.assertTrue(self.client.is_model_ready("simple"))
        self.assertFalse(self.client.is_model_ready("none"))
        self.assertIn("binary_tensor_data", self.client.get_server_metadata()["extensions"])
        self.assertEqual({one["name"] for one in self.client.get_model_metadata("simple")["inputs"]}, {"INPUT0", "INPUT1"})
        self.assertEqual(self.client.get_model_config("simple")["name"], "simple")
        with self.assertRaises(InferenceServerException) as caught:
            self.client.get_model_metadata("none")
        self.assertIn("none", caught.exception.message())

    def test_an_inference_in_every_form(self):
        for binary in (True, False):
            self.check(self.client.infer("simple", self.inputs(binary), outputs=self.outputs(binary), headers={"test": "1"}))
        self.check(self.client.infer("simple", self.inputs()))
        for algorithm in ("gzip", "deflate"):
            self.check(self.client.infer("simple", self.inputs(), outputs=self.outputs(), request_compression_algorithm=algorithm,
                                         response_compression_algorithm=algorithm))
        asked = [self.client.async_infer("simple", self.inputs(), outputs=self.outputs()) for _ in range(8)]
        for one in asked:
            self.check(one.get_result())
        self.assertEqual(self.client.infer("simple", self.inputs(), request_id="seven").get_response()["id"], "seven")
        wrong = [triton.InferInput("INPUT0", [1, 16], "INT32")]
        wrong[0].set_data_from_numpy(self.left)
        with self.assertRaises(InferenceServerException) as caught:
            self.client.infer("simple", wrong)
        self.assertIn("INPUT1", caught.exception.message())

    def test_statistics_and_repository(self):
        def count():
            return self.client.get_inference_statistics("simple")["model_stats"][0]["inference_stats"]["success"]["count"]
        before = count()
        self.check(self.client.infer("simple", self.inputs()))
        self.assertEqual(count(), before + 1)
        self.assertEqual([one["name"] for one in self.client.get_model_repository_index()], ["simple"])
        self.client.unload_model("simple")
        self.assertFalse(self.client.is_model_ready("simple"))
        self.client.load_model("simple")
        self.assertTrue(self.client.is_model_ready("simple"))


if __name__ == "__main__":
    unittest.main()
