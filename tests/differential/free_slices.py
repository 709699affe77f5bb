"""Slices and splits of axes that may end before the places that they name."""

import numpy as np
from free_forms import form

EACH_SHORT = [(extent,) for extent in (0, 1, 2, 3, 4, 5, 6, 7, 9, 12, 14, 23)]
END = 2**62


def part(b, x, start, end, step=1, axis=0):
    return b.node("Slice", [x, b.i(start), b.const([end], np.int64), b.i(axis), b.i(step)])


@form({"T": 8}, EACH_SHORT)
def hops_from_the_last_ones(b):
    x = b.input("x", ["T", 3])
    for start, step in ((-4, 2), (-7, 3), (-5, 4)):
        b.node("Relu", [part(b, x, start, END, step)])


for _name, _start, _end, _step in (("backwards_between_places", 8, 1, -3), ("backwards_to_one_from_the_end", 7, -3, -2),
                                   ("between_two_from_the_end", -6, -2, 1), ("far_beyond_both_ends", -20, 20, 1),
                                   ("all_but_the_first_backwards", END, 3, -2), ("the_last_ones_backwards", -3, -END, -1)):

    def _draw(start=_start, end=_end, step=_step):
        return lambda b: b.node("Relu", [part(b, b.input("x", ["T", 3]), start, end, step)])

    _make = _draw()
    _make.__name__ = f"slices_{_name}"
    form({"T": 8}, EACH_SHORT)(_make)


@form({"T": 8}, EACH_SHORT)
def parts_of_parts(b):
    x = b.input("x", ["T", 3])
    middle = part(b, part(b, x, 2, -1), -4, END, 2)
    b.node("ReduceSum", [middle, b.i(0)], keepdims=0)
    b.node("MatMul", [b.node("Relu", [middle]), b.weights(3, 2)])


@form({"N": 8, "M": 8}, [(0, 5), (5, 0), (1, 1), (1, 9), (9, 1), (3, 2), (4, 13), (12, 4), (30, 40)])
def both_axes(b):
    x = b.input("x", ["N", "M"])
    b.node("Neg", [part(b, part(b, x, -4, END, 2), 8, 1, -3, 1)])


@form({"N": 8, "M": 8}, [(0, 5), (5, 0), (1, 3), (3, 1), (6, 6), (9, 20), (20, 9)])
def rows_that_both_have(b):
    """Up to the least of two extents, and of those and a number."""
    x, y = b.input("x", ["N", 3]), b.input("y", ["M", 3])
    least = b.node("Min", [b.dim(x, 0), b.dim(y, 0)])
    rows = [b.node("Slice", [each, b.i(0), least, b.i(0)]) for each in (x, y)]
    b.node("Add", rows)
    b.node("Slice", [x, b.i(1), b.node("Min", [least, b.i(5)]), b.i(0)])


@form({"T": 8}, [(7,), (11,), (30,)], 18)
def parts_of_one_size(b):
    """The last ones are smaller, or empty."""
    x = b.input("x", ["T", 3])
    b.node("Split", [x], 4, num_outputs=4)
    b.node("Neg", [b.node("Split", [x], 3, num_outputs=3)[-1]])


@form({"T": 4}, [(1,), (30,), (70_000,), (70_001,), (140_000,), (200_001,)])
def long_hops(b):
    x = b.input("x", ["T"])
    part(b, x, 0, END, 70_000)
    part(b, x, -1, -END, -65_537)


@form({"T": 70_010}, [(70_001,), (70_300,), (200_000,)])
def windows_of_elements_far_apart(b):
    b.node("Conv", [b.input("x", [1, 1, "T"]), b.weights(2, 1, 2)], dilations=[70_000], strides=[100])
