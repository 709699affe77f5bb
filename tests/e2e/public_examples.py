"""What the public examples of tritonclient ask for: the models, and those examples themselves, as they are.

    public_examples.py FOLDER

FOLDER is src/python/examples of a checkout of https://github.com/triton-inference-server/client. Each is run by itself against a
server of ours; exits with 1 where one of them fails. Not among them are those that want what is Triton's own: its name and words, its
override of a model's configuration, models that keep a state, CUDA memory, and shared memory under names of any prefix."""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import grpc_peer  # before onnx, since both bring their Protocol Buffers
from onnx import TensorProto, helper

import serving

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / "tests/python/venv/bin/python"
EXAMPLES = ("simple_grpc_infer_client", "simple_grpc_async_infer_client", "simple_grpc_string_infer_client",
            "simple_grpc_keepalive_client", "simple_grpc_custom_args_client", "simple_grpc_aio_infer_client",
            "simple_grpc_aio_string_infer_client", "simple_grpc_aio_keepalive_client", "simple_grpc_aio_custom_args_client",
            "grpc_explicit_int_content_client", "grpc_explicit_int8_content_client", "grpc_explicit_byte_content_client",
            "simple_http_async_infer_client", "simple_http_string_infer_client")
LIMIT_S = 120


def model(nodes, kind, inputs=("INPUT0", "INPUT1"), outputs=("OUTPUT0", "OUTPUT1")):
    def values(names):
        return [helper.make_tensor_value_info(name, kind, [1, 16]) for name in names]
    graph = helper.make_graph(nodes, "g", values(inputs), values(outputs))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8).SerializeToString()


def sums_model(kind=TensorProto.INT32):
    """Sum and difference."""
    return model([helper.make_node(op, ["INPUT0", "INPUT1"], [name]) for op, name in (("Add", "OUTPUT0"), ("Sub", "OUTPUT1"))], kind)


def text_sums_model():
    """The same of numbers in decimal."""
    nodes = [helper.make_node("Cast", [f"INPUT{i}"], [f"number{i}"], to=TensorProto.INT32) for i in (0, 1)]
    nodes += [helper.make_node(op, ["number0", "number1"], [f"result{i}"]) for i, op in enumerate(("Add", "Sub"))]
    nodes += [helper.make_node("Cast", [f"result{i}"], [f"OUTPUT{i}"], to=TensorProto.STRING) for i in (0, 1)]
    return model(nodes, TensorProto.STRING)


MODELS = {"simple": sums_model, "simple_int8": lambda: sums_model(TensorProto.INT8), "simple_string": text_sums_model,
          "simple_identity": lambda: model([helper.make_node("Identity", ["INPUT0"], ["OUTPUT0"])], TensorProto.STRING, ("INPUT0",),
                                           ("OUTPUT0",))}


def serve(server, names=tuple(MODELS)):
    for name in names:
        server.upload(name, MODELS[name]())
        answer = server.deploy(name, server.compile(name, opt_level=0))
        if answer.status != 201:
            raise AssertionError(answer.body)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="*", help="names of examples; default: all")
    arguments = parser.parse_args()
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        server = serving.Server(folder, *grpc_peer.LISTEN)
        try:
            serve(server)
            for name in arguments.only or EXAMPLES:
                url = f"127.0.0.1:{server.port}" if "_http_" in name else grpc_peer.address(server.settings)
                done = subprocess.run([PYTHON, arguments.folder / f"{name}.py", "-u", url], capture_output=True, text=True,
                                      timeout=LIMIT_S, check=False)
                print(f"{name}: {'passed' if done.returncode == 0 else 'FAILED'}", flush=True)
                if done.returncode != 0:
                    failed.append(name)
                    print((done.stdout + done.stderr)[-2000:])
        finally:
            server.stop()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
