"""Models whose weights are inputs of a run, all of their axes free, and windows and parts that are no larger than what they go over."""

import numpy as np
from free_forms import form


def normalized(b, x, weights, bias):
    mean = b.node("ReduceMean", [x], axes=[-1], keepdims=1)
    part = b.node("Sub", [x, mean])
    square = b.node("ReduceMean", [b.node("Pow", [part, b.const(2, "f4")])], axes=[-1], keepdims=1)
    y = b.node("Div", [part, b.node("Sqrt", [b.node("Add", [square, b.const(1e-5, "f4")])])])
    return b.node("Add", [b.node("Mul", [y, weights]), bias])


@form("BTCKL", [(2, 3, 8, 8, 8), (1, 1, 5, 5, 5), (1, 2, 5, 1, 5), (5, 1, 2, 2, 1), (2, 3, 1, 1, 1)])
def norms_of_free_weights(b):
    b.atol = 1e-4
    normalized(b, b.input("x", ["B", "T", "C"]), b.input("w", ["K"]), b.input("c", ["L"]))


@form("NCIKJL", [(2, 8, 1, 8, 1, 8), (3, 5, 1, 5, 3, 5), (1, 4, 3, 1, 1, 4), (1, 1, 4, 5, 1, 5), (0, 3, 1, 3, 1, 3)])
def norms_of_free_rows(b):
    b.atol = 1e-4
    normalized(b, b.input("x", ["N", "C"]), b.input("w", ["I", "K"]), b.input("c", ["J", "L"]))


@form("BTCDKLMP", [(2, 3, 8, 8, 8, 8, 8, 8), (1, 7, 5, 5, 5, 1, 9, 9), (1, 1, 1, 1, 1, 1, 9, 1)])
def norms_before_a_product(b):
    b.atol = 1e-4
    x, w, c = b.input("x", ["B", "T", "C"]), b.input("w", ["K"]), b.input("c", ["L"])
    v, u = b.input("v", ["D", "M"]), b.input("u", ["P"])
    b.node("Add", [b.node("MatMul", [normalized(b, x, w, c), v]), u])


WINDOWS = [(2, 3, 5, 5, 4, 3, 1, 1), (1, 5, 3, 3, 2, 5, 3, 3), (1, 1, 1, 1, 1, 1, 1, 1), (1, 2, 2, 40, 3, 2, 2, 17)]


def draw_windows(name, shapes=WINDOWS, **attributes):
    def make(b):
        b.atol = 1e-4
        b.node("Conv", [b.input("x", ["N", "C", "H", "W"]), b.input("w", ["M", "D", "K", "L"])], **attributes)

    make.__name__ = f"windows_{name}"
    form("NCHWMDKL", shapes)(make)


draw_windows("of_free_weights")
draw_windows("that_move_by_two", strides=[2, 2], pads=[1, 1, 1, 1])
draw_windows("of_the_same_size", strides=[2, 2], auto_pad="SAME_UPPER")
draw_windows("that_move_by_three", [*WINDOWS, (1, 2, 1, 7, 3, 2, 1, 2)], strides=[3, 1], pads=[1, 0, 1, 0])
draw_windows("far_apart", [(2, 3, 5, 5, 4, 3, 1, 1), (1, 5, 5, 5, 2, 5, 3, 3), (1, 1, 1, 1, 1, 1, 1, 1), (1, 2, 3, 40, 3, 2, 2, 17)], dilations=[2, 2])
draw_windows("of_two_groups", [(1, 4, 5, 6, 4, 2, 3, 2), (2, 6, 5, 5, 2, 3, 1, 1), (1, 2, 1, 1, 2, 1, 1, 1)], group=2, strides=[2, 2], pads=[1, 1, 1, 1])
draw_windows("of_three_groups", [(1, 6, 5, 6, 3, 2, 3, 2), (2, 3, 5, 5, 6, 1, 1, 1)], group=3)


@form("NCWMDLE", [(1, 2, 9, 3, 2, 2, 3), (2, 3, 5, 4, 3, 1, 4), (1, 5, 3, 2, 5, 3, 2), (1, 2, 40, 3, 2, 17, 3)])
def windows_along_one_axis(b):
    b.atol = 1e-4
    x, w, bias = b.input("x", ["N", "C", "W"]), b.input("w", ["M", "D", "L"]), b.input("e", ["E"])
    b.node("Relu", [b.node("Conv", [x, w, bias], pads=[1, 1])])


@form("NCDHWMEKLP", [(1,) * 10, (1, 2, 3, 4, 5, 3, 2, 3, 4, 5)])
def windows_as_large_as_volumes(b):
    b.atol = 1e-4
    b.node("Conv", [b.input("x", list("NCDHW")), b.input("w", list("MEKLP"))], strides=[1, 2, 2])


@form("NCHWMDKL", WINDOWS)
def windows_of_integers(b):
    x, w = b.input("x", ["N", "C", "H", "W"], "u1"), b.input("w", ["M", "D", "K", "L"], "u1")
    b.node("ConvInteger", [x, w, b.const(3, np.uint8), b.const(5, np.uint8)], pads=[1, 0, 0, 1])


@form("NCHWMDKLPR", [(*shape, shape[4], shape[4]) for shape in WINDOWS], s=lambda rng, shape: rng.uniform(0.1, 0.3, shape))
def windows_of_quantized_weights(b):
    b.units = 1
    x, w = b.input("x", ["N", "C", "H", "W"], "u1"), b.input("w", ["M", "D", "K", "L"], "u1")
    scales, bias = b.input("s", ["P"]), b.input("c", ["R"], "i4")
    b.node("QLinearConv", [x, b.const(0.1, "f4"), b.const(3, np.uint8), w, scales, b.const(4, np.uint8), b.const(2, "f4"), b.const(100, np.uint8), bias])


@form("NCHWDMKLE", [(1, 2, 8, 9, 2, 3, 3, 2, 3), (2, 3, 5, 5, 3, 4, 1, 1, 4), (1, 5, 3, 3, 5, 2, 3, 3, 2), (1, 1, 1, 1, 1, 3, 4, 4, 3)])
def transposed_windows_of_free_weights(b):
    b.atol = 1e-4
    x, w, bias = b.input("x", ["N", "C", "H", "W"]), b.input("w", ["D", "M", "K", "L"]), b.input("e", ["E"])
    b.node("ConvTranspose", [x, w, bias], strides=[2, 3])


def draw_condition(rng, shape):
    return rng.integers(0, 2, shape)


@form("NCK", [(5, 4, 5), (6, 3, 2), (1, 2, 1), (3, 0, 2), (6, 1, 0)], k=draw_condition)
def rows_that_are_kept(b):
    b.node("Compress", [b.input("x", ["N", "C"]), b.input("k", ["K"], "?")], axis=0)


@form("NCK", [(5, 4, 20), (6, 3, 2), (1, 1, 1), (3, 7, 16), (3, 2, 9), (6, 1, 0)], k=draw_condition)
def elements_that_are_kept(b):
    b.node("Compress", [b.input("x", ["N", "C"]), b.input("k", ["K"], "?")])


@form("BSL", [(2, 64, 16), (1, 17, 16), (3, 100, 7), (1, 16, 16), (2, 9, 1), (1, 3, 2)])
def frames_under_free_windows(b):
    b.atol = 1e-4
    x, window = b.input("x", ["B", "S"]), b.input("w", ["L"])
    b.node("STFT", [x, b.const(4, np.int64), window])


@form("BSP", [(2, 16, 1), (1, 5, 1), (3, 1, 1), (1, 8, 2), (3, 9, 2), (1, 1, 2)])
def transforms_of_free_axes(b):
    b.atol = 1e-4
    b.node("DFT", [b.input("x", ["B", "S", "P"])], axis=1)


@form("BS", [(2, 16), (1, 5), (3, 1), (2, 2), (1, 33)])
def halves_of_transforms(b):
    b.atol = 1e-4
    b.node("DFT", [b.input("x", ["B", "S", 1])], axis=1, onesided=1)
