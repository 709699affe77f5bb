"""Random TFLite models beside TensorFlow Lite's own kernels: python tflite_sweep.py --models 150 --outputs 20 --seed 1.

Needs tensorflow-cpu (tests/fixtures/requirements-tensorflow.txt) and the built program. Prints each output that differs, with
what made it, and ends with their number.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

from comparison import difference, said  # noqa: E402
from tflite_models import random_model  # noqa: E402

# Of the largest number of an output: sums in another order, and functions of a few units of the last place.
TOLERANCE = 2e-5


def reference(data, inputs):
    interpreter = tf.lite.Interpreter(
        model_content=data, experimental_op_resolver_type=tf.lite.experimental.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
    interpreter.allocate_tensors()
    for detail in interpreter.get_input_details():
        interpreter.set_tensor(detail["index"], inputs[detail["name"]])
    interpreter.invoke()
    return {detail["name"]: interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()}


def ours(data, inputs, level):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "model.tflite").write_bytes(data)
        np.savez(folder / "in.npz", **inputs)
        for arguments in (["compile", "model.tflite", "-O", str(level), "-o", "model.tar"],
                          ["run", "model.tar", "-i", "in.npz", "-o", "out.npz"]):
            why = said(folder, *arguments)
            if why is not None:
                return why
        with np.load(folder / "out.npz") as archive:
            return {key: archive[key] for key in archive.files}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", type=int, default=150)
    parser.add_argument("--outputs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--level", type=int, default=3)
    arguments = parser.parse_args()
    outputs = wrong = skipped = 0
    for index in range(arguments.models):
        seed = arguments.seed * 100_000 + index
        model = random_model(seed, arguments.outputs)
        data = model.file.bytes()
        try:
            want = reference(data, model.inputs)
        except (RuntimeError, ValueError) as error:
            # What the runtime itself does not take.
            skipped += 1
            print(f"seed {seed}: {str(error).splitlines()[-1][:200]}", flush=True)
            continue
        got = ours(data, model.inputs, arguments.level)
        if isinstance(got, str):
            wrong += 1
            print(f"seed {seed}: {got[:1000]}", flush=True)
            continue
        for name, says in model.cases:
            outputs += 1
            why = difference(got[name], want[name], TOLERANCE)
            if why:
                wrong += 1
                print(f"seed {seed}, {name}: {why}: {says}", flush=True)
    print(f"{arguments.models} models, {skipped} of them refused by TensorFlow Lite, {outputs} outputs, {wrong} wrong")
    sys.exit(1 if wrong or skipped * 4 > arguments.models else 0)


if __name__ == "__main__":
    main()
