"""What the public examples of tritonclient do over gRPC, by the same calls, names and values: see public_examples.py."""

import asyncio
import queue
import unittest
import uuid

from grpc_peer import grpc, service_pb2, service_pb2_grpc, triton, triton_aio
import grpc_peer
import numpy as np
from tritonclient import utils
import tritonclient.http as triton_http
import tritonclient.utils.shared_memory as shm

import public_examples
import serving

LEFT, RIGHT = np.arange(16, dtype=np.int32), np.ones(16, np.int32)
VALUES = [11, 7, 5, 3, 2, 0, 1]


def texts(values):
    return np.array([str(one).encode() for one in values], dtype=object)


def sums_inputs():
    inputs = [triton.InferInput(name, [1, 16], "INT32") for name in ("INPUT0", "INPUT1")]
    for one, values in zip(inputs, (LEFT, RIGHT)):
        one.set_data_from_numpy(values.reshape(1, 16))
    return inputs


def sums_outputs():
    return [triton.InferRequestedOutput(name) for name in ("OUTPUT0", "OUTPUT1")]


def value_input(number):
    made = triton.InferInput("INPUT", [1, 1], "INT32")
    made.set_data_from_numpy(np.full((1, 1), number, np.int32))
    return [made]


def sequences(has_numbers):
    """By id the model, its values and what it answers; `has_numbers`: the models that know the sequence's own."""
    negative = [-one for one in VALUES]
    text = "1002" if has_numbers else str(uuid.uuid4())
    whole, words = ("simple_dyna_sequence", "simple_string_dyna_sequence") if has_numbers else ("simple_sequence",) * 2
    told = {1000: (whole, [0] + VALUES, [1] + VALUES), 1001: (whole, [100] + negative, [101] + negative),
            text: (words, [20] + negative, list(np.cumsum([20] + negative)) if has_numbers else [21] + negative)}
    if has_numbers:
        for number, (_, _, answers) in told.items():
            answers[-1] += int(number)
    return told


def parts(told):
    """The requests of sequences, one sequence after another."""
    for number, (model, values, _) in told.items():
        for at, one in enumerate(values):
            yield {"model_name": model, "inputs": value_input(one), "outputs": [triton.InferRequestedOutput("OUTPUT")],
                   "request_id": f"{number}_{at + 1}", "sequence_id": number, "sequence_start": at == 0,
                   "sequence_end": at + 1 == len(values)}


class ExamplesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = grpc_peer.make_server(cls, *public_examples.OPTIONS)
        public_examples.serve(cls.server)
        cls.client = grpc_peer.client(cls, cls.server)
        cls.stub = grpc_peer.stub(cls, cls.server)

    def check(self, result):
        np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), [LEFT + RIGHT])
        np.testing.assert_array_equal(result.as_numpy("OUTPUT1"), [LEFT - RIGHT])

    def refused(self, says, call, *words, **more):
        with self.assertRaises(grpc_peer.InferenceServerException) as caught:
            call(*words, **more)
        self.assertIn(says, caught.exception.message())

    def run_async(self, body):
        async def all_of_it():
            async with triton_aio.InferenceServerClient(self.server.grpc) as client:
                return await body(client)
        return asyncio.run(all_of_it())

    def test_health_and_metadata(self):
        fields = {"test": "1", "dummy": "2"}
        self.assertTrue(self.client.is_server_live(headers=fields) and self.client.is_server_ready())
        self.assertTrue(self.client.is_model_ready("simple"))
        self.assertEqual(self.client.get_server_metadata().name, "triton")
        self.assertEqual(self.client.get_model_metadata("simple", headers=fields).name, "simple")
        self.refused("Request for unknown model", self.client.get_model_metadata, "wrong_model_name")
        self.refused("Request for unknown model", self.client.infer, "wrong_model_name", sums_inputs())
        self.assertEqual(self.client.get_model_config("simple").config.name, "simple")

        async def ask(client):
            self.assertTrue(await client.is_server_live(headers=fields))
            with self.assertRaises(grpc_peer.InferenceServerException) as caught:
                await client.get_model_metadata("wrong_model_name")
            self.assertIn("Request for unknown model", caught.exception.message())
            return (await client.get_server_metadata()).name
        self.assertEqual(self.run_async(ask), "triton")

    def test_inferences(self):
        for outputs in (sums_outputs(), None):
            self.check(self.client.infer("simple", sums_inputs(), outputs=outputs, client_timeout=serving.DEADLINE, headers={"test": "1"}))
        self.assertEqual(len(self.client.get_inference_statistics(model_name="simple").model_stats), 1)
        done = queue.Queue()
        for _ in range(8):
            self.client.async_infer("simple", sums_inputs(), lambda result, error: done.put(error or result), outputs=sums_outputs())
        for _ in range(8):
            self.check(done.get(timeout=serving.DEADLINE))
        self.client.async_infer("simple", sums_inputs(), lambda result, error: done.put((result, error))).cancel()
        result, error = done.get(timeout=serving.DEADLINE)
        self.assertTrue(result is not None or "CANCELLED" in error.status(), error)
        keeps = triton.KeepAliveOptions(keepalive_time_ms=2**31 - 1, keepalive_timeout_ms=20000, http2_max_pings_without_data=2)
        own = [("grpc.max_send_message_length", 1 << 20), ("grpc.keepalive_time_ms", 2**31 - 1), ("grpc.dns_enable_srv_queries", 1)]
        for more in ({"keepalive_options": keeps}, {"channel_args": own}):
            with triton.InferenceServerClient(self.server.grpc, **more) as client:
                self.check(client.infer("simple", sums_inputs(), outputs=sums_outputs(), headers={"test": "1"}))

        async def ask(client):
            return await asyncio.gather(*(client.infer("simple", sums_inputs()) for _ in range(2)))
        for result in self.run_async(ask):
            self.check(result)

    def test_a_load_of_many_at_once(self):
        """What perf_analyzer asks before, during and after."""
        self.assertTrue(self.client.is_server_ready() and self.client.is_model_ready("simple"))
        config = self.client.get_model_config("simple", as_json=True)["config"]
        self.assertFalse(config.get("model_transaction_policy", {}).get("decoupled", False))
        extensions = self.client.get_server_metadata().extensions
        self.assertIn("statistics", extensions)

        def counted():
            stats = self.client.get_inference_statistics("simple").model_stats[0]
            return stats.inference_count, stats.inference_stats.success.count, stats.inference_stats.queue.ns
        before, done, requests, at_once = counted(), queue.Queue(), 400, 16

        def send():
            self.client.async_infer("simple", sums_inputs(), lambda result, error: done.put(error or result), outputs=sums_outputs())
        for _ in range(at_once):
            send()
        for number in range(requests):
            self.check(done.get(timeout=serving.DEADLINE))
            if number + at_once < requests:
                send()
        after = counted()
        self.assertEqual([after[0] - before[0], after[1] - before[1]], [requests, requests])
        self.assertGreaterEqual(after[2], before[2])

    def test_strings(self):
        inputs = [triton.InferInput(name, [1, 16], "BYTES") for name in ("INPUT0", "INPUT1")]
        for one, values in zip(inputs, (LEFT, RIGHT)):
            one.set_data_from_numpy(texts(values).reshape(1, 16))
        result = self.client.infer("simple_string", inputs, outputs=sums_outputs())
        self.assertEqual([int(one) for one in result.as_numpy("OUTPUT0")[0]], (LEFT + RIGHT).tolist())
        self.assertEqual([int(one) for one in result.as_numpy("OUTPUT1")[0]], (LEFT - RIGHT).tolist())
        for array in (np.array(["he\x00llo".encode()] * 16, dtype=object).reshape(1, 16),
                      np.array([b"\x00\x01\x02\x03"] * 16, dtype=np.bytes_).reshape(1, 16)):
            same = triton.InferInput("INPUT0", [1, 16], "BYTES")
            same.set_data_from_numpy(array)
            got = self.client.infer("simple_identity", [same], outputs=[triton.InferRequestedOutput("OUTPUT0")]).as_numpy("OUTPUT0")
            self.assertEqual(got.tolist(), array.tolist())

    def test_contents_by_type(self):
        for model, datatype, member, make in (("simple", "INT32", "int_contents", list), ("simple_int8", "INT8", "int_contents", list),
                                              ("simple_string", "BYTES", "bytes_contents", texts)):
            request = service_pb2.ModelInferRequest(model_name=model)
            for name, values in (("INPUT0", LEFT), ("INPUT1", RIGHT)):
                one = request.inputs.add(name=name, datatype=datatype, shape=[1, 16])
                getattr(one.contents, member).extend(make(values))
            for name in ("OUTPUT0", "OUTPUT1"):
                request.outputs.add(name=name)
            response = self.stub.ModelInfer(request)
            self.assertEqual([list(one.shape) for one in response.outputs], [[1, 16]] * 2)
            if datatype == "BYTES":
                sums = [int(one) for one in utils.deserialize_bytes_tensor(response.raw_output_contents[0])]
            else:
                sums = np.frombuffer(response.raw_output_contents[0], np.int8 if datatype == "INT8" else np.int32).tolist()
            self.assertEqual(sums, (LEFT + RIGHT).tolist(), model)
        request.model_version = "wrong_specification"
        with self.assertRaises(grpc.RpcError) as caught:
            self.stub.ModelInfer(request)
        self.assertIn("failed to get model version from specified version string 'wrong_specification'", str(caught.exception))

    def test_the_generated_methods_alone(self):
        with grpc.insecure_channel(self.server.grpc) as channel:
            stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
            self.assertTrue(stub.ServerLive(service_pb2.ServerLiveRequest()).live)
            self.assertTrue(stub.ModelReady(service_pb2.ModelReadyRequest(name="densenet_onnx", version="")).ready)
            request = service_pb2.ModelInferRequest(model_name="densenet_onnx", id="my request id")
            request.inputs.add(name="input", datatype="FP32", shape=[1, 299, 299, 3])
            request.outputs.add(name="InceptionV3/Predictions/Softmax")
            request.raw_input_contents.append(b"a" * 1072812)
            response = stub.ModelInfer(request)
        self.assertEqual((response.id, list(response.outputs[0].shape)), ("my request id", [1, 3]))

    def regions(self, client, sizes):
        """Makes and registers shared memory; returns handles by the region's name."""
        handles = {}
        for name, (key, size) in sizes.items():
            handles[name] = shm.create_shared_memory_region(name, key, size)
            self.addCleanup(shm.destroy_shared_memory_region, handles[name])
            client.register_system_shared_memory(name, key, size)
        return handles

    def test_shared_memory(self):
        client = self.client
        client.unregister_system_shared_memory()
        client.unregister_cuda_shared_memory()
        self.assertEqual(len(client.get_cuda_shared_memory_status().regions), 0)
        size = LEFT.nbytes
        handles = self.regions(client, {"output_data": ("/output_simple", 2 * size), "input_data": ("/input_simple", 2 * size)})
        shm.set_shared_memory_region(handles["input_data"], [LEFT])
        shm.set_shared_memory_region(handles["input_data"], [RIGHT], offset=size)
        inputs, outputs = sums_inputs(), sums_outputs()
        for at in (0, 1):
            inputs[at].set_shared_memory("input_data", size, offset=at * size)
            outputs[at].set_shared_memory("output_data", size, offset=at * size)

        def check(result):
            for at, expected in enumerate((LEFT + RIGHT, LEFT - RIGHT)):
                told = result.get_output(f"OUTPUT{at}")
                got = shm.get_contents_as_numpy(handles["output_data"], utils.triton_to_np_dtype(told.datatype), told.shape,
                                                offset=at * size)
                np.testing.assert_array_equal(got, [expected])
        check(client.infer("simple", inputs, outputs=outputs))
        # The same objects with data in the message, and one of each.
        again = sums_inputs()
        self.check(client.infer("simple", again, outputs=sums_outputs()))
        again[0].set_shared_memory("input_data", size)
        mixed = sums_outputs()
        mixed[0].set_shared_memory("output_data", size)
        result = client.infer("simple", again, outputs=mixed)
        np.testing.assert_array_equal(result.as_numpy("OUTPUT1"), [LEFT - RIGHT])
        told = client.get_system_shared_memory_status().regions
        self.assertEqual({name: (one.key, one.byte_size) for name, one in told.items()},
                         {"output_data": ("/output_simple", 2 * size), "input_data": ("/input_simple", 2 * size)})
        self.refused("registered already", client.register_system_shared_memory, "input_data", "/input_simple", size)
        self.refused("/input, /output", client.register_system_shared_memory, "own", "/own_simple", size)
        client.unregister_system_shared_memory(name="input_data")
        self.refused("not registered", client.infer, "simple", inputs, outputs=outputs)

        async def ask(other):
            await other.register_system_shared_memory("input_data", "/input_simple", 2 * size)
            return await other.infer("simple", inputs, outputs=outputs)
        check(self.run_async(ask))
        client.unregister_system_shared_memory()
        self.assertEqual(len(client.get_system_shared_memory_status().regions), 0)
        self.refused("GPU", client.register_cuda_shared_memory, "gpu", b"aGFuZGxl", 0, 64)

    def test_strings_in_shared_memory(self):
        packed = [utils.serialize_byte_tensor(texts(one)) for one in (LEFT, RIGHT, LEFT + RIGHT, LEFT - RIGHT)]
        names = ("input0", "input1", "output0", "output1")
        sizes = {f"{name}_data": (f"/{name}_simple", utils.serialized_byte_size(one)) for name, one in zip(names, packed)}
        handles = self.regions(self.client, sizes)
        inputs = [triton.InferInput(name, [1, 16], "BYTES") for name in ("INPUT0", "INPUT1")]
        outputs = sums_outputs()
        for at in (0, 1):
            shm.set_shared_memory_region(handles[f"input{at}_data"], [packed[at]])
            inputs[at].set_shared_memory(f"input{at}_data", sizes[f"input{at}_data"][1])
            outputs[at].set_shared_memory(f"output{at}_data", sizes[f"output{at}_data"][1])
        result = self.client.infer("simple_string", inputs, outputs=outputs)
        for at, expected in enumerate((LEFT + RIGHT, LEFT - RIGHT)):
            told = result.get_output(f"OUTPUT{at}")
            got = shm.get_contents_as_numpy(handles[f"output{at}_data"], utils.triton_to_np_dtype(told.datatype), told.shape)
            self.assertEqual(got[0].tolist(), texts(expected).tolist())
        self.client.unregister_system_shared_memory()

    def test_sequences_by_single_requests(self):
        for has_numbers in (False, True):
            told = sequences(has_numbers)
            got = {number: [] for number in told}
            for part in parts(told):
                got[part["sequence_id"]].append(int(self.client.infer(**part).as_numpy("OUTPUT")[0][0]))
            self.assertEqual(got, {number: answers for number, (_, _, answers) in told.items()})
        self.assertEqual([one.name for one in self.client.get_model_metadata("simple_string_dyna_sequence").inputs], ["INPUT"])
        config = self.client.get_model_config("simple_string_dyna_sequence", as_json=True)["config"]["sequence_batching"]
        self.assertEqual(config["state"], [{"input_name": "SUM", "output_name": "NEXT"}])
        self.refused("is not known here", self.client.infer, "simple_sequence", value_input(1), sequence_id=5)
        self.refused("sequence_id is missing", self.client.infer, "simple_sequence", value_input(1))
        self.refused("has no sequences", self.client.infer, "simple", sums_inputs(), sequence_id=5, sequence_start=True)

    def test_sequences_on_a_stream(self):
        for has_numbers in (False, True):
            told = sequences(has_numbers)
            answers = queue.Queue()
            with triton.InferenceServerClient(self.server.grpc) as client:
                client.start_stream(callback=lambda result, error: answers.put(error or result))
                for part in parts(told):
                    client.async_stream_infer(**part)
                got = {str(number): [] for number in told}
                for _ in range(3 * (len(VALUES) + 1)):
                    result = answers.get(timeout=serving.DEADLINE)
                    self.assertIsInstance(result, triton.InferResult)
                    got[result.get_response().id.split("_")[0]].append(int(result.as_numpy("OUTPUT")[0][0]))
            self.assertEqual(got, {str(number): answers for number, (_, _, answers) in told.items()})

        async def ask(client):
            async def requests():
                for part in parts(told):
                    yield part
            return [(result, error) async for result, error in client.stream_infer(requests())]
        self.assertTrue(all(error is None for _, error in self.run_async(ask)))


class ControlTest(unittest.TestCase):
    def test_models_are_loaded_with_another_configuration_and_unloaded(self):
        server = grpc_peer.make_server(self)
        public_examples.serve(server, ("simple",))
        client = grpc_peer.client(self, server)
        self.assertEqual(len(client.get_model_repository_index().models), 1)
        client.load_model("simple")
        self.assertTrue(client.is_model_ready("simple"))
        self.assertEqual(client.get_model_config("simple").config.max_batch_size, 8)

        def refused(says, name, **more):
            with self.assertRaises(grpc_peer.InferenceServerException) as caught:
                client.load_model(name, **more)
            self.assertIn("failed to load", caught.exception.message())
            self.assertIn(says, caught.exception.message())
        refused("JSON", "simple", config='"parameters": {"config": {{"max_batch_size": "16"}}}')
        client.load_model("simple", config='{"max_batch_size":"16"}')
        self.assertEqual(client.get_model_config("simple").config.max_batch_size, 16)
        refused("max_batch", "simple", config='{"max_batch_size":"17"}')
        self.assertTrue(client.is_model_ready("simple"), "what served goes on")
        client.unload_model("simple")
        self.assertFalse(client.is_model_ready("simple"))
        refused("file:", "simple", config="{}", files={"file:" + "A" * 256: b"a"})
        refused("name", "wrong_model_name")
        self.assertTrue(client.is_server_live())
        client.load_model("simple", config='{"max_batch_size":2}')
        self.assertEqual(client.get_model_config("simple").config.max_batch_size, 2)

    def test_sequences_are_the_deployments_own(self):
        """In a process of its own, too, and after a restart, which forgets sequences that go on."""
        server = grpc_peer.make_server(self)
        name = "simple_string_dyna_sequence"
        server.upload(name, public_examples.MODELS[name]())
        spec = {"end": "END", "id": "CORRID", "states": {"SUM": "NEXT"}, "idle_s": 3600, "max_sequences": 5}
        package = server.compile(name, opt_level=0)
        for isolation in ("process", "none"):
            put = server.deploy(name, package, isolation=isolation, sequence=spec)
            self.assertIn(put.status, (200, 201), put.body)
            client = triton.InferenceServerClient(server.grpc)
            values = [client.infer(name, value_input(one), sequence_id="7", sequence_start=one == 1).as_numpy("OUTPUT")[0][0]
                      for one in (1, 2, 4)]
            self.assertEqual(values, [1, 3, 7])
            client.close()
        self.assertEqual(server.request("GET", f"/v1/deployments/{name}/versions/1").json()["sequence"], spec)
        wrong = server.deploy("other", package, sequence={"start": "BEGIN", "states": {"SUM": "NEXT"}})
        self.assertEqual((wrong.status, wrong.json()["errors"][0]["pointer"]), (422, "/sequence/start"), wrong.body)
        self.assertEqual(server.stop(), 0)
        server.start()
        client = grpc_peer.triton.InferenceServerClient(grpc_peer.address(server.settings))
        self.addCleanup(client.close)
        with self.assertRaises(grpc_peer.InferenceServerException) as caught:
            client.infer(name, value_input(1), sequence_id="7")
        self.assertIn("is not known here", caught.exception.message())
        self.assertEqual(client.infer(name, value_input(5), sequence_id="7", sequence_start=True).as_numpy("OUTPUT")[0][0], 5)

    def test_pictures(self):
        """What the image clients look at before they send pictures, and what they print of the answer."""
        server = grpc_peer.make_server(self)
        public_examples.serve_one(server, "pictures")
        client = grpc_peer.client(self, server)
        metadata, config = client.get_model_metadata("pictures"), client.get_model_config("pictures").config
        self.assertEqual((config.max_batch_size, list(config.input[0].dims), list(metadata.inputs[0].shape)), (4, [3, 16, 16], [-1, 3, 16, 16]))
        self.assertEqual(config.input[0].format, grpc_peer.model_config_pb2.ModelInput.FORMAT_NCHW)
        pictures = np.zeros((2, 3, 16, 16), np.float32)
        pictures[0, 1], pictures[1, 2] = 1, 1
        picture = triton.InferInput("picture", [2, 3, 16, 16], "FP32")
        picture.set_data_from_numpy(pictures)
        wish = [triton.InferRequestedOutput("channels", class_count=1)]
        best = client.infer("pictures", [picture], outputs=wish).as_numpy("channels")
        self.assertEqual([one[0].decode().split(":")[1:] for one in best], [["1", "green"], ["2", "blue"]])

    def test_pictures_as_files(self):
        """Files in place of tensors, over gRPC and HTTP, are what …/classify makes of them; and none of them harms."""
        server = grpc_peer.make_server(self, "--set", "limits.image_pixels=1000000")
        name = "preprocess_inception_ensemble"
        public_examples.serve_one(server, name)
        clients = ((grpc_peer.client(self, server), triton), (triton_http.InferenceServerClient(f"127.0.0.1:{server.port}"), triton_http))
        self.addCleanup(clients[1][0].close)
        files = [path.read_bytes() for path in sorted(public_examples.PICTURE.parent.glob("*.png"))]

        def ask(client, kind, files, shape=None, **more):
            picture = kind.InferInput("picture", shape or [len(files), 1], "BYTES")
            picture.set_data_from_numpy(np.array(files, dtype=object).reshape(shape or [len(files), 1]))
            return client.infer(name, [picture], **more)
        single = []
        for file in files:
            answer = server.request("POST", f"/v1/deployments/{name}/classify?top=1", file, {"Content-Type": "image/png"})
            single.append(answer.json()["top"][0]["label"])
        got = []
        for client, kind in clients:
            metadata, config = client.get_model_metadata(name), client.get_model_config(name)
            shown = metadata.inputs[0] if kind is triton else metadata["inputs"][0]
            self.assertIn("BYTES", str(shown))
            said = config.config.input[0] if kind is triton else config["input"][0]
            self.assertIn("TYPE_STRING", str(said))
            wish = [kind.InferRequestedOutput("channels", class_count=1)]
            best = ask(client, kind, files, outputs=wish).as_numpy("channels")
            texts_of = [one[0].decode() if isinstance(one[0], bytes) else one[0] for one in best]
            self.assertEqual([one.split(":")[2] for one in texts_of], single)
            got.append(ask(client, kind, files).as_numpy("channels"))
            np.testing.assert_array_equal(ask(client, kind, files[:1], [1]).as_numpy("channels"), got[-1][:1])
        np.testing.assert_array_equal(*got)
        self.assertEqual(got[0].shape, (len(files), 3))
        # A picture's samples as a tensor are taken as before.
        pixels = triton.InferInput("picture", [1, 3, 16, 16], "FP32")
        pixels.set_data_from_numpy(np.full((1, 3, 16, 16), 0.5, np.float32))
        np.testing.assert_allclose(clients[0][0].infer(name, [pixels]).as_numpy("channels"), [[0.5, 0.5, 0.5]])
        huge = files[0][:16] + (5000).to_bytes(4, "big") * 2 + files[0][24:]
        wrong = {"truncated": files[0][:60], "no picture": b"\x00\xff" * 40, "empty": b"", "too many pixels": huge}
        for what, file in wrong.items():
            for client, kind in clients:
                with self.subTest(what, kind=kind.__name__), self.assertRaises(grpc_peer.InferenceServerException) as caught:
                    ask(client, kind, [files[0], file])
                self.assertIn("picture 1", caught.exception.message())
        for client, kind in clients:
            for count in (17, 100):
                with self.assertRaises(grpc_peer.InferenceServerException) as caught:
                    ask(client, kind, files[:1] * count)
                self.assertIn("takes 1 to 16", caught.exception.message())
        np.testing.assert_array_equal(ask(*clients[1], files, query_params={"test_1": 1}).as_numpy("channels"), got[0])
        refused = server.deploy("other", server.request("GET", f"/v1/deployments/{name}/versions/1").json()["package"], preprocess={"encoded": 1})
        self.assertEqual((refused.status, refused.json()["errors"][0]["pointer"]), (422, "/preprocess/encoded"), refused.body)


if __name__ == "__main__":
    unittest.main()
