"""Deployments whose outputs' rows are answers of their own in a gRPC stream."""

import queue
import unittest

from grpc_peer import triton
import grpc_peer
import numpy as np
import tritonclient.utils.shared_memory as shm

import public_examples
import serving


class DecoupledTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = grpc_peer.make_server(cls, "--set", "v2.system_shared_memory=true", "--set", "v2.shared_memory_prefixes=output")
        public_examples.serve(cls.server, ("repeat_int32", "vllm"))
        cls.client = grpc_peer.client(cls, cls.server)

    @staticmethod
    def inputs(values):
        made = [triton.InferInput(name, [count], kind) for name, count, kind in
                (("IN", len(values), "INT32"), ("DELAY", len(values), "UINT32"), ("WAIT", 1, "UINT32"))]
        for one, value in zip(made, (np.array(values, np.int32), np.ones(len(values), np.uint32), np.ones(1, np.uint32))):
            one.set_data_from_numpy(value)
        return made

    def ask(self, requests, count):
        """So many of the answers to these requests; errors as texts."""
        answers = queue.Queue()
        with triton.InferenceServerClient(self.server.grpc) as client:
            client.start_stream(callback=lambda result, error: answers.put(error or result))
            for request in requests:
                client.async_stream_infer("repeat_int32", **request)
            got = [answers.get(timeout=serving.DEADLINE) for _ in range(count)]
        self.assertTrue(answers.empty())
        return [one.get_response() if isinstance(one, triton.InferResult) else one.message() for one in got]

    def numbers(self, response):
        result = triton.InferResult(response)
        return response.id, {one.name: result.as_numpy(one.name).tolist() for one in response.outputs}

    def test_each_row_is_an_answer(self):
        got = self.ask([{"inputs": self.inputs([100, 101, 102]), "request_id": "a"}, {"inputs": self.inputs([7]), "request_id": "b"}], 4)
        self.assertEqual([self.numbers(one) for one in got],
                         [("a", {"OUT": [100 + i], "IDX": [i]}) for i in range(3)] + [("b", {"OUT": [7], "IDX": [0]})])
        self.assertFalse(any("triton_final_response" in one.parameters for one in got))

    def test_who_wants_to_know_is_told_the_end(self):
        wish = [triton.InferRequestedOutput("OUT")]
        got = self.ask([{"inputs": self.inputs([5, 6]), "enable_empty_final_response": True, "outputs": wish},
                        {"inputs": self.inputs([]), "enable_empty_final_response": True}], 4)
        self.assertEqual([one.parameters["triton_final_response"].bool_param for one in got], [False, False, True, True])
        self.assertEqual([self.numbers(one)[1] for one in got], [{"OUT": [5]}, {"OUT": [6]}, {}, {}])

    def test_no_rows_have_no_answer_and_the_stream_goes_on(self):
        got = self.ask([{"inputs": self.inputs([])}, {"inputs": self.inputs([1, 2])[:2]}, {"inputs": self.inputs([3])}], 2)
        self.assertIn("WAIT", got[0])
        self.assertEqual(self.numbers(got[1])[1], {"OUT": [3], "IDX": [0]})

    def test_single_requests_have_all_rows_at_once(self):
        self.assertEqual(self.client.infer("repeat_int32", self.inputs([8, 9])).as_numpy("OUT").tolist(), [[8], [9]])
        self.assertTrue(self.client.get_model_config("repeat_int32").config.model_transaction_policy.decoupled)

    def test_rows_are_not_put_into_shared_memory(self):
        region = shm.create_shared_memory_region("output", "/output", 8)
        self.addCleanup(shm.destroy_shared_memory_region, region)
        self.client.register_system_shared_memory("output", "/output", 8)
        self.addCleanup(self.client.unregister_system_shared_memory)
        wish = [triton.InferRequestedOutput("OUT")]
        wish[0].set_shared_memory("output", 8)
        self.assertEqual(self.ask([{"inputs": self.inputs([1, 2]), "outputs": wish}], 1),
                         ['output "OUT": of a decoupled deployment is not put into shared memory'])

    def test_strings(self):
        self.client.load_model("vllm", config='{"model_transaction_policy": {"decoupled": true}}')
        made = [triton.InferInput("PROMPT", [1], "BYTES"), triton.InferInput("STREAM", [1], "BOOL")]
        made[0].set_data_from_numpy(np.array([b"what is next?"], dtype=object))
        made[1].set_data_from_numpy(np.array([True]))
        answers = queue.Queue()
        with triton.InferenceServerClient(self.server.grpc) as client:
            client.start_stream(callback=lambda result, error: answers.put(error or result))
            client.async_stream_infer("vllm", made, parameters={"temperature": "0.1"})
            result = answers.get(timeout=serving.DEADLINE)
        self.assertEqual(result.as_numpy("TEXT").tolist(), b"what is next?")
        self.assertEqual(result.as_numpy("WHOLE").tolist(), False)

    def test_what_has_no_rows_or_a_batch_is_refused(self):
        package = self.server.compile("repeat_int32", None, opt_level=0)
        answer = self.server.deploy("rows", package, decoupled=True, max_batch=2)
        self.assertEqual(answer.status, 422, answer.body)
        self.assertIn(b"/decoupled", answer.body)
        total = public_examples.model([public_examples.helper.make_node("ReduceSum", ["x"], ["y"], keepdims=0)],
                                      [("x", public_examples.TensorProto.FLOAT, [4])], [("y", public_examples.TensorProto.FLOAT, [])])
        self.server.upload("total", total)
        answer = self.server.deploy("total", self.server.compile("total", None, opt_level=0), decoupled=True)
        self.assertEqual(answer.status, 422, answer.body)
        self.assertIn(b'has no rows', answer.body)


if __name__ == "__main__":
    unittest.main()
