"""Branches over free dims: what each demands of them holds where it is taken, and what it would do does not happen where it is not."""

import numpy as np
from free_forms import form
from free_networks import Branches
from onnx import TensorProto, helper


def flag(value):
    return lambda rng, shape: np.full(shape, value)


def either(b, use, yes, no, outputs=1):
    """An If of the outputs that the two functions give."""
    bodies = {name: b.branch(name, make) for name, make in (("then_branch", yes), ("else_branch", no))}
    results = b.node("If", [use], outputs, **bodies)
    return [results] if isinstance(results, str) else list(results)


def joined_or_alone(b):
    """Side by side, for which both need as many rows."""
    b.__class__ = Branches
    use, x, y = b.input("use", [1], "b1"), b.input("x", ["N", 4]), b.input("y", ["M", 4])
    b.outputs = either(b, use, lambda: [b.node("Concat", [x, y], axis=1)], lambda: [b.node("Concat", [x, x], axis=1)])


@form({"N": 4, "M": 4}, [(7, 7), (1, 1)], use=flag(True))
def rows_side_by_side(b):
    joined_or_alone(b)


@form({"N": 4, "M": 4}, [(7, 5), (1, 4)], use=flag(False))
def rows_that_need_not_meet(b):
    joined_or_alone(b)


@form("N", [(2,), (4,), (5,), (9,)])
def short_rows_are_repeated(b):
    """Extents decide, and the results have other ones."""
    b.__class__ = Branches
    x = b.input("x", ["N", 4])
    short = b.node("Less", [b.one(x, 0), b.const(5, np.int64)])
    z, = either(b, short, lambda: [b.node("Concat", [x, x], axis=0)], lambda: [b.node("Exp", [x])])
    b.outputs = [b.node("Neg", [z])]


def one_of_three(b):
    b.__class__ = Branches
    use, x = b.input("use", [1], "b1"), b.input("x", ["N", 4])
    short = b.node("Less", [b.one(x, 0), b.const(5, np.int64)])
    inner = lambda: either(b, short, lambda: [b.node("Exp", [x])], lambda: [b.node("Sin", [x])])
    b.outputs = either(b, use, inner, lambda: [b.node("Neg", [x])])


@form("N", [(2,), (9,)], use=flag(True))
def a_branch_in_a_branch(b):
    one_of_three(b)


@form("N", [(2,), (9,)], use=flag(False))
def a_branch_beside_branches(b):
    one_of_three(b)


def rows_of_places(b):
    b.__class__ = Branches
    use, x, places = b.input("use", [1], "b1"), b.input("x", ["N", 4]), b.input("places", ["K"], "i8")
    b.outputs = either(b, use, lambda: [b.node("Gather", [x, places], axis=0)], lambda: [b.node("Neg", [x])])


@form({"N": 4, "K": 4}, [(7, 3), (2, 9)], use=flag(True), places=lambda rng, shape: rng.integers(0, 2, shape))
def places_that_there_are(b):
    rows_of_places(b)


@form({"N": 4, "K": 4}, [(7, 3), (2, 9)], use=flag(False), places=lambda rng, shape: np.full(shape, 1 << 40))
def places_that_nobody_looks_for(b):
    rows_of_places(b)


def repeated(b):
    """As often as the input says, in a loop that the other branch does not have."""
    b.__class__ = Branches
    use, x, times = b.input("use", [1], "b1"), b.input("x", ["N", 4]), b.input("times", [1], "i8")

    def looped():
        names = [helper.make_tensor_value_info("i", TensorProto.INT64, []), helper.make_tensor_value_info("c", TensorProto.BOOL, []),
                 helper.make_tensor_value_info("s", TensorProto.FLOAT, None)]
        nodes = [helper.make_node("Identity", ["c"], ["d"]), helper.make_node("Cos", ["s"], ["t"])]
        body = helper.make_graph(nodes, "body", names, [helper.make_tensor_value_info("d", TensorProto.BOOL, []),
                                                        helper.make_tensor_value_info("t", TensorProto.FLOAT, None)])
        return [b.node("Loop", [times, "", x], body=body)]

    b.outputs = either(b, use, looped, lambda: [b.node("Neg", [x])])


@form("N", [(2,), (9,)], use=flag(True), times=lambda rng, shape: np.full(shape, 40))
def loops_in_a_branch(b):
    repeated(b)


@form("N", [(2,), (9,)], use=flag(False), times=lambda rng, shape: np.full(shape, 1 << 62))
def loops_that_do_not_run(b):
    repeated(b)
