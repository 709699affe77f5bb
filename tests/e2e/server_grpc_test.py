"""KServe v2 over gRPC: tritonclient's calls, messages that it would not send, limits, deadlines, streams."""

import json
import queue
import random
import subprocess
import tempfile
import unittest
from pathlib import Path

from grpc_peer import grpc, model_config_pb2, service_pb2, triton
import grpc_peer
import numpy as np
from google.protobuf import descriptor_pb2
from onnx import TensorProto, helper

import mill
import serving

DIGITS = mill.ROOT / "tests/models/digits.onnx"
SHAPES = {"image": [1, 1, 28, 28]}
HEALTH = "/grpc.health.v1.Health/"
SERVING, NOT_SERVING = b"\x08\x01", b"\x08\x02"


def text_model():
    """UPPER of three strings."""
    node = helper.make_node("StringNormalizer", ["x"], ["y"], case_change_action="UPPER")
    values = [helper.make_tensor_value_info(name, TensorProto.STRING, [3]) for name in "xy"]
    graph = helper.make_graph([node], "upper", values[:1], values[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8).SerializeToString()


class GrpcTest(grpc_peer.GrpcCase):
    @classmethod
    def setUpClass(cls):
        cls.server = grpc_peer.make_server(cls, "--set", "limits.tensor_bytes=4MiB")
        cls.server.upload("digits", DIGITS.read_bytes())
        answer = cls.server.deploy("digits", cls.server.compile("digits", SHAPES, opt_level=1), version="7")
        if answer.status != 201:
            raise AssertionError(answer.body)
        cls.client = grpc_peer.client(cls, cls.server)
        cls.stub = grpc_peer.stub(cls, cls.server)
        cls.image = np.random.default_rng(3).random((1, 1, 28, 28), dtype=np.float32)
        cls.logits = serving.from_npz(cls.server.infer("digits", {"image": cls.image}).body)["logits"]

    def test_metadata_and_states(self):
        client = self.client
        self.assertTrue(client.is_server_live() and client.is_server_ready() and client.is_model_ready("digits"))
        self.assertTrue(client.is_model_ready("digits", "7"))
        self.assertFalse(client.is_model_ready("digits", "8") or client.is_model_ready("nothing"))
        told = self.server.request("GET", "/v2").json()
        server = client.get_server_metadata()
        self.assertEqual((server.name, server.version, list(server.extensions)),
                         (told["name"], told["version"], told["extensions"]))
        model = client.get_model_metadata("digits", as_json=True)
        self.assertEqual(model["versions"], ["7"])
        self.assertEqual(model["inputs"], [{"name": "image", "datatype": "FP32", "shape": ["1", "1", "28", "28"]}])
        config = client.get_model_config("digits").config
        self.assertEqual((config.name, config.max_batch_size, list(config.input[0].dims)), ("digits", 0, [1, 1, 28, 28]))
        self.assertEqual(config.input[0].data_type, model_config_pb2.TYPE_FP32)
        self.assertIn(("digits", "7", "READY"),
                      [(one.name, one.version, one.state) for one in client.get_model_repository_index().models])
        for call in (client.get_model_metadata, client.get_model_config, client.get_inference_statistics, client.load_model):
            self.refused(grpc.StatusCode.NOT_FOUND, call, "nothing", says="nothing")

    def test_an_inference_is_that_of_http(self):
        answer = self.client.infer("digits", [grpc_peer.tensor("image", self.image)], request_id="a1")
        np.testing.assert_array_equal(answer.as_numpy("logits"), self.logits)
        response = answer.get_response()
        self.assertEqual((response.id, response.model_name, response.model_version), ("a1", "digits", "7"))
        self.assertEqual((response.outputs[0].datatype, list(response.outputs[0].shape)), ("FP32", [1, 10]))
        before = self.client.get_inference_statistics("digits").model_stats[0].inference_stats.success.count
        wish = [triton.InferRequestedOutput("logits", class_count=2)]
        best = self.client.infer("digits", [grpc_peer.tensor("image", self.image)], outputs=wish).as_numpy("logits")
        order = np.argsort(-self.logits[0])[:2]
        self.assertEqual([int(text.split(b":")[1]) for text in best], order.tolist())
        after = self.client.get_inference_statistics().model_stats[0].inference_stats.success.count
        self.assertEqual(after, before + 1)

    def test_contents_by_type_are_the_same_tensors(self):
        request = service_pb2.ModelInferRequest(model_name="digits")
        request.inputs.add(name="image", datatype="FP32", shape=[1, 1, 28, 28]).contents.fp32_contents.extend(self.image.ravel())
        answer = self.stub.ModelInfer(request)
        np.testing.assert_array_equal(np.frombuffer(answer.raw_output_contents[0], np.float32), self.logits.ravel())
        request.inputs[0].contents.int_contents.append(1)
        self.refused(grpc.StatusCode.INVALID_ARGUMENT, self.stub.ModelInfer, request, says="fp32_contents")
        del request.inputs[0].contents.int_contents[:]
        request.raw_input_contents.append(self.image.tobytes())
        self.refused(grpc.StatusCode.INVALID_ARGUMENT, self.stub.ModelInfer, request, says="when using raw_input_contents for 'image' for model 'digits'")
        request = service_pb2.ModelInferRequest(model_name="digits")
        request.inputs.add(name="image", datatype="INT8", shape=[3]).contents.int_contents.extend([127, -128, 300])
        self.refused(grpc.StatusCode.INVALID_ARGUMENT, self.stub.ModelInfer, request,
                     says="element 2 is 300, which is outside the range of INT8, -128 to 127")
        request.inputs[0].datatype = "UINT16"
        request.inputs[0].ClearField("contents")
        request.inputs[0].contents.uint_contents.extend([65535, 65536, 70000])
        self.refused(grpc.StatusCode.INVALID_ARGUMENT, self.stub.ModelInfer, request,
                     says="element 1 is 65536, which is outside the range of UINT16, 0 to 65535")

    def test_strings(self):
        self.server.upload("upper", text_model())
        self.assertEqual(self.server.deploy("upper", self.server.compile("upper")).status, 201)
        words = np.array([b"one", "zwölf".encode(), b""], dtype=object)
        answer = self.client.infer("upper", [grpc_peer.tensor("x", words)])
        self.assertEqual([text.decode() for text in answer.as_numpy("y")], ["ONE", "ZWÖLF", ""])
        request = service_pb2.ModelInferRequest(model_name="upper")
        request.inputs.add(name="x", datatype="BYTES", shape=[3]).contents.bytes_contents.extend(words.tolist())
        self.assertEqual(self.stub.ModelInfer(request).raw_output_contents[0][:7], b"\x03\x00\x00\x00ONE")

    def test_wrong_messages_are_told_what_is_wrong(self):
        invalid, infer = grpc.StatusCode.INVALID_ARGUMENT, self.stub.ModelInfer
        good = grpc_peer.raw_request("digits", self.image)
        self.refused(grpc.StatusCode.NOT_FOUND, infer, grpc_peer.raw_request("no/such", self.image), says="no/such")
        self.refused(invalid, infer, grpc_peer.raw_request("", self.image), says="name")
        self.refused(invalid, infer, grpc_peer.raw_request("digits", self.image[:, :, 1:]), says="image")
        for change, says in ((lambda one: one.raw_input_contents.append(b""), "raw_input_contents"),
                             (lambda one: one.inputs[0].shape.append(-1), "-1"),
                             (lambda one: one.parameters["x"].SetInParent(), "has no value"),
                             (lambda one: setattr(one.inputs[0], "datatype", "FP99"), "FP99"),
                             (lambda one: setattr(one.inputs[0], "name", "\x00é"), ""),
                             (lambda one: one.outputs.add(name="none"), "none"),
                             (lambda one: setattr(one.parameters["timeout"], "int64_param", -1), "timeout")):
            wrong = service_pb2.ModelInferRequest()
            wrong.CopyFrom(good)
            change(wrong)
            self.refused(invalid, infer, wrong, says=says)
        good.inputs[0].parameters["shared_memory_region"].string_param = "mine"
        self.refused(invalid, infer, good, says="0 inputs outside of shared memory and 1 raw_input_contents")
        del good.raw_input_contents[:]
        good.inputs[0].parameters["shared_memory_byte_size"].int64_param = 4
        self.refused(grpc.StatusCode.UNIMPLEMENTED, infer, good, says="shared memory is off")
        good.inputs[0].contents.fp32_contents.append(1)
        self.refused(invalid, infer, good, says="has contents, and is in shared memory, too")
        for method in ("ModelInfer", "ModelMetadata"):
            send = self.channel().unary_unary(f"/inference.GRPCInferenceService/{method}")
            for broken in (b"\xff", b"\x3a\xff\xff\xff\xff\x0f", b"\x0a\x02\xff\xfe", b"\x3a\x05ab", b"\x0b"):
                self.refused(invalid, send, broken)
        self.refused(invalid, self.channel().unary_unary("/inference.GRPCInferenceService/ModelInfer"), b"\x3a\x00" * 5000,
                     says="tensors")
        for name in ("/inference.GRPCInferenceService/LogSettings", "/other/Method"):
            self.refused(grpc.StatusCode.UNIMPLEMENTED, self.channel().unary_unary(name), b"")
        self.assertTrue(self.client.is_server_live())

    def test_an_error_has_the_document_of_http(self):
        names = ["é" * 200 + str(number) for number in range(9)]
        for name, outputs in (("digits", []), ("nothing", []), ("digits", names)):
            request = grpc_peer.raw_request(name, self.image[:, :, 1:])
            for output in outputs:
                request.outputs.add(name=output)
            with self.assertRaises(grpc.RpcError) as caught:
                self.stub.ModelInfer(request, metadata=[("x-request-id", "doc-1")])
            body = {"inputs": [{"name": "image", "datatype": "FP32", "shape": [1, 1, 27, 28], "data": [0] * 756}]}
            if outputs:
                body["outputs"] = [{"name": output} for output in outputs]
            told = self.server.request("POST", f"/v2/models/{name}/infer", json.dumps(body), {"X-Request-Id": "doc-1"}).json()
            behind = dict(caught.exception.trailing_metadata())
            self.assertEqual(behind["x-request-id"], "doc-1")
            self.assertLess(len(behind["problem-bin"]), 2049)
            self.assertEqual(caught.exception.details(), told["detail"])
            found = json.loads(behind["problem-bin"])
            self.assertEqual({key: told[key] for key in found}, found)
            self.assertLessEqual({"code", "status", "request_id"}, set(found))
        self.assertEqual(self.server.request("GET", "/v1/info").json()["grpc_port"], int(self.server.grpc.rsplit(":", 1)[1]))

    def test_mutated_messages_are_answered(self):
        chance = random.Random(7)
        good = grpc_peer.raw_request("digits", self.image[:, :, :2, :2], id="a").SerializeToString()
        sends = [self.channel().unary_unary(f"/inference.GRPCInferenceService/{name}")
                 for name in ("ModelInfer", "ModelInfer", "ModelConfig", "RepositoryModelLoad")]
        told = (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND, grpc.StatusCode.UNIMPLEMENTED,
                grpc.StatusCode.RESOURCE_EXHAUSTED)
        refused = 0
        for _ in range(400):
            message = bytearray(good)
            for _ in range(chance.randrange(1, 4)):
                at = chance.randrange(len(message))
                message[at:at + chance.randrange(2)] = bytes(chance.choices(range(256), k=chance.randrange(2)))
            try:
                chance.choice(sends)(bytes(message))  # some are whole all the same, as a question for a configuration
            except grpc.RpcError as error:
                refused += 1
                self.assertIn(error.code(), told, (bytes(message), error.details()))
        self.assertGreater(refused, 200)
        self.assertTrue(self.client.is_model_ready("digits"))

    def channel(self):
        channel = grpc.insecure_channel(self.server.grpc)
        self.addCleanup(channel.close)
        return channel

    def test_large_and_compressed_messages(self):
        large = np.zeros((1, 1, 1024, 1024), np.float32)
        self.refused(grpc.StatusCode.RESOURCE_EXHAUSTED, self.stub.ModelInfer, grpc_peer.raw_request("digits", large),
                     says="limits.tensor_bytes")
        self.refused(grpc.StatusCode.RESOURCE_EXHAUSTED, self.stub.ModelInfer,
                     grpc_peer.raw_request("digits", np.concatenate([large, large])), says="larger than max")
        packed = grpc.insecure_channel(self.server.grpc, compression=grpc.Compression.Gzip)
        self.addCleanup(packed.close)
        send = packed.unary_unary("/inference.GRPCInferenceService/ModelInfer")
        self.refused(grpc.StatusCode.UNIMPLEMENTED, send, grpc_peer.raw_request("digits", large).SerializeToString())

    def test_streams_answer_in_order_and_outlive_a_wrong_request(self):
        answers = queue.Queue()
        client = grpc_peer.client(self, self.server)
        client.start_stream(callback=lambda result, error: answers.put((result, error)))
        for number in range(6):
            name = "nothing" if number == 3 else "digits"
            client.async_stream_infer(name, [grpc_peer.tensor("image", self.image)], request_id=str(number),
                                      enable_empty_final_response=True)
        for number in range(6):
            result, error = answers.get(timeout=serving.DEADLINE)
            if number == 3:
                self.assertIn("nothing", error.message())
                continue
            self.assertIsNone(error)
            response = result.get_response()
            self.assertEqual(response.id, str(number))
            self.assertTrue(response.parameters["triton_final_response"].bool_param)
            np.testing.assert_array_equal(result.as_numpy("logits"), self.logits)
        client.stop_stream()

    def test_health(self):
        check = self.channel().unary_unary(HEALTH + "Check")
        for service in (b"", b"inference.GRPCInferenceService"):
            self.assertEqual(check(b"\x0a" + bytes([len(service)]) + service), SERVING)
        self.refused(grpc.StatusCode.NOT_FOUND, check, b"\x0a\x01x")
        watch = self.channel().unary_stream(HEALTH + "Watch")(b"")
        self.assertEqual(next(watch), SERVING)
        watch.cancel()

    def test_names_and_numbers_are_those_of_the_public_interface(self):
        with tempfile.NamedTemporaryFile() as out:
            subprocess.run(["protoc", f"--descriptor_set_out={out.name}", "-I", str(mill.ROOT / "server/grpc"), "inference.proto"],
                           check=True)
            ours = descriptor_pb2.FileDescriptorSet.FromString(Path(out.name).read_bytes()).file[0]
        pool = {**service_pb2.DESCRIPTOR.message_types_by_name, **model_config_pb2.DESCRIPTOR.message_types_by_name}
        self.assertEqual(ours.package, service_pb2.DESCRIPTOR.package)

        def compare(message, theirs):
            for field in message.field:
                other = theirs.fields_by_number[field.number]
                self.assertEqual((field.name, field.type, field.label == field.LABEL_REPEATED),
                                 (other.name, other.type, other.is_repeated), message.name)
            for nested in message.nested_type:
                compare(nested, theirs.nested_types_by_name[nested.name])
            for kind in message.enum_type:
                compare_enum(kind, theirs.enum_types_by_name[kind.name])

        def compare_enum(kind, theirs):
            self.assertEqual([(one.name, one.number) for one in kind.value], [(one.name, one.number) for one in theirs.values])

        for message in ours.message_type:
            compare(message, pool[message.name])
        for kind in ours.enum_type:
            compare_enum(kind, model_config_pb2.DESCRIPTOR.enum_types_by_name[kind.name])
        theirs = service_pb2.DESCRIPTOR.services_by_name["GRPCInferenceService"].methods_by_name
        for method in ours.service[0].method:
            self.assertEqual((method.input_type, method.output_type),
                             tuple("." + one.full_name for one in (theirs[method.name].input_type, theirs[method.name].output_type)))


class GrpcProcessTest(grpc_peer.GrpcCase):
    def test_only_who_asks_for_it_loads_it(self):
        off = serving.make_server(self)
        self.assertNotIn("libgrpc", off.maps())
        self.assertNotIn("tensormill-grpc", off.maps())
        on = grpc_peer.make_server(self)
        self.assertIn("libgrpc", on.maps())
        taken = mill.run_program("serve", "--listen", "127.0.0.1:0", "--data", on.folder / "other", "--set",
                                 f"grpc.listen={on.grpc}")
        self.assertEqual(taken.returncode, 2)
        self.assertIn(f"port {on.grpc.rsplit(':', 1)[1]} of 127.0.0.1 is taken; choose another with grpc.listen", taken.stderr)
        open_to_all = mill.run_program("serve", "--listen", "127.0.0.1:0", "--data", on.folder / "other", "--set",
                                       "grpc.listen=0.0.0.0:0")
        self.assertEqual(open_to_all.returncode, 2)
        self.assertIn("grpc.listen 0.0.0.0:0 is not loopback", open_to_all.stderr)

    def test_the_end_of_the_server_ends_streams(self):
        server = grpc_peer.make_server(self)
        channel = grpc.insecure_channel(server.grpc)
        self.addCleanup(channel.close)
        watch = channel.unary_stream(HEALTH + "Watch")(b"")
        self.assertEqual(next(watch), SERVING)
        requests = queue.Queue()
        stream = channel.stream_stream("/inference.GRPCInferenceService/ModelStreamInfer")(iter(requests.get, None))
        requests.put(b"")
        self.assertIn(b"name is missing", next(stream))
        self.assertEqual(server.stop(), 0)
        for call in (watch, stream):
            with self.assertRaises(grpc.RpcError):
                while True:
                    next(call)
        requests.put(None)

    def test_silent_clients_and_streams_have_bounds(self):
        server = grpc_peer.make_server(self, "--set", "grpc.message_timeout=200ms", "--set", "http.max_streams=2")
        channel = grpc.insecure_channel(server.grpc)
        self.addCleanup(channel.close)
        nothing = queue.Queue()
        self.addCleanup(nothing.put, None)
        send = channel.stream_unary("/inference.GRPCInferenceService/ModelInfer")
        self.refused(grpc.StatusCode.DEADLINE_EXCEEDED, send, iter(nothing.get, None), says="grpc.message_timeout")
        watches = [channel.unary_stream(HEALTH + "Watch")(b"") for _ in range(2)]
        self.assertEqual([next(watch) for watch in watches], [SERVING, SERVING])
        third = channel.unary_stream(HEALTH + "Watch")
        self.refused(grpc.StatusCode.UNAVAILABLE, lambda: next(third(b"")), says="http.max_streams")
        # What everybody may ask takes no message, however large.
        live = channel.unary_unary("/inference.GRPCInferenceService/ServerLive")
        self.assertEqual(live(bytes(1 << 20)), b"\x08\x01")
        watches.pop().cancel()
        # The place is free once the server has heard of it.
        serving.wait_for(lambda: self.is_watched(third), "a stream's place")

    @staticmethod
    def is_watched(watch):
        try:
            return next(watch(b"")) == SERVING
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.UNAVAILABLE:
                raise
            return False

    def test_a_deadline_takes_the_request_out_of_the_queue(self):
        server = grpc_peer.make_server(self)
        server.upload("digits", DIGITS.read_bytes())
        package = server.compile("digits", {"image": [2, 1, 28, 28]}, opt_level=0)
        # Alone it waits for a second row as long as a deployment may have it wait.
        self.assertEqual(server.deploy("waits", package, max_batch=2, max_delay_us=1_000_000).status, 201)
        stub = grpc_peer.stub(self, server)
        image = np.zeros((1, 1, 28, 28), np.float32)
        call = stub.ModelInfer.future(grpc_peer.raw_request("waits", image), metadata=[("x-request-id", "late-1")], timeout=0.2)
        self.assertEqual(call.exception().code(), grpc.StatusCode.DEADLINE_EXCEEDED)
        line = serving.wait_for(lambda: next((line for line in server.log_tail().splitlines() if "late-1" in line), None),
                                "the log line of the request")
        self.assertIn("409", line)
        stats = server.request("GET", "/v2/models/waits/stats").json()["model_stats"][0]
        self.assertEqual(stats["execution_count"], 0)


if __name__ == "__main__":
    unittest.main()
