"""Keras' own networks as TFLite files, in float32 and in integers, beside TensorFlow Lite with XNNPACK:

    python3 tests/fixtures/frameworks.py tensorflow bench/tflite/race.py [--program build/bin/tensormill] [--rounds 5] [--runs 5] [--threads 1]
                                         [--forms f32,int8] [--cache .cache/tflite] [NAME...]

In each round both run in turns; a ratio is taken within a round, the median over the rounds stands; beside other work that of the quickest runs
says more. Answers are compared: of integers within
two steps, but for one element in a hundred. Nothing else may run meanwhile. Exits with 1 where a bar is missed: geometric mean of TensorFlow
Lite's time by ours 1.5 in float32 and none below 1.1; 1.0 in integers and none below 0.85."""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import keras  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/differential"))
from keras_models import seeded_network  # noqa: E402

NETWORKS = ("MobileNet", "MobileNetV2", "MobileNetV3Small", "MobileNetV3Large", "EfficientNetB0", "EfficientNetV2B0", "ResNet50V2", "DenseNet121",
            "InceptionV3", "NASNetMobile")
BARS = {"f32": (1.5, 1.1), "int8": (1.0, 0.85)}
warnings.simplefilter("ignore")


def pictures(shape, count, seed):
    return np.random.default_rng(seed).uniform(-1, 1, (count, *shape)).astype(np.float32)


def made(name, form):
    """The file of a network, seeded."""
    keras.backend.clear_session()
    model, _ = seeded_network(keras, name)
    shape = (1, *(224 if extent is None else extent for extent in model.inputs[0].shape[1:]))
    if None in model.inputs[0].shape[1:]:
        entry = keras.Input(shape[1:], name="picture")
        model = keras.Model(entry, model(entry))
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    if form == "int8":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = lambda: ([each] for each in pictures(shape, 8, 1))
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.inference_input_type = converter.inference_output_type = tf.int8
    return converter.convert()


class Peer:
    def __init__(self, model, threads):
        self.interpreter = tf.lite.Interpreter(model_path=str(model), num_threads=threads)
        self.interpreter.allocate_tensors()
        self.name = self.interpreter.get_signature_list()["serving_default"]["inputs"][0]
        self.input, self.output = self.interpreter.get_input_details()[0], self.interpreter.get_output_details()[0]

    def given(self):
        picture = pictures(self.input["shape"], 1, 3)[0]
        if self.input["dtype"] == np.float32:
            return picture
        scale, zero = self.input["quantization"]
        return np.clip(np.round(picture / scale) + zero, -128, 127).astype(np.int8)

    def run(self, value):
        self.interpreter.set_tensor(self.input["index"], value)
        self.interpreter.invoke()
        return self.interpreter.get_tensor(self.output["index"])

    def time(self, value, runs):
        self.interpreter.set_tensor(self.input["index"], value)
        for _ in range(3):
            self.interpreter.invoke()
        times = []
        for _ in range(runs):
            began = time.perf_counter()
            self.interpreter.invoke()
            times.append(time.perf_counter() - began)
        return statistics.median(times) * 1e3, min(times) * 1e3


def time_package(options, package, feed, outputs=None):
    words = [options.program, "run", package, "-i", feed, "--print-time", "--json", "--repeat", str(options.runs), "--number", "1", "--warmup", "3",
             "--threads", str(options.threads)]
    answer = json.loads(subprocess.run(words + (["-o", outputs] if outputs else []), check=True, capture_output=True, text=True).stdout)
    timing = answer.get("timing", answer)
    return timing["median_ms"], timing["min_ms"]


def check(name, got, want):
    if want.dtype == np.int8:
        apart = np.abs(got.astype(int) - want.astype(int))
        fits = np.mean(apart > 2) <= 0.01
    else:
        apart = np.abs(got - want) / max(float(np.abs(want).max()), 1e-6)
        fits = apart.max() <= 1e-3
    if got.shape != want.shape or not fits:
        sys.exit(f"{name}: differs from TensorFlow Lite by {apart.max()}")
    return apart.max()


def race(name, form, options, folder):
    model = options.cache / f"{name}.{form}.tflite"
    if not model.exists():
        model.write_bytes(made(name, form))
    peer = Peer(model, options.threads)
    value = peer.given()
    np.savez(folder / "in.npz", **{peer.name: value})
    began = time.perf_counter()
    subprocess.run([options.program, "compile", model, "--input-shapes", f"{peer.name}:[{','.join(map(str, value.shape))}]", "-o", folder / "model.tar"], check=True, capture_output=True)
    compiled = time.perf_counter() - began
    time_package(options, folder / "model.tar", folder / "in.npz", folder / "out.npz")
    with np.load(folder / "out.npz") as archive:
        apart = check(f"{name} {form}", archive[archive.files[0]], peer.run(value))
    ours, theirs = [], []
    for _ in range(options.rounds):
        ours.append(time_package(options, folder / "model.tar", folder / "in.npz"))
        theirs.append(peer.time(value, options.runs))
    ratio = statistics.median(b / a for (a, _), (b, _) in zip(ours, theirs))
    quickest = min(b for _, b in theirs) / min(a for _, a in ours)
    print(f"{name:18s} {form:5s} ours {statistics.median(a for a, _ in ours):8.2f} ms  TensorFlow Lite {statistics.median(b for b, _ in theirs):8.2f} = {ratio:.2f}x  "
          f"of the quickest runs {quickest:.2f}x  compile {compiled:.1f} s  apart {apart:.2g}", flush=True)
    return ratio


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default=ROOT / "build/bin/tensormill", type=Path)
    parser.add_argument("--cache", default=ROOT / ".cache/tflite", type=Path)
    parser.add_argument("--rounds", default=5, type=int)
    parser.add_argument("--runs", default=5, type=int)
    parser.add_argument("--threads", default=1, type=int)
    parser.add_argument("--forms", default="f32,int8")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    options.cache.mkdir(parents=True, exist_ok=True)
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        for form in options.forms.split(","):
            ratios = [race(name, form, options, Path(folder)) for name in options.names or NETWORKS]
            mean, bar, lowest = math.exp(statistics.fmean(map(math.log, ratios))), *BARS[form]
            print(f"{form}: geometric mean {mean:.3f} (bar {bar}), lowest {min(ratios):.2f} (bar {lowest}); {len(ratios)} networks", flush=True)
            missed += mean < bar or min(ratios) < lowest
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
