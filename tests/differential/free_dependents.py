"""Models that make some of their free dims of others: they take no shape in which those have other values."""

import numpy as np
from free_exports import cat, conv
from free_forms import form


@form({"W": 20, "T": 5}, [(28, 7), (400, 100)])
def one_four_times_another(b):
    x, y = b.input("x", [2, "W"]), b.input("y", [2, "T", 4])
    b.node("Add", [b.node("Reshape", [x, b.i(2, -1, 4)]), y])


@form({"T": 9, "N": 5}, [(13, 7), (1, 1)])
def one_less_than_twice_another(b):
    x, p = b.input("x", [2, "N", 4]), b.input("p", [1, "T", 4])
    both = b.node("Concat", [b.node("Slice", [x, b.i(1), b.i(2**31), b.i(1)]), x], axis=1)
    b.node("Add", [both, p])


@form({"P": 3, "N": 2, "M": 5, "K": 5}, [(4, 1, 5, 5), (10, 7, 17, 17)])
def masks_and_positions_of_both(b):
    past, x = b.input("past", [1, 2, "P", 4]), b.input("x", [1, 2, "N", 4])
    mask, bias = b.input("mask", [1, "M"]), b.input("bias", [2, 1, "K"])
    keys = b.node("Concat", [past, x], axis=2)
    scores = b.node("MatMul", [x, b.node("Transpose", [keys], perm=[0, 1, 3, 2])])
    scores = b.node("Add", [scores, b.node("Unsqueeze", [mask, b.i(1, 2)])])
    b.node("MatMul", [b.node("Softmax", [b.node("Add", [scores, bias])], axis=-1), keys])


@form({"P": 3, "N": 2, "M": 6}, [(4, 1, 6), (10, 7, 18)])
def a_mask_with_one_more(b):
    past, x, mask = b.input("past", [1, "P", 4]), b.input("x", [1, "N", 4]), b.input("mask", [1, "M", 1])
    b.node("Mul", [b.node("Concat", [b.weights(1, 1, 4), past, x], axis=1), mask])


@form({"L": 800, "T": 2}, [(1600, 4), (400, 1), (4800, 12)])
def waves_of_as_many_hops_as_frames(b):
    """A vocoder's source and its frames, a hop of 400."""
    b.atol = 1e-3
    wave, frames = b.input("wave", [1, 1, "L"]), b.input("frames", [1, 4, "T"])
    up = b.node("ConvTranspose", [frames, b.weights(4, 1, 400)], strides=[400])
    b.node("Add", [wave, up])


@form({"L": 800, "T": 3}, [(1600, 8), (16123, 99), (560, 2)])
def masks_over_frames(b):
    """wav2vec2: frames of a window of 400 and a hop of 160, masked by an input."""
    b.atol = 1e-3
    wave, mask = b.input("wave", [1, 1, "L"]), b.input("mask", [1, "T"])
    frames = b.node("Conv", [wave, b.weights(4, 1, 400)], strides=[160])
    b.node("Mul", [frames, b.node("Unsqueeze", [mask, b.i(1)])])


@form({"H": 32, "W": 48, "S": 6}, [(33, 81, 10), (64, 17, 4), (160, 96, 60)])
def positions_of_all_patches(b):
    """A vision transformer that is given its positions: as many as the picture has patches."""
    b.atol = 1e-3
    x, positions = b.input("x", [1, 3, "H", "W"]), b.input("positions", [1, "S", 8])
    y = conv(b, x, 8, 3, k=16, s=16, p=0, act=None)
    tokens = b.node("Transpose", [b.node("Reshape", [y, b.i(1, 8, -1)])], perm=[0, 2, 1])
    b.node("Add", [tokens, positions])


@form({"B": 2, "N": 4, "D": 8, "E": 6}, [(1, 3, 6, 5), (3, 9, 18, 11)])
def several_that_follow(b):
    """Rows of all batches, and a length of which two others are made."""
    x, rows, ends = b.input("x", ["B", "N", 4]), b.input("rows", ["D", 4]), b.input("ends", [1, "E", 1])
    y = b.node("Pad", [x, b.i(0, 1, 0, 0, 1, 0)])
    y = b.node("Mul", [y, ends])
    y = b.node("Slice", [y, b.i(1), b.i(-1), b.i(1)])
    half = b.node("Slice", [y, b.i(0), b.i(1), b.i(0)])
    b.node("Add", [b.node("Reshape", [b.node("Concat", [half, half], axis=1), b.i(-1, 4)]), rows])
    b.node("Reshape", [y, cat(b, -1, 4)])


@form({"B": 2, "S": 5, "C": 2, "R": 5, "M": 2, "K": 5}, [(3, 4, 3, 4, 3, 4), (1, 9, 1, 9, 1, 9)])
def inputs_with_names_of_their_own(b):
    """Tokens, their types and their mask: an exporter names the axes of each input apart."""
    b.atol = 1e-4
    ids, types, mask = b.input("ids", ["B", "S"], "i8"), b.input("types", ["C", "R"], "i8"), b.input("mask", ["M", "K"])
    b.feed["ids"], b.feed["types"] = abs(b.feed["ids"]) % 7, abs(b.feed["types"]) % 2
    x = b.node("Add", [b.node("Gather", [b.weights(7, 8), ids]), b.node("Gather", [b.weights(2, 8), types])])
    scores = b.node("MatMul", [x, b.node("Transpose", [x], perm=[0, 2, 1])])
    scores = b.node("Add", [scores, b.node("Unsqueeze", [mask, b.i(1)])])
    b.node("MatMul", [b.node("Softmax", [scores], axis=-1), x])


@form({"N": 1, "C": 3, "H": 8, "W": 8, "M": 1, "D": 4, "P": 4, "Q": 4}, [(2, 3, 9, 14, 2, 4, 5, 7)])
def maps_of_half_the_size(b):
    """Channels are those of the weights; a second map is as large as what the strides leave of the first."""
    b.atol = 1e-4
    x, low = b.input("x", ["N", "C", "H", "W"]), b.input("low", ["M", "D", "P", "Q"])
    b.node("Add", [b.node("Conv", [x, b.weights(4, 3, 3, 3)], strides=[2, 2], pads=[1, 1, 1, 1]), low])


@form({"T": 4, "B": 2, "I": 5, "D": 1, "E": 2, "H": 6, "F": 1, "G": 2, "K": 6}, [(7, 3, 5, 1, 3, 6, 1, 3, 6)])
def states_of_a_recurrent_layer(b):
    x, h, c = b.input("x", ["T", "B", "I"]), b.input("h", ["D", "E", "H"]), b.input("c", ["F", "G", "K"])
    b.node("LSTM", [x, b.weights(1, 24, 5), b.weights(1, 24, 6), "", "", h, c], 3, hidden_size=6)


@form({"N": 1, "C": 6, "M": 1, "D": 2}, [(3, 6, 3, 2)])
def parts_and_what_they_are_joined_to(b):
    x, y = b.input("x", ["N", "C"]), b.input("y", ["M", "D"])
    first, second = b.node("Split", [x, b.i(2, 4)], 2, axis=1)
    b.node("Mul", [first, y])
    b.node("Neg", [second])


@form({"M": 3, "D": 4, "K": 3, "N": 2, "P": 2, "R": 2}, [(5, 4, 5, 3, 3, 2)], r=lambda rng, shape: rng.uniform(0, 9, shape),
      k=lambda rng, shape: np.zeros(shape), g=lambda rng, shape: rng.uniform(-1.2, 1.2, shape))
def sides_and_coordinates(b):
    """A box has four sides and a picture, a point of a map two coordinates."""
    x, boxes, pictures = b.input("x", [1, 2, 9, 9]), b.input("r", ["M", "D"]), b.input("k", ["K"], "i8")
    b.node("RoiAlign", [x, boxes, pictures], output_height=2, output_width=2, sampling_ratio=2)
    b.node("GridSample", [b.input("y", ["N", 2, 5, 6]), b.input("g", ["P", 3, 4, "R"])])


@form({"T": 4, "B": 2, "I": 3, "D": 1, "G": 8, "J": 3, "E": 1, "F": 8, "H": 2, "P": 1, "Q": 16}, [(7, 3, 5, 1, 8, 5, 1, 8, 2, 1, 16)])
def weights_of_free_extents(b):
    """Rows, gates and directions follow from attributes."""
    x, w, r, both = b.input("x", ["T", "B", "I"]), b.input("w", ["D", "G", "J"]), b.input("r", ["E", "F", "H"]), b.input("b", ["P", "Q"])
    b.node("LSTM", [x, w, r, both], 3, hidden_size=2)


@form({"N": 1, "C": 2, "W": 9, "M": 4, "D": 2, "K": 3, "L": 2}, [(3, 5, 7, 4, 5, 3, 2)])
def windows_of_free_extents(b):
    b.atol = 1e-4
    x, w = b.input("x", ["N", "C", 8, "W"]), b.input("w", ["M", "D", "K", "L"])
    b.node("Conv", [x, w], kernel_shape=[3, 2], strides=[2, 1])
