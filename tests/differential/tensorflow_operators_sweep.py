"""TensorFlow's operators that are imported, varied (tensorflow_variations.py), as frozen graphs beside eager TensorFlow:
python tensorflow_operators_sweep.py [--families unary,binary] [--count 4] [--seed 1].

Needs tensorflow-cpu (tests/fixtures/requirements-tensorflow.txt) and the built program. Prints each case that differs or that is
refused, and ends with their numbers.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

from comparison import TOLERANCES, Count, LeftOut, Refused, difference, judge_groups, said  # noqa: E402
from tensorflow_variations import FAMILIES, longer, variations  # noqa: E402

CASES_A_MODEL = 48


def graph_of(cases):
    """A GraphDef, and the names of each case's inputs and outputs."""
    graph, names = tf.Graph(), []
    try:
        with graph.as_default():
            for index, case in enumerate(cases):
                placeholders = {name: tf.compat.v1.placeholder(value.dtype, [None if extent == case.free else extent for extent in value.shape],
                                                               name=f"c{index}.{name}") for name, value in case.inputs.items()}
                made = [tf.identity(each, name=f"c{index}.out{i}") for i, each in enumerate(case.made(placeholders))]
                names.append(({name: f"c{index}.{name}" for name in placeholders}, [each.op.name for each in made]))
    except Exception as error:  # whatever TensorFlow says of it
        raise LeftOut(str(error)) from error
    kept = tf.compat.v1.graph_util.extract_sub_graph(graph.as_graph_def(), [name for _, outputs in names for name in outputs])
    read = {node.name for node in kept.node}
    return kept, [({name: key for name, key in inputs.items() if key in read}, outputs) for inputs, outputs in names]


def tolerance_of(case):
    if "bfloat16" in case.text:
        return TOLERANCES["bfloat16"]
    if "float16" in case.text:
        return TOLERANCES["float16"]
    return max((TOLERANCES.get(kind, 0) for kind in case.types.values()), default=0) or TOLERANCES["float32"]


def is_no_further(case, inputs, index, got, want):
    """Whether floats are no further from what double precision gives than TensorFlow's own are: of terms that cancel little is left."""
    if got.shape != want.shape or got.dtype != want.dtype or want.dtype.kind != "f":
        return False
    try:
        exact = case.in_double().results({name: value.astype(np.float64) if value.dtype.kind == "f" else value for name, value in inputs.items()})[index]
    except Exception:  # of some types there is no such form
        return False
    return exact.shape == want.shape and np.abs(got - exact).max() <= np.abs(want - exact).max()


def run(cases, level):
    """What is wrong with each, at its own extents and at longer ones; how many outputs there are."""
    graph, names = graph_of(cases)
    turns = [[case.inputs for case in cases]]
    if any(case.free for case in cases):
        turns.append([longer(case) for case in cases])
    whys, count = [[] for _ in cases], 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "model.pb").write_bytes(graph.SerializeToString())
        why = said(folder, "compile", "model.pb", "-O", str(level), "-o", "model.tar")
        for turn, inputs in enumerate(turns):
            np.savez(folder / f"in{turn}.npz", **{key: each[name] for each, (keys, _) in zip(inputs, names) for name, key in keys.items()})
            why = why or said(folder, "run", "model.tar", "-i", f"in{turn}.npz", "-o", f"out{turn}.npz")
        if why is not None:
            raise Refused(why)
        for turn, inputs in enumerate(turns):
            with np.load(folder / f"out{turn}.npz") as archive:
                for case, each, found, (_, outputs) in zip(cases, inputs, whys, names):
                    for index, (key, want) in enumerate(zip(outputs, case.results(each))):
                        count += 1
                        if want.dtype.kind == "i" and not case.is_ordered(each):
                            continue
                        got = next((archive[form] for form in (key, f"{key}:0") if form in archive), None)
                        why = difference(got, want, tolerance_of(case)) if got is not None else "it is not there"
                        if why and got is not None and is_no_further(case, each, index, got, want):
                            continue
                        found += [f"{'of longer ones, ' if turn else ''}result {index}: {why}"] if why else []
    return whys, count


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--count", type=int, default=4, help="variations of each text")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--level", type=int, default=1)
    arguments = parser.parse_args()
    groups = [(family, variations(family, arguments.seed, arguments.count)) for family in arguments.families.split(",")]
    return judge_groups(groups, Count(), CASES_A_MODEL, lambda cases: run(cases, arguments.level))


if __name__ == "__main__":
    sys.exit(main())
