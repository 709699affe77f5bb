#!/usr/bin/python3
"""What gRPC costs beside HTTP: the same inference of KServe v2 with binary tensors, in turns, to one server, over both. Neither client
makes anything of an answer. grpc_latency.py [--rounds N]: median and 90th percentile in milliseconds."""

import argparse
import http.client
import json
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/e2e"))
import grpc_peer  # noqa: E402 (after its folder is known)
import numpy as np  # noqa: E402
from onnx import TensorProto, helper  # noqa: E402

import serving  # noqa: E402

ELEMENTS = 150_528
LENGTH = "Inference-Header-Content-Length"


def model(op, size):
    """One operator over a vector."""
    more = {"keepdims": 1} if op != "Relu" else {}
    graph = helper.make_graph([helper.make_node(op, ["x"], ["y"], **more)], "g",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, [ELEMENTS])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [size])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8).SerializeToString()


def asked_by_http(server, name, raw):
    head = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [ELEMENTS], "parameters": {"binary_data_size": len(raw)}}],
                       "parameters": {"binary_data_output": True}}).encode()
    connection = http.client.HTTPConnection("127.0.0.1", server.port)

    def ask():
        connection.request("POST", f"/v2/models/{name}/infer", head + raw,
                           {"Content-Type": "application/octet-stream", LENGTH: str(len(head))})
        answer = connection.getresponse()
        data = answer.read()
        if answer.status != 200:
            raise SystemExit(data)
    return ask


def asked_by_grpc(channel, name, raw):
    request = grpc_peer.service_pb2.ModelInferRequest(model_name=name, raw_input_contents=[raw])
    request.inputs.add(name="x", datatype="FP32", shape=[ELEMENTS])
    message = request.SerializeToString()
    call = channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")
    return lambda: call(message)


def measured(asks, rounds):
    seconds = {name: [] for name in asks}
    for turn in range(rounds + 20):
        for name, ask in asks.items():
            begun = time.perf_counter()
            ask()
            if turn >= 20:
                seconds[name].append(time.perf_counter() - begun)
    return {name: np.percentile(np.array(times) * 1e3, [10, 50, 90]) for name, times in seconds.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=300)
    rounds = parser.parse_args().rounds
    raw = np.ones(ELEMENTS, np.float32).tobytes()
    with tempfile.TemporaryDirectory() as folder:
        server = serving.Server(folder, *grpc_peer.LISTEN)
        try:
            options = [("grpc.max_receive_message_length", -1)]
            with grpc_peer.grpc.insecure_channel(grpc_peer.address(server.settings), options=options) as channel:
                for op, size in (("ReduceMax", 1), ("Relu", ELEMENTS)):
                    server.upload(op, model(op, size))
                    answer = server.deploy(op, server.compile(op))
                    if answer.status != 201:
                        raise SystemExit(answer.body)
                    asks = {"http": asked_by_http(server, op, raw), "grpc": asked_by_grpc(channel, op, raw)}
                    found = measured(asks, rounds)
                    for name, (low, median, high) in found.items():
                        print(f"{len(raw)} bytes in, {4 * size} out, {name}: {low:.3f} / {median:.3f} / {high:.3f} ms")
                    low, median, _ = found["grpc"] - found["http"]
                    print(f"gRPC adds {low:+.3f} ms (10th percentile), {median:+.3f} ms (median)")
        finally:
            server.stop()


if __name__ == "__main__":
    main()
