"""DFT and STFT of lengths with large factors, of long lines and of free lengths, with values by numpy."""

import unittest

import numpy as np
from onnx import TensorProto, helper

from one_node import OneNode, floats

# Powers of two, small factors, primes; short ones are products with a matrix where the length is known.
LENGTHS = [1, 2, 3, 7, 16, 400, 441, 1009, 1025, 2048, 3000, 5003, 16384]


def pairs(x):
    return np.stack([x.real, x.imag], -1).astype(np.float32)


def free(length):
    """A free length whose only variant has another extent."""
    return {"free": {0: {1: "N"}}, "buckets": f"N={length + 8}"}


class Fourier(OneNode):
    def transform(self, x, expected, **options):
        self.check("DFT", 20, [x], [expected], digits=3, **options)

    def test_real_lines(self):
        for length in LENGTHS:
            x = floats(2, length, 1)
            y = pairs(np.fft.fft(x[..., 0].astype(np.float64)))
            with self.subTest(length=length):
                self.transform(x, y)
                self.transform(x, y, **free(length))
                self.transform(x, y[:, :length // 2 + 1], onesided=1)
                self.transform(x, pairs(np.fft.ifft(x[..., 0].astype(np.float64))), inverse=1, **free(length))

    def test_complex_lines(self):
        for length in LENGTHS:
            x = floats(2, length, 2)
            z = x[..., 0].astype(np.float64) + 1j * x[..., 1]
            with self.subTest(length=length):
                self.transform(x, pairs(np.fft.fft(z)), **free(length))
                self.transform(x, pairs(np.fft.ifft(z)), inverse=1)

    def test_lines_of_conjugates(self):
        for length in LENGTHS[2:]:
            z = np.fft.rfft(floats(2, length).astype(np.float64))
            back = np.fft.irfft(z, n=2 * (z.shape[1] - 1))[..., None].astype(np.float32)
            with self.subTest(length=length):
                self.transform(pairs(z), back, inverse=1, onesided=1)
                self.transform(pairs(z), back, inverse=1, onesided=1, **free(z.shape[1]))

    def test_lines_that_are_cut_or_padded(self):
        for axis, length in ((1, 2000), (1, 1500), (2, 1200)):
            x = floats(2, 1600, 3, 1)
            y = np.fft.fft(x[..., 0].astype(np.float64), n=length, axis=axis)
            with self.subTest(axis=axis, length=length):
                operands = [x, np.array(length, np.int64), np.array(axis, np.int64)]
                self.check("DFT", 20, operands, [pairs(y)], digits=2, constants=(1, 2))

    def test_windows_of_a_free_signal(self):
        signal, window = floats(2, 900, 1), np.hanning(400).astype(np.float32)
        frames = np.stack([signal[:, start:start + 400, 0] for start in range(0, 501, 160)], 1)
        y = pairs(np.fft.rfft(frames.astype(np.float64) * window))
        operands = [signal, np.array(160, np.int64), window]
        for options in ({}, free(900)):
            self.check("STFT", 17, operands, [y], digits=3, constants=(1, 2), **options)

    def test_infinities_stay_in_their_lines(self):
        x = floats(3, 2000, 1)
        x[1, 5] = np.inf
        y = np.fft.fft(x[[0, 2], :, 0].astype(np.float64))

        def expect(answer, outputs):
            self.assertTrue(answer.startswith("ok "), answer)
            self.assertFalse(np.isfinite(outputs["0"][1]).all())
            self.assertLessEqual(np.abs(outputs["0"][[0, 2]] - pairs(y)).max(), 1e-3)

        graph = helper.make_graph([helper.make_node("DFT", ["x"], ["y"])], "lines",
                                  [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
        self.run_model(graph, 17, {"x": x}, expect)


if __name__ == "__main__":
    unittest.main()
