"""Operators as the first opsets have them: what models of 2017 hold."""

import unittest

import numpy as np
from onnx import TensorProto, helper

from one_node import OneNode, element_type, floats


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

    def test_scan_of_sequences_of_other_lengths(self):
        """Totals of each sequence, its steps' totals, and a second input from its end."""
        totals = helper.make_graph(
            [helper.make_node("Add", ["before", "x"], ["sum"]), helper.make_node("Add", ["sum", "y"], ["after"]),
             helper.make_node("Mul", ["sum", "y"], ["step"])], "body",
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("before", "x", "y")],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("after", "step")])
        feed = {"lens": np.array([5, 0, 3], np.int64), "start": floats(3, 2), "a": floats(3, 5, 2), "b": floats(3, 5, 2)}
        for directions in ([0, 0], [0, 1], [1, 0]):
            ends, steps = feed["start"].copy(), np.zeros((3, 5, 2), np.float32)
            for row, length in enumerate(feed["lens"]):
                a, b = (feed[name][row, :length] for name in "ab")
                a, b = (part[::-1] if backwards else part for part, backwards in zip((a, b), directions))
                for i in range(length):
                    sums = ends[row] + a[i]
                    ends[row], steps[row, i] = sums + b[i], sums * b[i]
            graph = helper.make_graph(
                [helper.make_node("Scan", list(feed), ["end", "steps"], num_scan_inputs=2, body=totals, directions=directions)], "scan",
                [helper.make_tensor_value_info(name, element_type(array), array.shape) for name, array in feed.items()],
                [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("end", "steps")])

            def expect(answer, outputs):
                self.assertTrue(answer.startswith("ok "), answer)
                np.testing.assert_allclose(outputs["0"], ends, rtol=1e-5)
                np.testing.assert_allclose(outputs["1"], steps, rtol=1e-5)

            self.run_model(graph, 8, feed, expect)


if __name__ == "__main__":
    unittest.main()
