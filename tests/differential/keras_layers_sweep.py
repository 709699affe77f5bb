"""Keras' layers that are imported, varied (keras_variations.py), as archives and HDF5 files beside Keras:
python keras_layers_sweep.py [--families dense,pools] [--count 3] [--seed 1].

Needs keras and tensorflow-cpu (tests/fixtures/requirements-tensorflow.txt) and the built program. Prints each case that differs or that
is refused, and ends with their numbers.
"""

import argparse
import os
import sys
import tempfile
import warnings
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"

import keras  # noqa: E402
import numpy as np  # noqa: E402

from comparison import TOLERANCES, Count, LeftOut, Refused, difference, judge_groups, said  # noqa: E402
from keras_models import randomize  # noqa: E402
from keras_variations import FAMILIES, variations  # noqa: E402

CASES_A_MODEL = 24
# Batch, and how much longer free axes are, of each run.
RUNS = ((2, 0), (3, 2), (1, 0))
warnings.simplefilter("ignore")


def as_numpy(tensor):
    """numpy has no bfloat16."""
    return np.asarray(keras.ops.cast(tensor, "float32") if keras.backend.standardize_dtype(tensor.dtype) == "bfloat16" else tensor)


def model_of(cases):
    """A model, and the names of each case's inputs and outputs."""
    inputs, outputs, names = [], {}, []
    try:
        for index, case in enumerate(cases):
            entries = case.entries(f"c{index}_{{}}")
            made = {f"c{index}_out{i}": each for i, each in enumerate(case.made(entries))}
            names.append(({key: entry.name for key, entry in entries.items()}, list(made)))
            inputs, outputs = inputs + list(entries.values()), outputs | made
        model = keras.Model(inputs, outputs)
    except Exception as error:  # whatever Keras says of it
        raise LeftOut(str(error)) from error
    randomize(model, cases[0].seed % 1000)
    return model, names


def run(cases, form):
    """What is wrong with each, for all batches and free extents; how many outputs there are."""
    keras.backend.clear_session()
    model, names = model_of(cases)
    whys, count = [[] for _ in cases], 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        try:
            model.save(folder / f"model.{form}")
        except Exception as error:  # whatever Keras says of it
            raise LeftOut(str(error)) from error
        why = said(folder, "compile", f"model.{form}", "-O", "1", "-o", "model.tar")
        for batch, more in RUNS:
            given = {keys[key]: value for case, (keys, _) in zip(cases, names) for key, value in case.values(batch, more).items()}
            try:
                results = model([keras.ops.convert_to_tensor(given[entry.name]) for entry in model.inputs] if len(given) > 1 else next(iter(given.values())), training=False)
            except Exception as error:  # whatever Keras says of those extents
                if len(cases) > 1:
                    raise LeftOut(str(error)) from error
                continue
            np.savez(folder / "in.npz", **given)
            why = why or said(folder, "run", "model.tar", "-i", "in.npz", "-o", "out.npz")
            if why is not None:
                raise Refused(why)
            with np.load(folder / "out.npz") as archive:
                for case, found, (_, outputs) in zip(cases, whys, names):
                    for key in outputs:
                        count += 1
                        want, short = as_numpy(results[key]), next((kind for kind in ("bfloat16", "float16") if kind in case.policy), None)
                        got = archive[key] if key in archive else None
                        if got is not None and got.dtype.kind == "V":
                            got = (got.view(np.uint16).astype(np.uint32) << 16).view(np.float32)  # bfloat16, of which numpy knows nothing
                        why = difference(got, want, TOLERANCES[short or "float32"] * case.roundings(more)) if got is not None else "it is not there"
                        found += [f"batch {batch}, {more} longer, {key}: {why}"] if why else []
                why = None
    return whys, count


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--count", type=int, default=3, help="variations of each text")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--form", default="keras", help="keras or h5")
    arguments = parser.parse_args()
    groups = [(family, variations(family, arguments.seed, arguments.count)) for family in arguments.families.split(",")]
    return judge_groups(groups, Count(), CASES_A_MODEL, lambda cases: run(cases, arguments.form))


if __name__ == "__main__":
    sys.exit(main())
