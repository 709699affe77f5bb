"""Models that do something else at small extents than at larger ones."""

import numpy as np
from free_forms import form
from onnx import helper


@form({"W": 8}, [(1,), (2,), (3,), (7,)])
def rows_of_three_of_each_length(b):
    """Longer rows are cut, shorter ones padded."""
    x = b.input("x", [2, "W"])
    b.node("Pad", [x, b.node("Concat", [b.i(0, 0, 0), b.node("Sub", [b.i(3), b.dim(x, 1)])], axis=0)])


@form({"W": 10}, [(4,), (5,), (7,), (12,), (20,)], 18)
def powers_under_windows(b):
    """Windows that the input fills in part, and pads that follow from its extent."""
    x = b.input("x", [2, 3, "W"])
    for options in ({"strides": [2], "ceil_mode": 1}, {"strides": [3], "pads": [1, 3], "ceil_mode": 1}, {"strides": [3], "auto_pad": "SAME_LOWER"}):
        b.node("LpPool", [x], kernel_shape=[5], **options)


@form({"W": 16, "K": 5}, [(3, 2), (40, 20), (4, 4)])
def rows_and_then_windows(b):
    """Of what is given one after the other the first is too short, or the second too long, for what the other was before."""
    x, w = b.input("x", [1, 1, "W"]), b.input("w", [1, 1, "K"])
    b.node("Conv", [x, w])


@form({"W": 16, "K": 5}, [(3, 2), (40, 20)])
def windows_and_then_rows(b):
    w, x = b.input("w", [1, 1, "K"]), b.input("x", [1, 1, "W"])
    b.node("Conv", [x, w])


@form({"N": 5, "M": 7}, [(3, 9), (9, 3), (6, 6), (31, 30)])
def as_many_rows_as_the_longer_one_has(b):
    x, y = b.input("x", ["N", 4]), b.input("y", ["M", 4])
    most = b.node("Max", [b.node("Shape", [x]), b.node("Shape", [y])])
    b.node("Expand", [b.weights(1, 4), most])
    rows = b.node("Sub", [most, b.node("Shape", [x])])
    b.node("Pad", [x, b.node("Concat", [b.i(0, 0), rows], axis=0)])


@form({"N": 5, "M": 7, "K": 3}, [(3, 9, 4), (9, 3, 8), (6, 6, 2), (31, 30, 33)])
def the_least_of_three(b):
    x, y, z = b.input("x", ["N", 4]), b.input("y", ["M", 4]), b.input("z", ["K", 4])
    least = b.node("Min", [b.node("Shape", [x], end=1), b.node("Shape", [y], end=1), b.node("Shape", [z], end=1)])
    b.node("Expand", [b.weights(1, 4), b.node("Concat", [least, b.i(4)], axis=0)])


@form({"T": 5}, [(3,), (9,), (1,), (40,)])
def rows_up_to_half_of_both(b):
    """A table that is as long as half of the rows and one, or all of them, which is less."""
    x = b.input("x", ["T", 4])
    least = b.node("Min", [b.dim(x, 0), b.node("Add", [b.node("Div", [b.dim(x, 0), b.i(2)]), b.i(3)])])
    b.node("Slice", [x, b.i(0), b.node("Reshape", [least, b.i(1)]), b.i(0)])


def where_there_is_one(b, x, y, other):
    """The branches have an operator each; the second one has one more."""
    graphs = [helper.make_graph([helper.make_node(op, [x if i == 0 else f"{name}{i - 1}"], [f"{name}{i}"]) for i, op in enumerate(ops)], name, [],
                                [helper.make_empty_tensor_value_info(f"{name}{len(ops) - 1}")], [])
              for name, ops in (("then", y), ("else", other))]
    only = b.node("Equal", [b.one(x, 0), b.const(1, np.int64)])
    return b.node("If", [only], then_branch=graphs[0], else_branch=graphs[1])


@form("N", [(0,), (1,), (2,), (7,)])
def one_row_takes_another_branch(b):
    where_there_is_one(b, b.input("x", ["N", 4]), ["Exp", "Sin"], ["Neg"])


@form("NM", [(0, 2), (1, 0), (1, 1), (1, 3), (2, 1), (7, 5)])
def one_row_takes_another_branch_of_one_form(b):
    """What the branches compute differs in nothing but a number."""
    x, y = b.input("x", ["N", 4]), b.input("y", ["M", 4])
    only = b.node("Cast", [b.node("Equal", [b.one(x, 0), b.const(1, np.int64)])], to=1)
    z = where_there_is_one(b, x, ["Exp"], ["Neg"])
    b.node("Concat", [b.node("Mul", [z, b.node("Add", [only, b.const(2, "f4")])]), y], axis=0)
