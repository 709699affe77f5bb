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


SOME = [(extent,) for extent in (0, 1, 3, 5, 6, 14, 16, 20, 21, 22, 26, 40)]
BOTH = [(0, 5), (5, 0), (1, 1), (9, 2), (7, 1), (13, 4), (21, 22), (16, 50), (30, 29)]


@form("T", [(extent,) for extent in (0, 1, 4, 5, 7, 8, 9, 11, 12, 13, 30)])
def a_part_of_the_last_ones_behind_all(b):
    """Extents at which the part is shorter have plans of their own."""
    x = b.node("Relu", [b.input("x", ["T"])])
    b.node("Concat", [x, part(b, x, -12, -8, 2)], axis=0)


@form("T", SOME)
def parts_that_long_axes_do_not_have(b):
    """Of no elements in the first samples, or in all but a few."""
    x = b.input("x", ["T"])
    for start, end, step in ((-17, 6, 5), (END, 16, 3), (16, -8, 1), (-8, 21, 5), (-END, -21, -7), (7, -1, -7)):
        b.node("Relu", [part(b, x, start, end, step)])


@form("NM", BOTH)
def parts_that_two_long_axes_do_not_have(b):
    x = b.input("x", ["N", "M"])
    for start, end, step, axis in ((-22, -13, 2, 1), (-21, 4, 2, 1), (10, -18, -1, 0), (14, 0, 3, 1), (-END, -2, -2, 1), (21, 3, -1, 0)):
        b.node("Neg", [part(b, x, start, end, step, axis)])


@form("T", SOME)
def parts_that_are_joined(b):
    x = b.input("x", [2, "T"])
    for start, end, step in ((-17, -6, 2), (-END, -16, 1), (-16, -3, -2)):
        own = part(b, x, start, end, step, 1)
        b.node("Concat", [own, x, own], axis=1)


@form("NM", BOTH)
def parts_of_two_axes_that_are_joined(b):
    x = b.input("x", ["N", "M"])
    for start, end, step, axis in ((13, -15, -1, 0), (-10, 14, -7, 0), (END, -14, 1, 1)):
        own = part(b, x, start, end, step, axis)
        b.node("Concat", [own, x, own], axis=axis)


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
