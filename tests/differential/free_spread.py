"""Models that take a free extent of 1 beside others: a row that stands for all rows of another operand."""

from free_forms import form


@form({"N": 5, "M": 5}, [(7, 1), (1, 7), (7, 7), (1, 1), (5, 1), (1, 5), (0, 0), (0, 1), (1, 0)])
def a_row_for_all_rows(b):
    x, y = b.input("x", ["N", 4]), b.input("y", ["M", 4])
    b.node("Relu", [b.node("Add", [x, y])])


@form({"M": 3, "N": 3, "K": 3}, [(1, 7, 7), (7, 1, 7), (7, 7, 1), (1, 1, 7), (7, 1, 1), (1, 7, 1), (6, 6, 6)])
def one_of_three_operands(b):
    x, y, z = b.input("x", [2, "N"]), b.input("y", [2, "M"]), b.input("z", [2, "K"])
    b.node("Where", [b.node("Greater", [x, y]), y, z])


@form({"N": 7}, [(1,), (7,)])
def a_row_for_all_rows_of_weights(b):
    b.node("Mul", [b.input("x", ["N", 4]), b.weights(7, 4)])


@form({"N": 4, "M": 4}, [(1, 9), (9, 1), (9, 9)])
def a_matrix_for_all_matrices(b):
    b.atol = 1e-4
    x, y = b.input("x", ["N", 3, 5]), b.input("y", ["M", 5, 2])
    b.node("MatMul", [x, y])


@form({"B": 2, "S": 6, "A": 2, "H": 3, "Q": 6, "K": 6}, [(3, 7, 1, 1, 7, 7), (3, 7, 3, 1, 1, 7), (3, 7, 1, 3, 7, 7), (3, 7, 1, 1, 1, 7), (3, 7, 3, 3, 7, 7), (1, 7, 1, 1, 1, 7)])
def masks_of_batches_heads_and_rows(b):
    b.atol = 1e-4
    x, mask = b.input("x", ["B", "S", 12]), b.input("mask", ["A", "H", "Q", "K"])
    heads = b.node("Transpose", [b.node("Reshape", [x, b.i(0, 0, 3, 4)])], perm=[0, 2, 1, 3])
    scores = b.node("MatMul", [heads, b.node("Transpose", [heads], perm=[0, 1, 3, 2])])
    b.node("MatMul", [b.node("Softmax", [b.node("Add", [scores, mask])], axis=-1), heads])


@form({"P": 3, "N": 2, "M": 5}, [(4, 2, 6), (4, 2, 1), (10, 7, 1)])
def a_column_for_past_and_new(b):
    past, x, mask = b.input("past", [1, "P", 4]), b.input("x", [1, "N", 4]), b.input("mask", [1, "M", 1])
    b.node("Mul", [b.node("Concat", [past, x], axis=1), mask])


@form("ABCDEFGH", [(3, 4, 5, 6, 3, 4, 5, 6), (3, 1, 5, 1, 1, 4, 5, 6), (1, 1, 1, 1, 3, 4, 5, 6), (1, 4, 1, 6, 3, 1, 5, 1)])
def any_axis_of_one_of_two_operands(b):
    """Each of four axes may be a row of either: sixteen plans."""
    x, y = b.input("x", list("ABCD")), b.input("y", list("EFGH"))
    b.node("Add", [x, y])


@form("ABCDEF", [(3, 4, 3, 4, 3, 4), (1, 4, 3, 1, 1, 1), (1, 1, 1, 4, 3, 1), (1, 1, 1, 1, 3, 4), (3, 1, 1, 1, 1, 4)])
def any_axis_of_one_of_three_operands(b):
    x, y, z = b.input("x", ["A", "B"]), b.input("y", ["C", "D"]), b.input("z", ["E", "F"])
    b.node("Where", [b.node("Greater", [x, b.const(0, "f4")]), y, z])


@form("NM", [(5, 5), (1, 5), (5, 1), (1, 1), (0, 1), (1, 0)])
def expanded_to_another_operand(b):
    x, y = b.input("x", ["N", 4]), b.input("y", ["M", 4])
    b.node("Expand", [x, b.node("Shape", [y])])


@form("ABCDEFGHIJKL", [(2, 1, 1, 1, 1, 3, 1, 1, 1, 1, 4, 5)])
def any_axis_of_one_of_three_pictures(b):
    """Each of four axes may be a row of two of three operands: 81 plans."""
    condition, x, y = b.input("c", list("ABCD"), "?"), b.input("x", list("EFGH")), b.input("y", list("IJKL"))
    b.node("Where", [condition, x, y])


@form("ABCD", [(2, 3, 2, 3), (1, 1, 1, 1), (0, 2, 0, 2)])
def lists_of_rows_of_one_size(b):
    rows = b.node("SequenceConstruct", [b.input("x", ["A", "B"]), b.input("y", ["C", "D"])])
    b.node("ConcatFromSequence", [rows], axis=0, new_axis=1)
