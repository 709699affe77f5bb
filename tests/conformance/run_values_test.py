"""Operands that say how large a result is, or which of its axes is meant, as values of a run: none of them is known when
the model is compiled. Values by numpy."""

import unittest

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import fourier_test
from one_node import OneNode, element_type, floats


class OfRun(OneNode):
    """No input is bound before the run."""

    def answer(self, model, feed, buckets=""):
        answer = super().answer(model, feed, buckets)
        if answer.startswith("ok "):
            self.assertTrue(answer.startswith("ok 0 "), answer)
        return answer

    def refused(self, *node, **attributes):
        """The run fails with an error, which is what is returned."""
        answer = self.answer_to(*node, **attributes)
        self.assertTrue(answer.startswith("error "), answer)
        return answer


def integer(value, dtype=np.int64):
    return np.array(value, dtype)


class Depths(OfRun):
    def hot(self, indices, depth, axis=-1):
        given = np.where(indices < 0, indices + depth, indices).astype(np.int64)
        rows = (given[..., None] == np.arange(depth)).astype(np.float32) * 5 - 2
        return np.moveaxis(rows, -1, axis)

    def test_one_hot(self):
        indices = np.array([[0, 3, -1, 9], [-3, 4, -9, 2]])
        values = np.array([-2, 3], np.float32)
        for dtype in (np.int64, np.int32, np.float32, np.uint8, np.float64):
            for axis in (-1, 0, 1, -2):
                for depth in (5, 1, 0, 700):
                    if dtype == np.uint8 and depth > 255:
                        continue
                    depths = integer([depth], dtype) if axis == 0 else integer(depth, dtype)
                    with self.subTest(dtype=dtype, axis=axis, depth=depth):
                        self.check("OneHot", 11, [indices, depths, values], [self.hot(indices, depth, axis)], axis=axis)

    def test_one_hot_of_floats(self):
        indices = np.array([0, 3, -1, 9], np.float32)
        values = np.array([-2, 3], np.float32)
        self.check("OneHot", 11, [indices, integer(6, np.float32), values], [self.hot(indices, 6)])
        self.check("OneHot", 11, [indices, integer(6), values], [self.hot(indices, 6)], free={0: {0: "N"}}, buckets="N=3")

    def test_a_depth_below_0(self):
        said = self.refused("OneHot", 11, [np.array([1]), integer(-2), np.array([0, 1], np.float32)])
        self.assertRegex(said, 'node "OneHot_0".* depth is -2, expected (at least 0|0 to)')


class Windows(OfRun):
    def test_sizes(self):
        shapes = {"HannWindow": (0.5, 0.5, 0), "HammingWindow": (25 / 46, 21 / 46, 0), "BlackmanWindow": (0.42, 0.5, 0.08)}
        for op, (a0, a1, a2) in shapes.items():
            for periodic in (0, 1):
                for size, dtype in ((0, np.int64), (1, np.int32), (10, np.int32), (64, np.int64), (700, np.int64)):
                    with self.subTest(op=op, size=size, periodic=periodic), np.errstate(invalid="ignore"):
                        angle = 2 * np.pi * np.arange(size) / (size - 1 + periodic)
                        expected = a0 - a1 * np.cos(angle) + a2 * np.cos(2 * angle)
                        if op == "HannWindow" or size == 10:
                            self.check(op, 17, [integer(size, dtype)], [expected.astype(np.float32)], periodic=periodic)
        self.check("HannWindow", 17, [integer(6)], [(0.5 - 0.5 * np.cos(2 * np.pi * np.arange(6) / 6))],
                   output_datatype=TensorProto.DOUBLE)
        for size in (-1, 2**40):
            self.assertIn(f"size is {size}, expected 0 to", self.refused("HannWindow", 17, [integer(size)]))

    def mel(self, bins, length, rate, low, high):
        rows = length // 2 + 1
        mels = [2595 * np.log10(1 + hertz / 700) for hertz in (low, high)]
        points = np.arange(bins + 2) * (mels[1] - mels[0]) / (bins + 2) + mels[0]
        edges = np.floor((length + 1) * 700 * (10 ** (points / 2595) - 1) / rate).astype(np.int64)
        result = np.zeros((rows, bins), np.float32)
        for i in range(bins):
            left, middle, right = edges[i:i + 3]
            if left == middle:
                result[middle, i] = 1
            for j in range(left, middle + 1) if left != middle else ():
                result[j, i] = (j - left) / (middle - left)
            for j in range(middle, right):
                result[j, i] = (right - j) / (right - middle)
        return result

    def test_mel_weights(self):
        for bins, length, rate, low, high in ((8, 16, 8192, 0, 4096), (40, 400, 16000, 20, 7600), (80, 2048, 44100, 50, 16000),
                                              (6, 33, 8000, 100, 3000)):
            operands = [integer(bins), integer(length, np.int32), integer(rate), np.array(low, np.float32), np.array(high, np.float32)]
            right = self.mel(bins, length, rate, low, high)
            with self.subTest(bins=bins, length=length):
                self.check("MelWeightMatrix", 17, operands, [right])
                self.check("MelWeightMatrix", 17, operands, [right], constants=(0, 2, 4))
                self.check("MelWeightMatrix", 17, operands, [right], constants=(0, 1, 2, 4))
        operands = [integer(8), integer(16), integer(0), np.array(0, np.float32), np.array(1, np.float32)]
        self.refused("MelWeightMatrix", 17, operands)
        operands[1:3] = [integer(-64), integer(8000)]
        with self.assertRaisesRegex(AssertionError, "dft_length is -64"):
            self.check("MelWeightMatrix", 17, operands, [operands[4]], constants=(1,))


class Dropouts(OfRun):
    def test_modes(self):
        for dtype in (np.float32, np.float16, np.float64):
            x = floats(50, 40).astype(dtype)
            x[0, 0] = np.inf
            for ratio in (0.0, 0.3, 0.75):
                for training in (False, True):
                    self.drop(x, ratio, training)
                    self.drop(x, ratio, training, 1)
                    self.drop(x, ratio, training, 2)

    def drop(self, x, ratio, training, known=None):
        element = element_type(x)
        feed = {"x": x, "r": np.array(ratio, x.dtype), "t": np.array(training)}
        types = {"x": element, "r": element, "t": TensorProto.BOOL}
        fixed = [numpy_helper.from_array(feed.pop("xrt"[known]), "xrt"[known])] if known else []
        graph = helper.make_graph(
            [helper.make_node("Dropout", ["x", "r", "t"], ["y", "m"], seed=5)], "dropped",
            [helper.make_tensor_value_info(name, types[name], array.shape) for name, array in feed.items()],
            [helper.make_tensor_value_info("y", element, x.shape), helper.make_tensor_value_info("m", TensorProto.BOOL, x.shape)], fixed)

        def expect(answer, outputs):
            self.assertTrue(answer.startswith("ok "), answer)
            y, mask = outputs["0"], outputs["1"]
            self.assertEqual(y.dtype, x.dtype)
            if not training or ratio == 0:
                self.assertTrue(mask.all())
                np.testing.assert_array_equal(y, x)
                return
            self.assertAlmostEqual(1 - mask.mean(), ratio, delta=0.05)
            np.testing.assert_array_equal(y[~mask], 0)
            kept = np.float64(x[mask]) / (1 - np.float64(np.array(ratio, x.dtype)))
            np.testing.assert_allclose(np.float64(y[mask]), kept, rtol=2e-3 if x.dtype == np.float16 else 1e-6)

        self.run_model(graph, 13, feed, expect)

    def test_ratios_out_of_range(self):
        x = floats(3, 4)
        for ratio in (1.0, -0.1, np.nan):
            with self.subTest(ratio=ratio):
                said = self.refused("Dropout", 13, [x, np.array(ratio, np.float32), np.array(True)])
                self.assertIn(f"ratio is {ratio:g}, expected [0,1)", said)
                self.check("Dropout", 13, [x, np.array(ratio, np.float32), np.array(False)], [x])


class Transforms(OfRun):
    def test_lengths(self):
        x, z = floats(2, 30, 3, 1), floats(2, 30, 3, 2)
        for length in (1, 7, 30, 64, 65, 100, 701):
            for axis in (1, 2):
                n = integer(length, np.int32 if axis == 1 else np.int64)
                y = np.fft.fft(x[..., 0].astype(np.float64), n=length, axis=axis)
                half = np.take(y, range(length // 2 + 1), axis)
                of_complex = z[..., 0].astype(np.float64) + 1j * z[..., 1]
                back = np.fft.ifft(of_complex, n=length, axis=axis)
                with self.subTest(length=length, axis=axis):
                    self.check("DFT", 20, [x, n, integer(axis)], [fourier_test.pairs(y)], digits=3, constants=(2,))
                    self.check("DFT", 17, [x, n], [fourier_test.pairs(half)], digits=3, axis=axis, onesided=1)
                    self.check("DFT", 17, [z, n], [fourier_test.pairs(back)], digits=3, axis=axis, inverse=1)

    def test_real_lines_of_a_length(self):
        for length in (2, 9, 64, 65, 129, 600):
            z = np.fft.rfft(floats(2, length).astype(np.float64))
            back = np.fft.irfft(z, n=length)[..., None].astype(np.float32)
            self.check("DFT", 20, [fourier_test.pairs(z), integer(length)], [back], digits=3, inverse=1, onesided=1)

    def test_axes(self):
        x = floats(4, 6, 3, 2)
        z = x[..., 0].astype(np.float64) + 1j * x[..., 1]
        for axis in (0, 1, 2, -2, -3, -4):
            plain = axis if axis >= 0 else axis + 4
            with self.subTest(axis=axis):
                self.check("DFT", 20, [x, None, integer(axis)], [fourier_test.pairs(np.fft.fft(z, axis=plain))], digits=3)
                for length in (5, 70):
                    y = fourier_test.pairs(np.fft.fft(z, n=length, axis=plain))
                    self.check("DFT", 20, [x, integer(length), integer(axis)], [y], digits=3)
                y = np.take(np.fft.fft(x[..., 0].astype(np.float64), axis=plain), range(x.shape[plain] // 2 + 1), plain)
                self.check("DFT", 20, [x[..., :1], None, integer(axis)], [fourier_test.pairs(y)], digits=3, onesided=1)
        for axis in (3, -1, 4, -5):
            self.refused("DFT", 20, [x, None, integer(axis)])
        y = np.fft.rfft(floats(1, 8, 5).astype(np.float64), axis=1)
        for axis in (1, 2, -2):
            back = np.fft.irfft(y, n=2 * (y.shape[axis % 4] - 1), axis=axis % 4)
            self.check("DFT", 20, [fourier_test.pairs(y), None, integer(axis)], [back[..., None].astype(np.float32)], digits=3, inverse=1, onesided=1)
        said = self.refused("DFT", 20, [fourier_test.pairs(y), None, integer(0)], inverse=1, onesided=1)
        self.assertIn("axis 0 from the front has one element", said)
        self.refused("DFT", 20, [x, integer(0)])
        self.refused("DFT", 17, [x, integer(-3)])

    def frames(self, signal, step, window, onesided):
        length = len(window)
        parts = np.stack([signal[:, at:at + length, 0] for at in range(0, signal.shape[1] - length + 1, step)], 1)
        y = (np.fft.rfft if onesided else np.fft.fft)(parts.astype(np.float64) * window)
        return fourier_test.pairs(y)

    def test_frames(self):
        signal = floats(2, 300, 1)
        for step, length, onesided in ((1, 16, 1), (7, 100, 0), (160, 300, 1), (3, 65, 1), (50, 1, 0)):
            ones, window = np.ones(length), np.hanning(length).astype(np.float32)
            with self.subTest(step=step, length=length):
                plain, weighed = (self.frames(signal, step, each, onesided) for each in (ones, window))
                form = {"digits": 3, "onesided": onesided}
                self.check("STFT", 17, [signal, integer(step), None, integer(length)], [plain], **form)
                self.check("STFT", 17, [signal, integer(step), None, integer(length, np.int32)], [plain], constants=(1,), **form)
                self.check("STFT", 17, [signal, integer(step), None, integer(length)], [plain], constants=(3,), **form)
                self.check("STFT", 17, [signal, integer(step), window], [weighed], **form)
                self.check("STFT", 17, [signal, integer(step), window, integer(length)], [weighed], **form)
                self.check("STFT", 17, [signal, integer(step), window, integer(length)], [weighed], constants=(1, 2), **form)
        signal = floats(2, 90, 1)
        for step in (91, 2**60, 2**63 - 1):
            self.check("STFT", 17, [signal, integer(step), None, integer(20)], [self.frames(signal[:, :20], 1, np.ones(20), 1)], digits=3)
        self.check("STFT", 17, [signal, integer(8), None, integer(20)], [self.frames(signal, 8, np.ones(20), 1)], digits=3,
                   free={0: {1: "N"}}, buckets="N=100")

    def test_frames_that_do_not_fit(self):
        signal, window = floats(2, 30, 1), np.ones(8, np.float32)
        for step, length in ((0, 8), (-1, 8), (2, 0), (2, 31), (2, -4)):
            with self.subTest(step=step, length=length):
                self.refused("STFT", 17, [signal, integer(step), None, integer(length)])
        self.refused("STFT", 17, [signal, integer(2), window, integer(9)])


class Ranges(OfRun):
    def test_steps_of_either_sign(self):
        for start, limit, delta in ((10, 6, -3), (2, 9, 2), (5, 5, 1), (4, 1, 1), (-3, 4, 7), (1, -6, -7), (0, 70, 1)):
            for dtype in (np.int32, np.int64, np.int16, np.float32, np.float64):
                operands = [np.array(each, dtype) for each in (start, limit, delta)]
                for constants in ((), (0,), (1,), (2,), (0, 2), (0, 1)):
                    with self.subTest(operands=operands, constants=constants):
                        self.check("Range", 11, operands, [np.arange(start, limit, delta, dtype)], constants=constants)

    def test_steps_of_nothing(self):
        for dtype in (np.int64, np.float32):
            self.refused("Range", 11, [np.array(each, dtype) for each in (1, 5, 0)])


class Grids(OfRun):
    def test_affine_grids(self):
        for spatial in ((4, 5), (1, 70), (2, 3, 4), (5, 1, 2), (0, 3)):
            for dtype, digits in ((np.float32, 5), (np.float64, 9), (np.float16, 1)):
                for align in (0, 1):
                    theta = floats(2, len(spatial), len(spatial) + 1).astype(dtype)
                    axes = [(np.linspace(-1, 1, n) if n > 1 else np.full(n, -1)) if align else (2 * np.arange(n) + 1) / max(n, 1) - 1
                            for n in spatial]
                    places = np.stack([*np.meshgrid(*axes, indexing="ij")[::-1], np.ones(spatial)], -1)
                    right = np.einsum("nij,...j->n...i", theta.astype(np.float64), places).astype(dtype)
                    with self.subTest(spatial=spatial, dtype=dtype, align=align):
                        self.check("AffineGrid", 20, [theta, integer([2, 3, *spatial])], [right], digits=digits, align_corners=align)
        theta = floats(2, 2, 3)
        for size in ([3, 1, 4, 5], [2, 1, -1, 5], [2, 1, 4]):
            self.refused("AffineGrid", 20, [theta, integer(size)])

    def image(self, x, image, block, strides, dilations, pads):
        rank, taps = len(image), int(np.prod(block))
        windows = [(image[d] + pads[d] + pads[d + rank] - (block[d] - 1) * dilations[d] - 1) // strides[d] + 1 for d in range(rank)]
        result = np.zeros((len(x), x.shape[1] // taps, *image), x.dtype)
        for tap in np.ndindex(*block):
            for window in np.ndindex(*windows):
                at = tuple(window[d] * strides[d] + tap[d] * dilations[d] - pads[d] for d in range(rank))
                if all(0 <= at[d] < image[d] for d in range(rank)):
                    result[(slice(None), slice(None), *at)] += x[:, np.ravel_multi_index(tap, block)::taps, np.ravel_multi_index(window, windows)]
        return result, windows

    def test_columns_to_images(self):
        for image, block, strides, dilations, pads, channels in (
                ((5, 5), (1, 5), (1, 1), (1, 1), (0, 0, 0, 0), 1), ((4, 3), (2, 2), (1, 1), (1, 1), (0, 0, 0, 0), 2),
                ((5, 6), (2, 3), (2, 1), (1, 2), (0, 1, 2, 1), 3), ((6, 6), (2, 2), (1, 1), (1, 5), (0, 0, 0, 0), 1),
                ((3, 4, 5), (1, 2, 2), (1, 2, 1), (1, 1, 1), (0, 1, 0, 1, 0, 0), 2), ((9,), (3,), (2,), (1,), (1, 1), 30), ((100,), (4,), (2,), (1,), (0, 0), 1)):
            form = {"strides": list(strides), "dilations": list(dilations), "pads": list(pads)}
            _, windows = self.image(np.zeros((1, int(np.prod(block)), 10**4)), image, block, strides, dilations, pads)
            for dtype in (np.float32, np.int8, np.float16, np.int64):
                x = np.round(floats(2, channels * int(np.prod(block)), int(np.prod(windows))) * 4).astype(dtype)
                right, _ = self.image(x, image, block, strides, dilations, pads)
                with self.subTest(image=image, block=block, dtype=dtype):
                    for constants in ((), (1,), (2,)) if dtype == np.float32 else ((),):
                        self.check("Col2Im", 18, [x, integer(image), integer(block)], [right], constants=constants, **form)

    def test_columns_that_do_not_fit(self):
        x = floats(1, 8, 6)
        for image, block in (([4, 3], [2, 3]), ([5, 3], [2, 2]), ([4, 3], [0, 2]), ([4, -3], [2, 2]), ([1, 1], [2, 2]), ([4, 3], [3, 2])):
            self.refused("Col2Im", 18, [x, integer(image), integer(block)])


class Places(OfRun):
    def test_elements_at_as_many_places_as_a_run_says(self):
        """There is room for more of them than the operand has elements along an axis that is not gathered along."""
        x, at = floats(3, 2, 4), np.array([[[2, -1, 0]], [[1, 1, 3]]])
        graph = helper.make_graph(
            [helper.make_node("Expand", ["at", "s"], ["i"]), helper.make_node("GatherElements", ["x", "i"], ["y"], axis=2)], "places",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape), helper.make_tensor_value_info("s", TensorProto.INT64, [3])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], [numpy_helper.from_array(at.reshape(1, 2, 3), "at")])
        for number in (1, 2, 3, 4):
            def expect(answer, outputs, number=number):
                self.assertTrue(answer.startswith("error " if number > 3 else "ok "), answer)
                if number <= 3:
                    right = np.take_along_axis(x[:number], np.repeat(at.reshape(1, 2, 3), number, 0), 2)
                    np.testing.assert_array_equal(outputs["0"], right)

            self.run_model(graph, 13, {"x": x, "s": np.array([number, 1, 1])}, expect)


if __name__ == "__main__":
    unittest.main()
