"""Operators as the first opsets have them: what models of 2017 hold."""

import unittest

import numpy as np

from one_node import OneNode, floats


class OlderOpsets(OneNode):
    def test_types_by_name(self):
        x = floats(3, 4) * 5
        self.check("Cast", 1, [x], [np.trunc(x).astype(np.int32)], to="INT32")
        self.check("Cast", 5, [x], [x.astype(np.float64)], to="DOUBLE")

    def test_copies_along_an_axis(self):
        x = floats(2, 3)
        self.check("Tile", 1, [x, np.array([3], np.float32), np.array([1], np.float32)], [np.tile(x, (1, 3))])

    def test_growth_by_two_numbers(self):
        x = floats(1, 2, 3, 4)
        self.check("Upsample", 1, [x], [x.repeat(2, 2).repeat(3, 3)], height_scale=2.0, width_scale=3.0)

    def test_recurrent_layers(self):
        x, w, r, b = floats(4, 2, 3), floats(1, 5, 3), floats(1, 5, 5), floats(1, 10)
        h, rows = np.zeros((2, 5), np.float32), []
        for step in x:
            h = np.tanh(step @ w[0].T + h @ r[0].T + b[0, :5] + b[0, 5:])
            rows.append(h)
        self.check("RNN", 1, [x, w, r, b], [np.stack(rows)[:, None], h[None]], hidden_size=5, output_sequence=1)


if __name__ == "__main__":
    unittest.main()
