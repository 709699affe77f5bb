"""The table of sweeps: a row is a name, what it covers, and the commands that it is made of."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PYTHON = "/usr/bin/python3"


class Sweep:
    """One long run. units(): its commands, each of which can be run by itself; env: what they find in the environment."""

    def __init__(self, name, says, units, env=None):
        self.name, self.says, self.units, self.env = name, says, units, env or {}


def fixed(*commands):
    return lambda: list(commands)


def fuzz_units():
    table = (ROOT / "tests/fuzz/targets.def").read_text(encoding="utf-8")
    return [f"./dev fuzz {name} 120" for name in re.findall(r"^TM_FUZZ\((\w+),", table, re.MULTILINE)]


FRAMEWORKS = f"{PYTHON} tests/fixtures/frameworks.py"
NETWORKS = "MobileNet,MobileNetV2,MobileNetV3Small,EfficientNetB0,ResNet50V2,DenseNet121,InceptionV3,NASNetMobile,Xception"
WHOLE = {"TM_TEST_SCOPE": "sweep"}

SWEEPS = [
    Sweep("tests", "every test, with none left out of those that the gate samples",
          fixed(*(f"./dev test {group}" for group in ("lint", "unit", "golden", "e2e", "python", "determinism", "docs"))), WHOLE),
    Sweep("sanitizers", "every program that has sanitized tests under the address and the thread sanitizer",
          fixed("./dev test sanitizers"), WHOLE),
    Sweep("lint-all", "clang-tidy on all files, and each header compiled alone", fixed("./dev lint --all")),
    Sweep("mutants", "compiler bugs that are put in, one at a time, are noticed", fixed("./dev test mutants")),
    Sweep("differential", "an hour of random models beside ONNX Runtime, three seeds",
          fixed(*(f"./dev soak differential --seed {seed} --seconds 1200" for seed in (101, 202, 303)))),
    Sweep("mixed", "ten minutes of mixed load on a server", fixed("./dev soak mixed")),
    Sweep("kills", "kill -9 of a server, 200 rounds", fixed("./dev soak kills")),
    Sweep("chaos", "three replicas on one database and one bucket, and two workers: every ten seconds a process is killed, or a link is cut "
          "or frozen, for half an hour",
          fixed("./dev build", f"{PYTHON} tests/e2e/replicas_chaos.py --seconds 1800 --recovery-s 4")),
    Sweep("requests", "sixty requests that mean harm at every endpoint that takes a body, and 64 clients with the worst of them",
          fixed("./dev build", f"{PYTHON} tests/e2e/hostile_requests.py --full")),
    Sweep("streams", "10,000 streams of gRPC that are opened and cut leave nothing behind",
          fixed("./dev test server_grpc", f"{PYTHON} tests/e2e/grpc_streams.py --streams 10000")),
    Sweep("store", "a store of 100,000 blobs: what metrics, lists, deletions and collections cost", fixed("./dev soak store")),
    Sweep("large", "a replica on a catalog of 1,000,000 blobs, 100,000 packages and 10,000 deployments",
          fixed("./dev build", "./dev soak large")),
    Sweep("cycles", "1,000 loads of a deployment", fixed("./dev soak cycles")),
    Sweep("faults", "a failing disk at every change of every operation", fixed("./dev soak faults")),
    Sweep("fuzz", "two minutes of broken bytes for each parser", fuzz_units),
    Sweep("keras", "every layer varied, random Keras models and Keras' own networks beside Keras",
          fixed("./dev build", f"{FRAMEWORKS} tensorflow tests/differential/keras_layers_sweep.py --count 4",
                f"{FRAMEWORKS} tensorflow tests/differential/keras_sweep.py --models 300 --networks {NETWORKS}")),
    Sweep("tensorflow", "every operator varied, and the same models as SavedModels and frozen graphs, beside TensorFlow",
          fixed("./dev build", f"{FRAMEWORKS} tensorflow tests/differential/tensorflow_operators_sweep.py --count 5",
                f"{FRAMEWORKS} tensorflow tests/differential/tensorflow_sweep.py --models 300 --networks {NETWORKS}")),
    Sweep("pytorch", "random calls of PyTorch's operators, every overload varied, all pairs of types, and networks of torchvision beside eager PyTorch",
          fixed("./dev build", f"{FRAMEWORKS} pytorch tests/differential/torch_sweep.py --models 100 --outputs 20",
                f"{FRAMEWORKS} pytorch tests/differential/torch_overloads_sweep.py --count 2",
                f"{FRAMEWORKS} pytorch tests/differential/torch_overloads_sweep.py --pairs",
                f"{FRAMEWORKS} pytorch tests/differential/torch_sweep.py --networks all")),
    Sweep("networks", "133 networks of timm and transformers, exported with a free batch and a free sequence, at two of each beside eager PyTorch",
          fixed("./dev build", f"{FRAMEWORKS} networks tests/differential/torch_networks_sweep.py")),
    Sweep("torchscript", "the same calls and networks traced, and networks scripted and frozen, as TorchScript files",
          fixed("./dev build", f"{FRAMEWORKS} pytorch tests/differential/torchscript_sweep.py --models 100 --outputs 20",
                f"{FRAMEWORKS} pytorch tests/differential/torchscript_sweep.py --networks all")),
    Sweep("tflite", "8,000 random operators and chains of maps, in 400 TFLite models, beside TensorFlow Lite's own kernels",
          fixed("./dev build", f"{FRAMEWORKS} tensorflow tests/differential/tflite_sweep.py --models 400")),
    Sweep("coreml", "random operators and chains of ML Programs beside the values that coremltools infers, and 177 torch modules that it converts beside eager PyTorch",
          fixed("./dev build", f"{FRAMEWORKS} coreml tests/differential/coreml_sweep.py --programs 300",
                f"{FRAMEWORKS} coreml tests/differential/coreml_sweep.py --modules")),
    Sweep("dims", "normal forms, bounds, proofs and solutions of a million random formulas of extents against brute force",
          fixed("./dev build", "build/bin/tests/te_tests --gtest_filter=DimProperty.*"), {"TM_TEST_DIM_SEEDS": "200"}),
    Sweep("functions", "functions of floats at a million points each beside a wider reference",
          fixed("./dev build", "build/bin/tests/driver_tests --gtest_filter=Ulps.*"), {"TM_TEST_ULP_POINTS": "1000000"}),
    Sweep("planted", "planted bugs of parsers are found by their fuzz programs", fixed("./dev fuzz --planted")),
    Sweep("package", "the .deb and the wheel are installed and used in a bare Debian",
          fixed("./dev package", "config/package/prove")),
    Sweep("pythons", "the Python package's suite on each CPython that there is, from the oldest that it is for on",
          fixed("./dev build", f"{PYTHON} tests/python/versions.py")),
    Sweep("board", "the program as a worker on a board with a 64-bit ARM processor, which is emulated: a kernel is tuned, the package runs",
          fixed("./dev test aarch64", f"{PYTHON} tests/e2e/board.py")),
    Sweep("docker", "the image is built and run as docker/README.md says", fixed("./dev docker .cache/docker")),
]
