"""What the public examples of tritonclient ask for: a server, its models, and those examples themselves, as they are.

    public_examples.py FOLDER [--only NAME...] [--python PROGRAM]

FOLDER is src/python/examples of a checkout of https://github.com/triton-inference-server/client. Each is run by itself against a
server of ours; exits with 1 where one of them fails. Those that cannot pass are in CANNOT, with the reason; their calls over gRPC, and
those of all others, are made by server_public_examples_test.py, too. PROGRAM is a Python with tritonclient, where the tests' own
lacks what some of them need: Pillow and attrdict."""

import argparse
import signal
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
PROMPTS = ROOT / ".clang-format"  # any short lines
LIMIT_S = 120
# What the examples take for granted of their server: Triton's name, and shared memory under their own names.
OPTIONS = ("--set", "v2.server_name=triton", "--set", "v2.system_shared_memory=true", "--set", "v2.shared_memory_prefixes=input,output")

# By name the words behind `-u URL`, of each time that it is run. The first one counts the models.
SIMPLE = ("model_control", "health_metadata", "infer_client", "string_infer_client", "shm_client", "shm_string_client",
          "sequence_sync_infer_client")
ONCE = ((),)
PICTURES = ("-m", "pictures", "-c", "3", "-b", "2", str(PICTURE))
EXAMPLES = {
    **{f"simple_{kind}_{name}": ONCE for kind in ("grpc", "grpc_aio") for name in SIMPLE},
    **{f"simple_{kind}_{name}": ONCE for kind in ("grpc", "grpc_aio") for name in ("keepalive_client", "custom_args_client")},
    **{f"simple_{kind}_sequence_stream_infer_client": ((), ("-d",)) for kind in ("grpc", "grpc_aio")},
    **{f"simple_{kind}_sequence_sync_infer_client": ((), ("-d",)) for kind in ("grpc", "grpc_aio")},
    "simple_grpc_async_infer_client": ONCE, "simple_http_async_infer_client": ONCE, "simple_http_health_metadata": ONCE,
    "simple_http_string_infer_client": ONCE,
    "simple_http_infer_client": ((), ("--request-compression-algorithm", "gzip", "--response-compression-algorithm", "deflate")),
    "grpc_explicit_int_content_client": ONCE, "grpc_explicit_int8_content_client": ONCE, "grpc_explicit_byte_content_client": ONCE,
    "grpc_client": ONCE, "reuse_infer_objects_client": (("-i", "grpc"), ("-i", "http")),
    "grpc_image_client": (PICTURES, ("-a", *PICTURES), ("--streaming", *PICTURES)),
    "image_client": (("-i", "grpc", *PICTURES), ("-i", "grpc", "-a", *PICTURES), ("-i", "grpc", "--streaming", *PICTURES),
                     ("-i", "http", *PICTURES), ("-i", "http", "-a", *PICTURES)),
    "ensemble_image_client": tuple(("-i", kind, "-c", "3", str(where)) for kind in ("grpc", "http") for where in (PICTURE, PICTURE.parent)),
    "memory_growth_test": (("-i", "grpc"), ("-i", "http")),
    "simple_grpc_custom_repeat": ONCE,
    "vllm_client": tuple(("--model-name", "vllm", "--input-prompts", str(PROMPTS), "--results-file", "/dev/null", *more)
                         for more in ((), ("--streaming-mode", "--iterations", "3"))),
}
# Beside those of MODELS, which are eight as one of the examples wants.
NEEDS = {"grpc_image_client": "pictures", "image_client": "pictures", "ensemble_image_client": "preprocess_inception_ensemble",
         "memory_growth_test": "custom_identity_int32", "simple_grpc_custom_repeat": "repeat_int32", "vllm_client": "vllm"}
# They take no URL.
FIXED_PORTS = {"memory_growth_test": ("127.0.0.1", 8000, 8001)}
CANNOT = {
    "simple_*_cudashm_client": "needs a GPU; tests/e2e/server_cuda_memory_test.py does the same against a stand-in for the driver",
    "simple_grpc_model_control of 2026": "looks for a message in the exception's status, which the client makes of the code alone",
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


def identity_model(kind=TensorProto.STRING):
    return model([helper.make_node("Identity", ["INPUT0"], ["OUTPUT0"])], pairs(("INPUT0",), kind, 1), pairs(("OUTPUT0",), kind, 1))


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


def repeat_model():
    """Each number and its place, one after another."""
    nodes = [helper.make_node("Unsqueeze", ["IN", "one"], ["OUT"]), helper.make_node("Mul", ["DELAY", "zero"], ["zeros"]),
             helper.make_node("Add", ["zeros", "WAIT"], ["waits"]), helper.make_node("Cast", ["waits"], ["wide"], to=TensorProto.INT32),
             helper.make_node("Sub", ["wide", "wide"], ["none"]), helper.make_node("Add", ["none", "unit"], ["ones"]),
             helper.make_node("CumSum", ["ones", "axis"], ["counts"], exclusive=1), helper.make_node("Unsqueeze", ["counts", "one"], ["IDX"])]
    constants = [helper.make_tensor("one", TensorProto.INT64, [1], [1]), helper.make_tensor("zero", TensorProto.UINT32, [1], [0]),
                 helper.make_tensor("unit", TensorProto.INT32, [1], [1]), helper.make_tensor("axis", TensorProto.INT32, [], [0])]
    inputs = [("IN", TensorProto.INT32, ["N"]), ("DELAY", TensorProto.UINT32, ["N"]), ("WAIT", TensorProto.UINT32, [1])]
    return model(nodes, inputs, [(name, TensorProto.INT32, ["N", 1]) for name in ("OUT", "IDX")], constants)


def prompt_model():
    """The prompt as its answer."""
    nodes = [helper.make_node("Identity", ["PROMPT"], ["TEXT"]), helper.make_node("Not", ["STREAM"], ["WHOLE"])]
    inputs = [("PROMPT", TensorProto.STRING, [1]), ("STREAM", TensorProto.BOOL, [1])]
    return model(nodes, inputs, [("TEXT", TensorProto.STRING, [1]), ("WHOLE", TensorProto.BOOL, [1])])


ROWS = {"input_shapes": {"INPUT0": ["N", 16], "INPUT1": ["N", 16]}, "shape_buckets": {"N": [1, 16]}}
MODELS = {"simple": lambda: sums_model(rows="N"), "simple_int8": lambda: sums_model(TensorProto.INT8), "simple_string": text_sums_model,
          "simple_identity": identity_model, "simple_sequence": sequence_model, "simple_dyna_sequence": numbered_sequence_model,
          "simple_string_dyna_sequence": text_sequence_model, "densenet_onnx": channels_model}
MORE_MODELS = {"pictures": pictures_model, "preprocess_inception_ensemble": pictures_model,
               "custom_identity_int32": lambda: identity_model(TensorProto.INT32), "repeat_int32": repeat_model, "vllm": prompt_model}
PICTURE_ROWS = {"input_shapes": {"picture": ["N", 3, 16, 16]}, "shape_buckets": {"N": [1, 16]}}
COMPILED = {"simple": ROWS, "pictures": PICTURE_ROWS, "preprocess_inception_ensemble": PICTURE_ROWS}
COLORS = {"max_batch": 4, "max_delay_us": 0, "labels": ["red", "green", "blue"], "preprocess": {"layout": "NCHW"}}
DEPLOYED = {"simple": {"max_batch": 8, "max_delay_us": 0},
            "simple_sequence": {"sequence": {"start": "START"}},
            "simple_dyna_sequence": {"sequence": {"start": "START", "end": "END", "id": "CORRID"}},
            "simple_string_dyna_sequence": {"sequence": {"end": "END", "id": "CORRID", "states": {"SUM": "NEXT"}}},
            "repeat_int32": {"decoupled": True},
            "pictures": COLORS,
            "preprocess_inception_ensemble": {**COLORS, "max_batch": 16, "preprocess": {"layout": "NCHW", "encoded": True}}}


def serve_one(server, name):
    server.upload(name, {**MODELS, **MORE_MODELS}[name]())
    more = COMPILED.get(name, {})
    package = server.compile(name, more.get("input_shapes"), opt_level=0,
                             **{key: value for key, value in more.items() if key != "input_shapes"})
    answer = server.deploy(name, package, **DEPLOYED.get(name, {}))
    if answer.status != 201:
        raise AssertionError(answer.body)


def serve(server, names=tuple(MODELS)):
    for name in names:
        serve_one(server, name)


def run(python, path, words):
    """Whether it passes."""
    example = subprocess.Popen([python, "-X", "faulthandler", path, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        output, _ = example.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        # Its threads say where they wait.
        example.send_signal(signal.SIGABRT)
        output, _ = example.communicate()
    # One of them goes on behind an error, and only says so.
    passed = example.returncode == 0 and "Encountered error" not in output
    said = " ".join(word for word in words if not word.startswith(("/", "127.")))
    print(f"{path.stem} {said}: {'passed' if passed else 'FAILED'}", flush=True)
    if not passed:
        print(output[-2000:])
    return passed


def run_at_ports(python, path, ports):
    host, http, grpc = ports
    with tempfile.TemporaryDirectory() as folder:
        server = serving.Server(folder, "--set", f"grpc.listen={host}:{grpc}", port=http)
        try:
            serve_one(server, NEEDS[path.stem])
            return all([run(python, path, words) for words in EXAMPLES[path.stem]])
        finally:
            server.stop()


def run_all(server, names, folder, python):
    """The names of those that fail."""
    served, failed = set(), []
    for name in names:
        path = folder / f"{name}.py"
        if name in FIXED_PORTS:
            passed = run_at_ports(python, path, FIXED_PORTS[name])
        else:
            more = NEEDS.get(name)
            if more is not None and more not in served:
                serve_one(server, more)
                served.add(more)
            grpc = grpc_peer.address(server.settings)
            passed = True
            for words in EXAMPLES[name]:
                is_http = "_http_" in name or "http" in words
                passed = run(python, path, ("-u", f"127.0.0.1:{server.port}" if is_http else grpc, *words)) and passed
                # Who controls it leaves it unloaded.
                server.request("POST", "/v2/repository/models/simple/load")
        if not passed:
            failed.append(name)
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="*", help="names of examples; default: all")
    parser.add_argument("--python", type=Path, default=PYTHON)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = serving.Server(folder, *grpc_peer.LISTEN, *OPTIONS)
        try:
            serve(server)
            failed = run_all(server, arguments.only or EXAMPLES, arguments.folder, arguments.python)
        finally:
            server.stop()
    for name, reason in CANNOT.items():
        print(f"{name}: cannot pass: {reason}")
    if failed:
        print("failed:", *failed)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
