#!/usr/bin/env python3
"""Compares two NPZ files tensor by tensor: max|a-b| <= rtol * max|b|, B being the reference.

    compare.py A.npz B.npz [--rtol 1e-4] [--by-position]

A missing tensor, another dtype or shape, or a NaN or infinity on one side only is a difference. Exit code 0: equal;
1: different (each difference is one line on stdout); 2: a file could not be read.
"""

import argparse
import sys

import numpy as np


def compare_tensors(actual, expected, rtol):
    """Returns None when `actual` equals `expected` within `rtol` of the largest finite |expected|, else what differs."""
    if actual.dtype != expected.dtype:
        return f"dtype {actual.dtype}, expected {expected.dtype}"
    if actual.shape != expected.shape:
        return f"shape {list(actual.shape)}, expected {list(expected.shape)}"
    if actual.size == 0:
        return None
    if actual.dtype.kind not in "fc":
        wrong = int(np.count_nonzero(actual != expected))
        return f"{wrong} of {actual.size} elements differ" if wrong else None
    a, b = actual.astype(np.float64), expected.astype(np.float64)
    for what, test in (("nan", np.isnan), ("+inf", np.isposinf), ("-inf", np.isneginf)):
        one_sided = int(np.count_nonzero(test(a) != test(b)))
        if one_sided:
            return f"{what} on one side only in {one_sided} of {a.size} elements"
    finite = np.isfinite(b)
    if not finite.any():
        return None
    error = np.abs(a[finite] - b[finite])
    largest = float(np.abs(b[finite]).max())
    if float(error.max()) <= rtol * largest:
        return None
    where = np.unravel_index(np.flatnonzero(finite.ravel())[int(error.argmax())], a.shape)
    return (f"max|a-b| {error.max():.3e} > {rtol:g} * max|b| {largest:.3e} (ratio "
            f"{error.max() / largest if largest else float('inf'):.3e}) at {[int(i) for i in where]}: "
            f"{actual[where]!r}, expected {expected[where]!r}")


def compare_sets(actual, expected, rtol, by_position=False):
    """Compares two mappings of name -> array; returns a list of "name: what differs"."""
    if by_position and len(actual) == len(expected):
        pairs = [(name, actual[other], expected[name]) for other, name in zip(actual, expected)]
        names = []
    else:
        names = [f"{n}: missing" for n in expected if n not in actual]
        names += [f"{n}: not expected" for n in actual if n not in expected]
        pairs = [(n, actual[n], expected[n]) for n in expected if n in actual]
    found = ((name, compare_tensors(a, b, rtol)) for name, a, b in pairs)
    return names + [f"{name}: {what}" for name, what in found if what]


def load(path):
    """Reads an NPZ file into a dict, in file order."""
    with np.load(path, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def main(argv=None):
    parser = argparse.ArgumentParser(description="compare two NPZ files")
    parser.add_argument("actual")
    parser.add_argument("expected")
    parser.add_argument("--rtol", type=float, default=1e-4)
    parser.add_argument("--by-position", action="store_true", help="pair tensors by position, not by name")
    args = parser.parse_args(argv)
    try:
        actual, expected = load(args.actual), load(args.expected)
    except Exception as error:  # any broken file is the same answer: it could not be read
        print(f"error: {error}", file=sys.stderr)
        return 2
    differences = compare_sets(actual, expected, args.rtol, args.by_position)
    for line in differences:
        print(line)
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
