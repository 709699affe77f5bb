"""What the public examples of tritonclient ask for: a server, its models, and those examples themselves, as they are.

    public_examples.py FOLDER [--only NAME...]

FOLDER is src/python/examples of a checkout of https://github.com/triton-inference-server/client. Each is run by itself against a
server of ours; exits with 1 where one of them fails. Those that cannot pass are in CANNOT, with the reason; their calls over gRPC, and
those of all others, are made by server_public_examples_test.py, too."""

import argparse
import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

import grpc_peer  # before onnx, since both bring their Protocol Buffers
from onnx import TensorProto, helper

import serving

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / "tests/python/venv/bin/python"
PICTURE = ROOT / "tests/models/pictures/7.png"
LIMIT_S = 120
# What the examples take for granted of their server: Triton's name, and shared memory under their own names.
OPTIONS = ("--set", "v2.server_name=triton", "--set", "v2.system_shared_memory=true", "--set", "v2.shared_memory_prefixes=input,output")

# By name, with the words behind `-u URL`. The first one counts the models.
SIMPLE = ("model_control", "health_metadata", "infer_client", "string_infer_client", "shm_client", "shm_string_client",
          "sequence_sync_infer_client")
EXAMPLES = {
    **{f"simple_{kind}_{name}": () for kind in ("grpc", "grpc_aio") for name in SIMPLE},
    **{f"simple_{kind}_{name}": () for kind in ("grpc", "grpc_aio") for name in ("keepalive_client", "custom_args_client")},
    **{f"simple_{kind}_sequence_stream_infer_client": () for kind in ("grpc", "grpc_aio")},
    "simple_grpc_async_infer_client": (), "simple_http_async_infer_client": (), "simple_http_string_infer_client": (),
    "grpc_explicit_int_content_client": (), "grpc_explicit_int8_content_client": (), "grpc_explicit_byte_content_client": (),
    "grpc_client": (), "reuse_infer_objects_client": ("-i", "grpc"),
    "grpc_image_client": ("-m", "pictures", "-c", "3", "-b", "2", str(PICTURE)),
    "image_client": ("-i", "grpc", "-m", "pictures", "-c", "3", "-b", "2", str(PICTURE)),
}
NEEDS_PILLOW = ("grpc_image_client", "image_client")
CANNOT = {
    "simple_*_cudashm_client": "memory of a GPU is not shared with clients",
    "simple_grpc_custom_repeat": "wants many answers to one request: a package answers each request once",
    "ensemble_image_client": "wants a model that takes files of pictures as BYTES; pictures are decoded by …/classify",
    "memory_growth_test": "has fixed ports; its calls are those of the other examples",
    "vllm_client": "wants a model that generates text",
    "simple_*_model_control of 2026": "its last check looks for a message in the status, which clients make of the code alone",
}


def value(name, kind, shape):
    return helper.make_tensor_value_info(name, kind, shape)


def model(nodes, inputs, outputs, constants=()):
    graph = helper.make_graph(nodes, "g", [value(*one) for one in inputs], [value(*one) for one in outputs], list(constants))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8).SerializeToString()


def pairs(names, kind, rows):
    return [(name, kind, [rows, 16]) for name in names]


def sums_model(kind=TensorProto.INT32, rows=1):
    """Sum and difference."""
    nodes = [helper.make_node(op, ["INPUT0", "INPUT1"], [name]) for op, name in (("Add", "OUTPUT0"), ("Sub", "OUTPUT1"))]
    return model(nodes, pairs(("INPUT0", "INPUT1"), kind, rows), pairs(("OUTPUT0", "OUTPUT1"), kind, rows))


def text_sums_model():
    """The same of numbers in decimal."""
    nodes = [helper.make_node("Cast", [f"INPUT{i}"], [f"number{i}"], to=TensorProto.INT32) for i in (0, 1)]
    nodes += [helper.make_node(op, ["number0", "number1"], [f"result{i}"]) for i, op in enumerate(("Add", "Sub"))]
    nodes += [helper.make_node("Cast", [f"result{i}"], [f"OUTPUT{i}"], to=TensorProto.STRING) for i in (0, 1)]
    return model(nodes, pairs(("INPUT0", "INPUT1"), TensorProto.STRING, 1), pairs(("OUTPUT0", "OUTPUT1"), TensorProto.STRING, 1))


def identity_model():
    return model([helper.make_node("Identity", ["INPUT0"], ["OUTPUT0"])], pairs(("INPUT0",), TensorProto.STRING, 1),
                 pairs(("OUTPUT0",), TensorProto.STRING, 1))


def ones(*names, kind=TensorProto.INT32):
    return [(name, kind, [1, 1]) for name in names]


def sequence_model():
    """One more at the beginning of a sequence."""
    return model([helper.make_node("Add", ["INPUT", "START"], ["OUTPUT"])], ones("INPUT", "START"), ones("OUTPUT"))


def last_number():
    """Adds the number of the sequence to its last value."""
    return [helper.make_node("Cast", ["CORRID"], ["number"], to=TensorProto.INT32),
            helper.make_node("Mul", ["number", "END"], ["last"])]


def numbered_sequence_model():
    nodes = last_number() + [helper.make_node("Add", ["INPUT", "START"], ["started"]),
                             helper.make_node("Add", ["started", "last"], ["OUTPUT"])]
    return model(nodes, ones("INPUT", "START", "END") + ones("CORRID", kind=TensorProto.UINT64), ones("OUTPUT"))


def text_sequence_model():
    """The sum of all values up to this one."""
    nodes = last_number() + [helper.make_node("Add", ["INPUT", "SUM"], ["NEXT"]), helper.make_node("Add", ["NEXT", "last"], ["OUTPUT"])]
    return model(nodes, ones("INPUT", "SUM", "END") + ones("CORRID", kind=TensorProto.STRING), ones("OUTPUT", "NEXT"))


def channels_model(name="input", shape=(1, 299, 299, 3), axes=(1, 2), output="InceptionV3/Predictions/Softmax", classes=3):
    """The mean of each channel of a picture."""
    rows = shape[0]
    node = helper.make_node("ReduceMean", [name], [output], axes=list(axes), keepdims=0)
    return model([node], [(name, TensorProto.FLOAT, list(shape))], [(output, TensorProto.FLOAT, [rows, classes])])


def pictures_model():
    return channels_model("picture", ("N", 3, 16, 16), (2, 3), "channels")


ROWS = {"input_shapes": {"INPUT0": ["N", 16], "INPUT1": ["N", 16]}, "shape_buckets": {"N": [1, 16]}}
MODELS = {"simple": lambda: sums_model(rows="N"), "simple_int8": lambda: sums_model(TensorProto.INT8), "simple_string": text_sums_model,
          "simple_identity": identity_model, "simple_sequence": sequence_model, "simple_dyna_sequence": numbered_sequence_model,
          "simple_string_dyna_sequence": text_sequence_model, "densenet_onnx": channels_model}
COMPILED = {"simple": ROWS, "pictures": {"input_shapes": {"picture": ["N", 3, 16, 16]}, "shape_buckets": {"N": [1, 4]}}}
DEPLOYED = {"simple": {"max_batch": 8, "max_delay_us": 0},
            "simple_sequence": {"sequence": {"start": "START"}},
            "simple_dyna_sequence": {"sequence": {"start": "START", "end": "END", "id": "CORRID"}},
            "simple_string_dyna_sequence": {"sequence": {"end": "END", "id": "CORRID", "states": {"SUM": "NEXT"}}},
            "pictures": {"max_batch": 4, "max_delay_us": 0, "labels": ["red", "green", "blue"], "preprocess": {"layout": "NCHW"}}}


def serve_one(server, name, data):
    server.upload(name, data)
    more = COMPILED.get(name, {})
    package = server.compile(name, more.get("input_shapes"), opt_level=0,
                             **{key: value for key, value in more.items() if key != "input_shapes"})
    answer = server.deploy(name, package, **DEPLOYED.get(name, {}))
    if answer.status != 201:
        raise AssertionError(answer.body)


def serve(server, names=tuple(MODELS)):
    for name in names:
        serve_one(server, name, MODELS[name]())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="*", help="names of examples; default: all")
    arguments = parser.parse_args()
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        server = serving.Server(folder, *grpc_peer.LISTEN, *OPTIONS)
        try:
            serve(server)
            has_pictures = False
            for name in arguments.only or EXAMPLES:
                if name in NEEDS_PILLOW:
                    if importlib.util.find_spec("PIL") is None:
                        print(f"{name}: not run, it needs Pillow")
                        continue
                    if not has_pictures:
                        serve_one(server, "pictures", pictures_model())
                    has_pictures = True
                url = f"127.0.0.1:{server.port}" if "_http_" in name else grpc_peer.address(server.settings)
                done = subprocess.run([PYTHON, arguments.folder / f"{name}.py", "-u", url, *EXAMPLES.get(name, ())],
                                      capture_output=True, text=True, timeout=LIMIT_S, check=False)
                # Who controls it leaves it unloaded.
                server.request("POST", "/v2/repository/models/simple/load")
                print(f"{name}: {'passed' if done.returncode == 0 else 'FAILED'}", flush=True)
                if done.returncode != 0:
                    failed.append(name)
                    print((done.stdout + done.stderr)[-2000:])
        finally:
            server.stop()
    for name, reason in CANNOT.items():
        print(f"{name}: cannot pass: {reason}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
