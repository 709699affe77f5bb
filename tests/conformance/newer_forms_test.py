"""Forms of operators that opsets 18 to 26 brought, with values by numpy from the standard's text."""

import itertools
import math
import unittest

import numpy as np
from onnx import TensorProto

from one_node import RANDOM, OneNode, floats

HALF, DOUBLE = np.float16, np.float64


def windows(x, kernel, strides, pads, dilations, ceil_mode=False):
    """For each output position of each plane: the elements under the window (NaN in the padding), and how many of its taps
    lie inside of the padded input. x [N,C,spatial...]; pads begins, then ends."""
    rank = len(kernel)
    spatial = x.shape[2:]
    out = []
    for d in range(rank):
        room = spatial[d] + pads[d] + pads[d + rank] - (kernel[d] - 1) * dilations[d] - 1
        count = (math.ceil if ceil_mode else math.floor)(room / strides[d]) + 1
        if ceil_mode and (count - 1) * strides[d] >= spatial[d] + pads[d]:
            count -= 1
        out.append(count)
    values = np.full((*x.shape[:2], *out, int(np.prod(kernel))), np.nan)
    counted = np.zeros((*out, int(np.prod(kernel))), bool)
    for at in itertools.product(*map(range, out)):
        for tap, offset in enumerate(itertools.product(*map(range, kernel))):
            place = [a * s + o * e - p for a, s, o, e, p in zip(at, strides, offset, dilations, pads)]
            counted[(*at, tap)] = all(p < n + end for p, n, end in zip(place, spatial, pads[rank:]))
            if all(0 <= p < n for p, n in zip(place, spatial)):
                values[(slice(None), slice(None), *at, tap)] = x[(slice(None), slice(None), *place)]
    return values, counted


def average_pool(x, include_pad, **form):
    values, counted = windows(x, **form)
    count = counted.sum(-1) if include_pad else (~np.isnan(values)).sum(-1)
    return (np.nansum(values, -1) / count).astype(np.float32)


def reflected(at, low, high):
    if high <= low:
        return 0.0
    span = high - low
    turns, rest = divmod(abs(at - low), span)
    return low + rest if turns % 2 == 0 else high - rest


def keys(x, a):
    """The cubic convolution kernel (Keys 1981)."""
    x = abs(x)
    if x <= 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * (x**3 - 5 * x**2 + 8 * x - 4) if x < 2 else 0.0


def grid_sample(x, grid, mode, padding, align):
    rank = x.ndim - 2
    out = np.zeros((*x.shape[:2], *grid.shape[1:-1]))

    def element(entry, place):
        moved = []
        for at, size in zip(place, x.shape[2:]):
            if padding == "border":
                at = min(max(at, 0), size - 1)
            elif padding == "reflection":
                at = reflected(at, 0, size - 1) if align else min(max(reflected(at, -0.5, size - 0.5), 0), size - 1)
            if not 0 <= at <= size - 1:
                return 0.0
            moved.append(int(round(at)))
        return x[(entry, slice(None), *moved)].astype(np.float64)

    for entry, *point in itertools.product(range(x.shape[0]), *map(range, grid.shape[1:-1])):
        at = []
        for size, value in zip(x.shape[2:], grid[(entry, *point)][::-1].astype(np.float64)):
            position = (value + 1) / 2 * (size - 1) if align else ((value + 1) * size - 1) / 2
            if mode != "cubic" and padding == "border":
                position = min(max(position, 0), size - 1)
            if mode != "cubic" and padding == "reflection":
                low, high = (0, size - 1) if align else (-0.5, size - 0.5)
                position = min(max(reflected(position, low, high), 0), size - 1)
            at.append(position)
        taps = []
        for position in at:
            base = math.floor(position)
            if mode == "nearest":
                taps.append([(np.rint(position), 1.0)])
            elif mode == "linear":
                taps.append([(base, 1 - position + base), (base + 1, position - base)])
            else:
                taps.append([(base + i, keys(position - base - i, -0.75)) for i in range(-1, 3)])
        for chosen in itertools.product(*taps):
            weight = np.prod([w for _, w in chosen])
            out[(entry, slice(None), *point)] += weight * element(entry, [p for p, _ in chosen])
    assert rank == grid.shape[-1]
    return out.astype(np.float32)


def deform_conv(x, w, offsets, bias, mask, strides, pads, dilations, group, parts):
    rank, kernel = w.ndim - 2, w.shape[2:]
    out = mask.shape[2:]
    moves, masks = offsets.reshape(len(x), parts, *kernel, rank, *out), mask.reshape(len(x), parts, *kernel, *out)
    y = np.zeros((len(x), len(w), *out))
    for n, m, *at in itertools.product(range(len(x)), range(len(w)), *map(range, out)):
        y[(n, m, *at)] = bias[m]
        for c, *tap in itertools.product(*map(range, w.shape[1:])):
            channel = m // (len(w) // group) * w.shape[1] + c
            part = channel // (x.shape[1] // parts)
            place = [at[d] * strides[d] - pads[d] + tap[d] * dilations[d] + moves[(n, part, *tap, d, *at)] for d in range(rank)]
            for corner in itertools.product((0, 1), repeat=rank):
                point = [math.floor(p) + up for p, up in zip(place, corner)]
                if all(0 <= p < size for p, size in zip(point, x.shape[2:])):
                    weight = np.prod([p - math.floor(p) if up else 1 - p + math.floor(p) for p, up in zip(place, corner)])
                    y[(n, m, *at)] += w[(m, c, *tap)] * masks[(n, part, *tap, *at)] * weight * x[(n, channel, *point)]
    return y.astype(np.float32)


class Pools(OneNode):
    def test_average_pools(self):
        x = floats(1, 2, 7, 6)
        for include in (0, 1):
            for ceil in (0, 1):
                for pads in ([0, 0, 0, 0], [1, 1, 1, 1], [0, 1, 1, 0]):
                    form = {"strides": [2, 2], "dilations": [2, 1], "pads": pads}
                    right = average_pool(x, include, kernel=[3, 2], ceil_mode=ceil, **form)
                    self.check("AveragePool", 19, [x], [right], kernel_shape=[3, 2], ceil_mode=ceil,
                               count_include_pad=include, **form)
        cube = floats(1, 1, 5, 5, 4)
        form = {"strides": [2, 1, 2], "dilations": [1, 2, 1], "pads": [1, 0, 1, 0, 1, 1]}
        for include in (0, 1):
            right = average_pool(cube, include, kernel=[2, 2, 3], ceil_mode=1, **form)
            self.check("AveragePool", 22, [cube], [right], kernel_shape=[2, 2, 3], ceil_mode=1, count_include_pad=include, **form)

    def test_a_last_window_that_starts_in_the_padding(self):
        x = floats(1, 3, 2, 2)
        form = {"strides": [3, 3], "dilations": [1, 1], "pads": [1, 1, 1, 1]}
        for include in (0, 1):
            right = average_pool(x, include, kernel=[3, 3], ceil_mode=1, **form)
            self.check("AveragePool", 22, [x], [right], kernel_shape=[3, 3], strides=[3, 3], pads=[1, 1, 1, 1], ceil_mode=1,
                       count_include_pad=include)
        values, _ = windows(floats(1, 1, 2, 2), [1, 1], [2, 2], [0] * 4, [1, 1], True)
        x = floats(1, 1, 2, 2)
        self.assertEqual(values.shape[2:4], (1, 1))
        self.check("MaxPool", 12, [x], [x[:, :, :1, :1]], kernel_shape=[1, 1], strides=[2, 2], ceil_mode=1)

    def test_the_only_window_reaches_past_the_end(self):
        x = floats(2, 3, 2, 4)
        form = {"strides": [2, 3], "dilations": [1, 2], "pads": [0, 0, 0, 0]}
        values, _ = windows(x, [3, 3], ceil_mode=True, **form)
        self.assertEqual(values.shape[2:4], (1, 1))
        most = np.nanmax(values, -1).astype(np.float32)
        self.check("MaxPool", 12, [x], [most], kernel_shape=[3, 3], ceil_mode=1, **form)
        places = [np.flatnonzero(x.ravel() == each)[0] for each in most.ravel()]
        self.check("MaxPool", 12, [x], [most, np.int64(places).reshape(most.shape)], kernel_shape=[3, 3], ceil_mode=1, **form)
        for include in (0, 1):
            right = average_pool(x, include, kernel=[3, 3], ceil_mode=1, **form)
            self.check("AveragePool", 22, [x], [right], kernel_shape=[3, 3], ceil_mode=1, count_include_pad=include, **form)
        right = np.sqrt(np.nansum(values**2, -1)).astype(np.float32)
        self.check("LpPool", 18, [x], [right], kernel_shape=[3, 3], p=2, ceil_mode=1, **form)

    def test_pools_of_powers(self):
        x = floats(1, 2, 6, 5)
        for form in ({"strides": [1, 2], "dilations": [2, 2], "pads": [0, 0, 0, 0]},
                     {"strides": [2, 2], "dilations": [1, 1], "pads": [1, 0, 1, 1]}):
            for p in (1, 2, 3):
                values, _ = windows(x, [2, 2], form["strides"], form["pads"], form["dilations"])
                right = (np.nansum(np.abs(values)**p, -1)**(1 / p)).astype(np.float32)
                self.check("LpPool", 18, [x], [right], kernel_shape=[2, 2], p=p, **form)

    def test_powers_past_float16(self):
        x = (np.abs(floats(1, 2, 6, 7)) * 20).astype(HALF)
        right = (x.astype(DOUBLE) ** 3).sum((2, 3), keepdims=True) ** (1 / 3)
        self.check("GlobalLpPool", 22, [x], [right.astype(HALF)], digits=0.5, p=3)

    def test_largest_of_dilated_windows(self):
        x = floats(1, 2, 7, 6).astype(HALF)
        form = {"strides": [2, 1], "dilations": [2, 2], "pads": [1, 0, 1, 1]}
        values, _ = windows(x, [2, 3], **form)
        self.check("MaxPool", 22, [x], [np.nanmax(values, -1).astype(HALF)], kernel_shape=[2, 3], **form)
        whole = RANDOM.integers(-100, 100, (1, 1, 6, 6)).astype(np.int8)
        values, _ = windows(whole, [3, 3], [1, 1], [0] * 4, [1, 1])
        self.check("MaxPool", 22, [whole], [values.max(-1).astype(np.int8)], kernel_shape=[3, 3])


class Sampling(OneNode):
    def test_grids(self):
        for shape, grid in (((2, 2, 4, 5), (2, 3, 3, 2)), ((1, 2, 3, 4, 5), (1, 2, 3, 2, 3))):
            x, at = floats(*shape), (RANDOM.uniform(-1.4, 1.4, grid)).astype(np.float32)
            for mode in ("linear", "nearest", "cubic"):
                for padding in ("zeros", "border", "reflection"):
                    for align in (0, 1):
                        with self.subTest(rank=len(shape), mode=mode, padding=padding, align=align):
                            self.check("GridSample", 20, [x, at], [grid_sample(x, at, mode, padding, align)], digits=4,
                                       mode=mode, padding_mode=padding, align_corners=align)

    def test_grids_past_infinities(self):
        x = np.full((1, 2, 3, 3), np.inf, np.float32)
        x[0, 0] = np.arange(9).reshape(3, 3)
        x[0, 1, 1, 1] = 10
        at = np.array([[[[-2.5, -2.5], [0, 0], [3, 3], [-2.5, 0]]]], np.float32)
        self.check("GridSample", 22, [x, at], [np.array([[[[0, 4, 0, 0]], [[0, 10, 0, 0]]]], np.float32)], mode="nearest")
        x[0, 1, 1, 2] = x[0, 1, 2, 1:] = 10
        self.check("GridSample", 22, [x, at], [np.array([[[[0, 4, 0, 0]], [[0, 10, 0, 0]]]], np.float32)], mode="linear")

    def check_deform_conv(self, spatial, kernel, strides, pads, dilations, group=1, parts=1, **free):
        rank = len(kernel)
        out = [(size + pads[d] + pads[d + rank] - dilations[d] * (kernel[d] - 1) - 1) // strides[d] + 1 for d, size in enumerate(spatial)]
        taps = int(np.prod(kernel)) * parts
        operands = [floats(2, 4, *spatial), floats(4, 4 // group, *kernel), floats(2, taps * rank, *out), floats(4), floats(2, taps, *out)]
        form = {"strides": strides, "pads": pads, "dilations": dilations, "group": group}
        self.check("DeformConv", 22, operands, [deform_conv(*operands, **form, parts=parts)], digits=4, offset_group=parts, **form, **free)

    def test_moved_taps(self):
        for group, parts in ((1, 1), (2, 1), (2, 4)):
            self.check_deform_conv((9,), (3,), [2], [1, 0], [2], group, parts)
            self.check_deform_conv((5, 6), (2, 3), [2, 1], [1, 0, 0, 2], [1, 2], group, parts)
            self.check_deform_conv((3, 4, 4), (2, 2, 2), [1, 2, 1], [0, 1, 1, 1, 0, 0], [1, 1, 2], group, parts)

    def test_moved_taps_of_maps_of_any_size(self):
        """Offsets and masks have names of their own, which follow from the map's."""
        free = {0: {0: "N", 2: "H", 3: "W"}, 2: {0: "M", 2: "A", 3: "B"}, 4: {0: "K", 2: "D", 3: "E"}}
        self.check_deform_conv((5, 7), (3, 3), [1, 1], [1, 1, 1, 1], [1, 1], free=free, buckets="N=1;H=8;W=9;M=1;A=8;B=9;K=1;D=8;E=9")

    def test_offsets_past_infinities(self):
        x, offsets = np.full((1, 1, 3, 3), np.inf, np.float32), np.zeros((1, 2, 3, 3), np.float32)
        offsets[0, 0] = [[-4, 4, 9]] * 3
        self.check("DeformConv", 19, [x, np.ones((1, 1, 1, 1), np.float32), offsets], [np.zeros((1, 1, 3, 3), np.float32)])

    def test_grids_on_integers(self):
        at = np.array([[[[0, 0], [-0.5, -0.5], [3, 0]]]], np.float32)
        for dtype in (np.uint8, np.int16, np.int32, np.uint64):
            x = RANDOM.integers(1, 100, (1, 1, 2, 2)).astype(dtype)
            weights = np.array([np.full((2, 2), 0.25), [[0.5625, 0.1875], [0.1875, 0.0625]], np.zeros((2, 2))])
            right = np.trunc((weights * x[0, 0]).sum((1, 2))).astype(dtype).reshape(1, 1, 1, 3)
            self.check("GridSample", 22, [x, at], [right], mode="linear", align_corners=1)
        corners = np.array([[[[-1, -1], [1, 1], [1, -1], [3, 0]]]], np.float32)
        x = np.array([[[[2**63 - 1, 5], [7, -9]]]], np.int64)
        right = np.array([[[[2**63 - 1, -9, 5, 0]]]], np.int64)
        self.check("GridSample", 22, [x, corners], [right], mode="nearest", align_corners=1)
        self.check("GridSample", 22, [x == 5, corners], [right == 5], mode="nearest", align_corners=1)

    def test_affine_grids(self):
        for spatial in ((4, 5), (2, 3, 4), (2400, 2400)):
            rank = len(spatial)
            theta = floats(1 if max(spatial) > 100 else 2, rank, rank + 1)
            for align in (0, 1):
                axes = [np.linspace(-1, 1, n) if align else (2 * np.arange(n) + 1) / n - 1 for n in spatial]
                places = np.stack([*np.meshgrid(*axes, indexing="ij")[::-1], np.ones(spatial)], -1)
                right = np.einsum("nij,...j->n...i", theta.astype(DOUBLE), places).astype(np.float32)
                self.check("AffineGrid", 20, [theta, np.array([len(theta), 3, *spatial], np.int64)], [right], constants=(1,), align_corners=align)


class Reductions(OneNode):
    FUNCTIONS = {"ReduceSum": lambda x, a: x.sum(a), "ReduceProd": lambda x, a: x.prod(a), "ReduceL1": lambda x, a: np.abs(x).sum(a),
                 "ReduceL2": lambda x, a: np.sqrt((x * x).sum(a)), "ReduceSumSquare": lambda x, a: (x * x).sum(a),
                 "ReduceLogSum": lambda x, a: np.log(x.sum(a)), "ReduceLogSumExp": lambda x, a: np.log(np.exp(x).sum(a))}

    def test_over_no_axes(self):
        x = np.abs(floats(3, 4)) + np.float32(0.5)
        none = np.array([], np.int64)
        for op, function in self.FUNCTIONS.items():
            self.check(op, 18, [x, none], [function(x[..., None], -1)], noop_with_empty_axes=1)
            self.check(op, 18, [x, none], [function(x.ravel(), 0).reshape(1, 1).astype(np.float32)], digits=3)
            self.check(op, 18, [x], [function(x[..., None], -1)], noop_with_empty_axes=1)
        for op, right in (("ReduceMax", x), ("ReduceMean", x), ("ReduceMin", x)):
            self.check(op, 18, [x, none], [right], noop_with_empty_axes=1)

    def test_of_nothing(self):
        x = np.zeros((2, 0, 4), np.float32)
        values = {"ReduceSum": 0, "ReduceProd": 1, "ReduceL1": 0, "ReduceL2": 0, "ReduceSumSquare": 0, "ReduceLogSum": -np.inf,
                  "ReduceLogSumExp": -np.inf, "ReduceMax": -np.inf, "ReduceMin": np.inf}
        for op, value in values.items():
            self.check(op, 20, [x, np.array([1], np.int64)], [np.full((2, 1, 4), value, np.float32)])

    def test_running_products(self):
        x = floats(2, 5, 3)
        for axis in (0, 1, -1):
            at = np.array(axis, np.int64)
            self.check("CumProd", 26, [x, at], [np.cumprod(x, axis)])
            back = np.flip(np.cumprod(np.flip(x, axis), axis), axis)
            self.check("CumProd", 26, [x, at], [back], reverse=1)
            ones = np.ones_like(np.take(x, [0], axis))
            before = np.concatenate([ones, np.delete(np.cumprod(x, axis), -1, axis)], axis)
            self.check("CumProd", 26, [x, at], [before], exclusive=1)
        whole = RANDOM.integers(-9, 9, (4, 5)).astype(np.int32)
        self.check("CumProd", 26, [whole, np.array(1, np.int32)], [np.cumprod(whole, 1, dtype=np.int32)])


class Transforms(OneNode):
    def test_axes_and_lengths(self):
        x = floats(2, 5, 6, 2)
        wide = x[..., 0].astype(DOUBLE) + 1j * x[..., 1]
        for axis in (1, 2, -2, -3):
            for length in (None, 4, 7):
                for inverse in (0, 1):
                    function = np.fft.ifft if inverse else np.fft.fft
                    line = function(wide, length, axis % 4)
                    right = np.stack([line.real, line.imag], -1).astype(np.float32)
                    operands = [x, None if length is None else np.array(length, np.int64), np.array(axis, np.int64)]
                    self.check("DFT", 20, operands, [right], digits=4, inverse=inverse)

    def test_real_signals(self):
        x = floats(2, 7, 3)
        for length in (6, 7, 9):
            line = np.fft.rfft(x.astype(DOUBLE), length, 1)
            one = np.stack([line.real, line.imag], -1).astype(np.float32)
            self.check("DFT", 20, [x[..., None], np.array(length, np.int64), np.array(1, np.int64)], [one], digits=4, onesided=1)
            back = np.fft.irfft(line, length, 1)[..., None].astype(np.float32)
            self.check("DFT", 20, [one, np.array(length, np.int64), np.array(1, np.int64)], [back], digits=4, onesided=1, inverse=1)
        even = np.fft.irfft(np.fft.rfft(x[:, :6].astype(DOUBLE), axis=1), axis=1)
        self.check("DFT", 20, [one[:, :4], None, np.array(1, np.int64)],
                   [np.fft.irfft(line[:, :4], axis=1)[..., None].astype(np.float32)], digits=4, onesided=1, inverse=1)
        self.assertEqual(even.shape[1], 6)


class Moves(OneNode):
    def test_pads(self):
        x = floats(2, 3, 4)
        for mode in ("reflect", "edge", "wrap"):
            right = np.pad(x, ((0, 0), (1, 2), (2, 1)), mode=mode)
            self.check("Pad", 19, [x, np.array([1, 2, 2, 1], np.int64), None, np.array([1, -1], np.int64)], [right], mode=mode)
        cut = np.pad(x[:, 1:, :-2], ((0, 0), (0, 0), (1, 0)))
        self.check("Pad", 24, [x, np.array([-1, 1, 0, -2], np.int64), None, np.array([1, 2], np.int64)], [cut])
        right = np.pad(x[:, 1:, :-1], ((0, 0), (0, 0), (0, 2)), mode="wrap")
        self.check("Pad", 19, [x, np.array([-1, 0, 0, -1], np.int64), None, np.array([1, 2], np.int64)], [x[:, 1:, :-1]], mode="wrap")
        self.check("Pad", 25, [x[..., :-1], np.array([0, -1, 0, 0, 0, 2], np.int64)], [right], mode="wrap")
        flags = np.array([[True, False]])
        self.check("Pad", 21, [flags, np.array([0, 1, 0, 1], np.int64), np.array(True)], [np.array([[True, True, False, True]])])
        wrapped = np.pad(floats(3), (5, 4), mode="wrap")
        self.check("Pad", 19, [wrapped[5:8], np.array([5, 4], np.int64)], [wrapped], mode="wrap")

    def test_splits(self):
        x = floats(7, 2)
        self.check("Split", 18, [x], [x[:2], x[2:4], x[4:6], x[6:]], num_outputs=4)
        self.check("Split", 18, [x, np.array([0, 7, 0], np.int64)], [x[:0], x, x[:0]])

    def test_sizes_of_the_middle(self):
        x = floats(5, 4, 3)
        self.check("CenterCropPad", 18, [x, np.array([3, 6], np.int64)], [np.pad(x[1:4], ((0, 0), (1, 1), (0, 0)))], axes=[0, 1])
        self.check("CenterCropPad", 18, [x, np.array([2, 4], np.int64)], [np.pad(x[1:3], ((0, 0), (0, 0), (0, 1)))], axes=[-3, -1])

    def test_columns_to_images(self):
        x = floats(1, 8, 6)
        image = np.zeros((1, 2, 4, 3), np.float32)
        for channel, (i, j), (row, column) in itertools.product(range(2), itertools.product(range(2), repeat=2),
                                                               itertools.product(range(3), range(2))):
            image[0, channel, row + i, column + j] += x[0, channel * 4 + i * 2 + j, row * 2 + column]
        self.check("Col2Im", 18, [x, np.array([4, 3], np.int64), np.array([2, 2], np.int64)], [image], constants=(1, 2))
        # More windows of a picture than a table would hold.
        x, image = floats(1, 400, 90000), np.zeros((1, 1, 319, 319), np.float32)
        for row, column in itertools.product(range(20), range(20)):
            image[0, 0, row:row + 300, column:column + 300] += x[0, row * 20 + column].reshape(300, 300)
        self.check("Col2Im", 18, [x, np.array([319, 319], np.int64), np.array([20, 20], np.int64)], [image], digits=4, constants=(1, 2))
        for dtype in (np.int8, np.uint16):
            narrow = RANDOM.integers(0, 120, (1, 2, 3)).astype(dtype)
            sums = np.array([[[narrow[0, 0, 0], narrow[0, 0, 1] + narrow[0, 1, 0], narrow[0, 0, 2] + narrow[0, 1, 1], narrow[0, 1, 2]]]])
            self.check("Col2Im", 18, [narrow, np.array([1, 4], np.int64), np.array([1, 2], np.int64)], [sums[None]], constants=(1, 2))

    def test_elements_by_order(self):
        for x in (floats(3, 700), RANDOM.integers(0, 99, (3, 500)).astype(np.uint64), RANDOM.integers(-9, 9, (2, 40)).astype(np.int32)):
            for largest in (0, 1):
                order = np.argsort(-x.astype(DOUBLE) if largest else x, axis=1, kind="stable")[:, :17]
                self.check("TopK", 24, [x, np.array([17], np.int64)], [np.take_along_axis(x, order, 1), order], axis=1,
                           largest=largest)
        x = floats(300, 2, 3)
        order = np.argsort(-x, axis=0, kind="stable")[:5]
        self.check("TopK", 11, [x, np.array([5], np.int64)], [np.take_along_axis(x, order, 0), order], axis=0)

    def test_long_scatters(self):
        x, indices, updates = floats(600, 2), RANDOM.integers(-600, 600, (500, 2)), floats(500, 2)
        for reduction, at in (("none", None), ("add", np.add.at), ("mul", np.multiply.at), ("max", np.maximum.at)):
            right = x.astype(DOUBLE)
            if at is None:
                for i, j in itertools.product(range(500), range(2)):
                    right[indices[i, j], j] = updates[i, j]
            else:
                at(right, (indices, np.arange(2)[None, :].repeat(500, 0)), updates)
            self.check("ScatterElements", 18, [x, indices, updates], [right.astype(np.float32)], reduction=reduction)
        rows, places = floats(400, 3), RANDOM.integers(0, 400, (300, 1))
        right = rows.copy()
        np.add.at(right, places[:, 0], floats(300, 3) * 0 + 1)
        self.check("ScatterND", 18, [rows, places, np.ones((300, 3), np.float32)], [right], reduction="add")

    def test_distinct_elements(self):
        x = np.array([2.5], np.float32)
        zero, one = np.array([0], np.int64), np.array([1], np.int64)
        self.check("Unique", 11, [x], [x, zero, zero, one])

    def test_lower_triangles(self):
        x = floats(2, 3, 4)
        for k in (-3, -1, 0, 2, 5):
            self.check("Trilu", 14, [x, np.array(k, np.int64)], [np.tril(x, k)], upper=0)
            self.check("Trilu", 14, [x, np.array(k, np.int64)], [np.triu(x, k)])


class Elements(OneNode):
    def test_bits_of_another_type(self):
        for source, to, target in ((np.float32, TensorProto.INT32, np.int32), (np.int32, TensorProto.FLOAT, np.float32),
                                   (np.float64, TensorProto.INT64, np.int64), (np.int64, TensorProto.DOUBLE, np.float64),
                                   (np.uint32, TensorProto.INT32, np.int32), (np.int8, TensorProto.UINT8, np.uint8),
                                   (np.float16, TensorProto.UINT16, np.uint16), (np.uint16, TensorProto.FLOAT16, np.float16)):
            x = (floats(3, 4) * 100).astype(np.int64).astype(source) if source != np.uint16 else np.arange(
                12, dtype=np.uint16).reshape(3, 4) * 999
            self.check("BitCast", 26, [x], [x.view(target)], digits=20, to=to)
        flags = np.array([True, False])
        self.check("BitCast", 26, [flags], [flags.view(np.uint8)], to=TensorProto.UINT8)

    def test_small_integers(self):
        functions = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Max": np.maximum, "Min": np.minimum}
        for dtype in (np.int8, np.uint8, np.int16, np.uint16, np.uint32, np.uint64):
            a, b = RANDOM.integers(1, 100, (2, 3, 4)).astype(dtype)
            for op, function in functions.items():
                self.check(op, 14, [a, b], [function(a, b)])
            self.check("Div", 14, [a, b], [a // b])
            self.check("Greater", 13, [a, b], [a > b])
            self.check("Einsum", 12, [a, b], [(a @ b.T)], equation="ik,jk->ij")
            self.check("Einsum", 12, [a, b], [(a * b).sum(0, dtype=dtype)], equation="ij,ij->j")
        a, b = np.array([-7, 7, -8, 9], np.int32), np.array([2, -2, 3, 4], np.int32)
        self.check("Div", 14, [a, b], [np.trunc(a / b).astype(np.int32)])
        self.check("Mod", 13, [a, b], [np.mod(a, b)])
        self.check("Mod", 13, [a, b], [np.fmod(a, b)], fmod=1)

    def test_error_function_of_integers(self):
        for dtype in (np.int8, np.uint64, np.int32):
            x = np.array([0, 1, 2, 4, 8, 100], dtype)
            self.check("Erf", 13, [x], [np.array([int(math.erf(value)) for value in x], dtype)])

    def test_powers_of_mixed_types(self):
        x = np.array([1, 2, 3], np.int64)
        self.check("Pow", 15, [x, np.array([4, 5, 6], np.float32)], [np.array([1, 32, 729], np.int64)])
        self.check("Pow", 15, [x.astype(np.float32), np.array([4, 5, 6], np.uint32)], [np.array([1, 32, 729], np.float32)])

    def test_limits(self):
        x = floats(3, 4)
        low, high = np.array(2, np.float32), np.array(1, np.float32)
        self.check("Clip", 13, [x, low, high], [np.ones_like(x)])
        self.check("Swish", 24, [x], [x / (1 + np.exp(-x))])
        self.check("Gelu", 20, [x], [(0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))).astype(np.float32)],
                   approximate="tanh")
        endless = np.array([1, np.inf, -np.inf, np.nan], HALF)
        self.check("IsInf", 20, [endless], [np.isinf(endless)])
        self.check("IsInf", 20, [endless], [np.isposinf(endless)], detect_negative=0)
        self.check("IsNaN", 20, [endless], [np.isnan(endless)])

    def test_normalizations(self):
        x = floats(2, 3, 4, 5)
        for axis in range(-4, 4):
            axes = tuple(range(axis % 4, 4))
            scale = floats(*x.shape[axis % 4:])
            wide = x.astype(DOUBLE)
            right = wide / np.sqrt((wide**2).mean(axes, keepdims=True) + 1e-3) * scale
            self.check("RMSNormalization", 23, [x, scale], [right.astype(np.float32)], axis=axis, epsilon=1e-3)
        half = x.astype(HALF)
        ones = np.ones(5, HALF)
        wide = half.astype(np.float32)
        right = wide / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-5)
        self.check("RMSNormalization", 23, [half, ones], [right.astype(HALF)], digits=2)
        p = floats(3, 4)
        for order in (1, 2):
            norm = np.linalg.norm(p, order, axis=0, keepdims=True)
            self.check("LpNormalization", 22, [p], [p / norm], axis=0, p=order)


if __name__ == "__main__":
    unittest.main()
