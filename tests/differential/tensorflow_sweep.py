"""Random Keras models, and Keras' own networks, as TensorFlow's SavedModels and frozen graphs beside TensorFlow itself:
python tensorflow_sweep.py --models 60 --seed 1 [--networks MobileNetV2,...].

Needs keras and tensorflow-cpu (tests/fixtures/requirements-tensorflow.txt) and the built program. Prints each model that differs, with
its layers, and ends with the number of models and of those.
"""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"

import keras  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2  # noqa: E402

from comparison import difference, said  # noqa: E402
from keras_models import random_model, seeded_network  # noqa: E402


def frozen(model, path):
    spec = [tf.TensorSpec(tensor.shape, tensor.dtype, name=tensor.name) for tensor in model.inputs]
    function = tf.function(lambda *given: model(list(given) if len(given) > 1 else given[0], training=False))
    graph = convert_variables_to_constants_v2(function.get_concrete_function(*spec)).graph.as_graph_def()
    path.write_bytes(graph.SerializeToString())


def ours(model, form, inputs, is_free):
    """Arrays by name, or what was said instead."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if form == "saved":
            model.export(folder / "model", verbose=False)
        else:
            frozen(model, folder / "model")
        np.savez(folder / "in.npz", **inputs)
        shapes = [] if is_free else ["--input-shapes", " ".join(
            f"{key}:{json.dumps(list(value.shape), separators=(',', ':'))}" for key, value in inputs.items())]
        why = said(folder, "compile", "model", *shapes, "-o", "model.tar") or said(
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
    parser.add_argument("--forms", default="saved,frozen")
    arguments = parser.parse_args()
    models = wrong = 0
    cases = [(f"random {arguments.seed}:{i}", lambda i=i: random_model(keras, arguments.seed * 1_000_003 + i)) for i in range(arguments.models)]
    cases += [(name, lambda name=name: seeded_network(keras, name)) for name in arguments.networks.split(",") if name]
    for number, (name, build) in enumerate(cases):
        model, inputs = build()
        values = list(inputs.values())
        # Exports have the names of tensors, not of layers.
        inputs = dict(zip([tensor.name for tensor in model.inputs], values))
        want = np.asarray(model(values if len(values) > 1 else values[0], training=False))
        for form in arguments.forms.split(","):
            models += 1
            got = ours(model, form, inputs, is_free=number % 3 == 0)
            why = got if isinstance(got, str) else difference(next(iter(got.values())), want)
            if why is not None:
                wrong += 1
                print(f"{name}, {form}: {why}; layers {[type(layer).__name__ for layer in model.layers][:40]}", flush=True)
        keras.backend.clear_session()
    print(f"{models} models, {wrong} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
