"""Random Keras models beside Keras itself, and its own networks: python keras_sweep.py --models 60 --seed 1 [--networks MobileNetV2,...].

Needs keras and tensorflow-cpu (tests/fixtures/requirements-tensorflow.txt) and the built program. Prints each model that differs, with
its layers, and ends with the number of models and of those.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"

import keras  # noqa: E402
import numpy as np  # noqa: E402

from comparison import difference, said  # noqa: E402
from keras_models import random_model, seeded_network  # noqa: E402


def ours(model, suffix, inputs, is_free):
    """Arrays by name, or what was said instead."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model.save(folder / f"model.{suffix}")
        np.savez(folder / "in.npz", **inputs)
        shapes = [] if is_free else ["--input-shapes", " ".join(f"{k}:[{','.join(map(str, v.shape))}]" for k, v in inputs.items())]
        why = said(folder, "compile", f"model.{suffix}", *shapes, "-o", "model.tar") or said(
            folder, "run", "model.tar", "-i", "in.npz", "-o", "out.npz")
        if why is not None:
            return why
        with np.load(folder / "out.npz") as archive:
            return {key: archive[key] for key in archive.files}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--networks", default="")
    arguments = parser.parse_args()
    models = wrong = 0
    cases = [(f"random {arguments.seed}:{i}", lambda i=i: random_model(keras, arguments.seed * 1_000_003 + i)) for i in range(arguments.models)]
    cases += [(name, lambda name=name: seeded_network(keras, name)) for name in arguments.networks.split(",") if name]
    for number, (name, build) in enumerate(cases):
        model, inputs = build()
        values = list(inputs.values())
        want = np.asarray(model(values if len(values) > 1 else values[0], training=False))
        for suffix in ("keras", "h5"):
            models += 1
            got = ours(model, suffix, inputs, is_free=number % 3 == 0)
            why = got if isinstance(got, str) else difference(next(iter(got.values())), want)
            if why is not None:
                wrong += 1
                print(f"{name}.{suffix}: {why}; layers {[type(layer).__name__ for layer in model.layers][:40]}", flush=True)
        keras.backend.clear_session()
    print(f"{models} models, {wrong} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
