"""Models whose extents a run decides: counts of what it keeps, and its numbers as shapes, ends and sizes."""

import numpy as np
from free_branches import either
from free_forms import form
from free_networks import Branches


def signs(rng, shape):
    return rng.uniform(-1, 1, shape)


def all_below(rng, shape):
    return rng.uniform(-2, -1, shape)


def count_above(b, x):
    """As i64 [1]."""
    return b.node("ReduceSum", [b.node("Cast", [b.node("Greater", [x, b.const(0, "f4")])], to=7), b.i(0)], keepdims=1)


@form("N", [(12,), (1,), (40,)], x=signs)
def places_of_places(b):
    """What is chosen of what was chosen, each by what is there of the one before."""
    x = b.input("x", ["N"])
    at = b.node("NonZero", [b.node("Greater", [x, b.const(0, "f4")])])
    kept = b.node("Gather", [x, b.node("Squeeze", [at, b.i(0)])])
    mean = b.node("ReduceMean", [kept], keepdims=1)
    above = b.node("Compress", [kept, b.node("GreaterOrEqual", [kept, mean])], axis=0)
    values, counts = b.node("Unique", [b.node("Floor", [b.node("Mul", [above, b.const(8, "f4")])])], 4)[::3]
    b.outputs = [kept, above, values, counts, b.node("Concat", [kept, above], axis=0)]


@form("N", [(12,), (5,), (40,)], x=all_below)
def nothing_is_chosen(b):
    x = b.input("x", ["N"])
    kept = b.node("Compress", [x, b.node("Greater", [x, b.const(0, "f4")])], axis=0)
    b.outputs = [kept, b.node("Mul", [kept, kept]), b.node("Concat", [kept, x], axis=0), b.node("ReduceSum", [kept], keepdims=1)]


@form("N", [(12,), (5,), (40,)], x=signs)
def rows_as_many_as_are_above(b):
    x = b.input("x", ["N"])
    k = count_above(b, x)
    b.outputs = [b.node("Expand", [b.weights(1, 3), b.node("Concat", [k, b.i(3)], axis=0)]),
                 b.node("ConstantOfShape", [b.node("Concat", [k, b.i(2)], axis=0)]),
                 b.node("Tile", [b.weights(2), k])]


@form("N", [(12,), (5,), (40,)], x=signs)
def parts_at_a_place_of_the_run(b):
    x = b.input("x", ["N"])
    k = count_above(b, x)
    b.outputs = [b.node("Slice", [x, b.i(0), k]), b.node("Slice", [x, k, b.i(1000)]), b.node("Pad", [x, b.node("Concat", [b.i(0), k], axis=0)])]


@form("N", [(12,), (5,), (40,)], x=signs)
def the_largest_of_the_run(b):
    x = b.input("x", ["N"])
    k = count_above(b, x)
    b.outputs = [*b.node("TopK", [x, k], 2), b.node("OneHot", [b.i(0, 2), k, b.const([0, 1], "f4")])]


@form("N", [(12,), (3,), (40,)], x=signs)
def maps_of_a_size_of_the_run(b):
    x, y = b.input("x", ["N"]), b.input("y", [1, 2, 4, 5])
    k = count_above(b, x)
    sizes = b.node("Concat", [b.i(1, 2), b.node("Add", [k, b.i(1)]), b.i(7)], axis=0)
    b.node("Resize", [y, "", "", sizes], mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")


@form("N", [(12,), (6,), (40,)], x=signs)
def scores_of_what_is_kept(b):
    """Attention of the chosen rows with themselves, and with all."""
    x = b.input("x", ["N"])
    rows = b.node("MatMul", [b.node("Unsqueeze", [x, b.i(1)]), b.weights(1, 4)])
    kept = b.node("Compress", [rows, b.node("Greater", [x, b.const(0, "f4")])], axis=0)
    for other in (kept, rows):
        weights = b.node("Softmax", [b.node("MatMul", [kept, b.node("Transpose", [other])])], axis=-1)
        b.outputs = [*b.outputs, b.node("MatMul", [weights, other])]


@form("N", [(12,), (5,), (6,)], x=lambda rng, shape: (all_below if shape[0] < 8 else signs)(rng, shape))
def shapes_of_as_many_as_are_above(b):
    """A shape's 0 copies an extent: there is no plan of it, and the run is interpreted."""
    x = b.input("x", ["N"])
    k = count_above(b, x)
    rows = b.node("ConstantOfShape", [b.node("Concat", [k, b.i(6)], axis=0)])
    b.node("Reshape", [rows, b.node("Concat", [k, b.i(2, 3)], axis=0)])


def kept_boxes(b, thresholds=(0,)):
    """As exporters write what a detector ends with: no boxes where there are none, else those that overlap little."""
    b.__class__ = Branches
    x = b.input("x", ["N", 4])
    scores = b.node("ReduceMax", [x], axes=[1], keepdims=0)
    levels = []
    for threshold in thresholds:
        at = b.node("Squeeze", [b.node("NonZero", [b.node("Greater", [scores, b.const(threshold, "f4")])]), b.i(0)])
        if len(thresholds) > 1:
            k = b.node("ReduceMin", [b.node("Concat", [b.i(7), b.node("Shape", [at])], axis=0)], keepdims=1)
            at = b.node("Gather", [at, b.node("TopK", [b.node("Gather", [scores, at]), k], 2)[1]])
        levels.append([b.node("Gather", [each, at]) for each in (x, scores)])
    boxes, scores = (b.node("Concat", each, axis=0) for each in zip(*levels))
    none = b.node("Equal", [b.node("ReduceProd", [b.node("Shape", [boxes])], keepdims=0), b.const(0, np.int64)])

    def kept():
        apart = b.node("Add", [boxes, b.node("ReduceMax", [boxes], keepdims=1)])
        batch = [b.node("Unsqueeze", [apart, b.i(0)]), b.node("Unsqueeze", [scores, b.i(0, 1)])]
        chosen = b.node("NonMaxSuppression", [*batch, b.i(100), b.const([0.5], "f4")])
        return [b.node("Gather", [boxes, b.node("Squeeze", [b.node("Gather", [chosen, b.i(2)], axis=1), b.i(1)])])]

    rows, = either(b, none, lambda: [b.node("Identity", [b.const(np.zeros((0, 4)), "f4")])], kept)
    b.outputs = [rows, b.node("ReduceSum", [rows, b.i(0)], keepdims=1)]


@form("N", [(12,), (1,), (40,)], x=signs)
def some_boxes_are_kept(b):
    kept_boxes(b)


@form("N", [(12,), (5,), (40,)], x=all_below)
def no_boxes_are_kept(b):
    kept_boxes(b)


@form("N", [(12,), (1,), (40,)], x=signs)
def boxes_of_some_levels_are_kept(b):
    kept_boxes(b, (2, -0.5, 0.8))


@form("N", [(12,), (5,), (40,)], x=all_below)
def boxes_of_no_level_are_kept(b):
    kept_boxes(b, (2, -0.5, 0.8))


@form("N", [(12,), (5,), (40,)], x=signs)
def parts_of_which_any_may_be_none(b):
    """Levels of a detector: the best of what is above each threshold, side by side, whichever of them has some."""
    x = b.input("x", ["N"])
    best, places = [], []
    for threshold in (2, -2, 0.9, 3, 0.2, 1.5):
        own = b.node("Compress", [x, b.node("Greater", [x, b.const(threshold, "f4")])], axis=0)
        k = b.node("ReduceMin", [b.node("Concat", [b.i(3), b.node("Shape", [own])], axis=0)], keepdims=1)
        values, at = b.node("TopK", [own, k], 2)
        best.append(b.node("Add", [values, b.node("Gather", [own, at])]))
        places.append(at)
    b.outputs = [b.node("Concat", best, axis=0), b.node("Concat", places, axis=0), b.node("Concat", best[::3], axis=0)]
