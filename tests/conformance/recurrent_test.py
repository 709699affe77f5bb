"""RNN, GRU and LSTM over sequences of any length, with values by numpy: bucketed lengths, lengths that are no bucket, long
fixed ones, and all that the operators' attributes and optional operands say."""

import itertools
import unittest

import numpy as np
from onnx import helper, numpy_helper

from one_node import OneNode, floats

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
USUAL = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}
FUNCTIONS = {
    "Sigmoid": lambda x, a, b: 1 / (1 + np.exp(-x)),
    "Tanh": lambda x, a, b: np.tanh(x),
    "Relu": lambda x, a, b: np.maximum(x, 0),
    "Affine": lambda x, a, b: a * x + b,
    "LeakyRelu": lambda x, a, b: np.where(x < 0, a * x, x),
    "ThresholdedRelu": lambda x, a, b: np.where(x > a, x, 0),
    "ScaledTanh": lambda x, a, b: a * np.tanh(b * x),
    "HardSigmoid": lambda x, a, b: np.clip(a * x + b, 0, 1),
    "Elu": lambda x, a, b: np.where(x < 0, a * (np.exp(x) - 1), x),
    "Softsign": lambda x, a, b: x / (1 + np.abs(x)),
    "Softplus": lambda x, a, b: np.log(1 + np.exp(x)),
}


class Layer:
    """One layer of random weights; the standard's formulas in float64."""

    def __init__(self, kind, size=5, hidden=19, direction="forward", bias=True, peepholes=False, lengths=False, states=True,
                 layout=0, dtype=np.float32, activations=None, alphas=None, betas=None, **attributes):
        self.kind, self.size, self.hidden, self.direction, self.layout = kind, size, hidden, direction, layout
        self.count, self.dtype, self.attributes = 2 if direction == "bidirectional" else 1, dtype, attributes
        self.has_lengths, self.has_states = lengths, states
        gates = GATES[kind]
        self.w = self.floats(self.count, gates * hidden, size)
        self.r = self.floats(self.count, gates * hidden, hidden) / 4
        self.b = self.floats(self.count, 2 * gates * hidden) if bias else None
        self.p = self.floats(self.count, 3 * hidden) if peepholes else None
        self.names = activations or USUAL[kind] * self.count
        self.alphas, self.betas = alphas or [1.0] * len(self.names), betas or [1.0] * len(self.names)
        self.given = {name: value for name, value in (("activations", activations), ("activation_alpha", alphas),
                                                      ("activation_beta", betas)) if value}

    def floats(self, *shape):
        return floats(*shape).astype(self.dtype)

    def draw(self, steps, batch):
        state = (batch, self.count, self.hidden) if self.layout else (self.count, batch, self.hidden)
        x = self.floats(*((batch, steps, self.size) if self.layout else (steps, batch, self.size)))
        lengths = (np.arange(batch) * 7 % (steps + 1)).astype(np.int32) if self.has_lengths else None
        states = [self.floats(*state) if self.has_states else None for _ in range(2 if self.kind == "LSTM" else 1)]
        return [x, self.w, self.r, self.b, lengths] + states + ([self.p] if self.kind == "LSTM" else [])

    def free(self):
        """By operand, the axes that depend on steps and batch."""
        x, state = ({0: "N", 1: "T"}, {0: "N"}) if self.layout else ({0: "T", 1: "N"}, {1: "N"})
        return {0: x, 4: {0: "N"}, 5: state, 6: state}

    def run(self, inputs):
        x, lengths = inputs[0].astype(np.float64), inputs[4]
        states = [None if s is None else s.astype(np.float64) for s in inputs[5:7 if self.kind == "LSTM" else 6]]
        if self.layout:
            x, states = x.swapaxes(0, 1), [None if s is None else s.swapaxes(0, 1) for s in states]
        steps, batch = x.shape[:2]
        ys, ends = np.zeros((steps, self.count, batch, self.hidden)), [np.zeros((self.count, batch, self.hidden)) for _ in states]
        for d in range(self.count):
            backwards = d == 1 or self.direction == "reverse"
            for row in range(batch):
                state = [np.zeros(self.hidden) if s is None else s[d, row] for s in states]
                count = steps if lengths is None else min(int(lengths[row]), steps)
                order = range(count - 1, -1, -1) if backwards else range(count)
                for t in order:
                    state = self.step(d, x[t, row], *state)
                    ys[t, d, row] = state[0]
                for end, value in zip(ends, state):
                    end[d, row] = value
        if self.layout:
            ys, ends = ys.transpose(2, 0, 1, 3), [end.swapaxes(0, 1) for end in ends]
        return [array.astype(self.dtype) for array in [ys] + ends]

    def step(self, d, x, h, c=None):
        n, gates = self.hidden, GATES[self.kind]
        w, r = self.w[d].astype(np.float64).reshape(gates, n, -1), self.r[d].astype(np.float64).reshape(gates, n, n)
        b = np.zeros((2, gates, n)) if self.b is None else self.b[d].astype(np.float64).reshape(2, gates, n)
        p = np.zeros((3, n)) if self.p is None else self.p[d].astype(np.float64).reshape(3, n)
        functions = len(USUAL[self.kind])

        def f(which, value, clipped=True):
            at = d * functions + which
            if clipped and "clip" in self.attributes:
                value = np.clip(value, -self.attributes["clip"], self.attributes["clip"])
            return FUNCTIONS[self.names[at]](value, self.alphas[at], self.betas[at])

        def gate(which, past=h):
            return w[which] @ x + b[0, which] + r[which] @ past + b[1, which]

        if self.kind == "RNN":
            return [f(0, gate(0))]
        if self.kind == "GRU":
            z, reset = f(0, gate(0)), f(0, gate(1))
            if self.attributes.get("linear_before_reset"):
                candidate = f(1, w[2] @ x + b[0, 2] + reset * (r[2] @ h + b[1, 2]))
            else:
                candidate = f(1, gate(2, reset * h))
            return [(1 - z) * candidate + z * h]
        i = f(0, gate(0) + p[0] * c)
        forget = 1 - i if self.attributes.get("input_forget") else f(0, gate(2) + p[2] * c)
        cell = forget * c + i * f(1, gate(3))
        return [f(0, gate(1) + p[1] * cell) * f(2, cell, clipped=False), cell]


class Recurrent(OneNode):
    def compare(self, layer, steps, batch, free=(), buckets="", digits=5):
        """`free`: which of T and N are."""
        inputs = layer.draw(steps, batch)
        axes = {index: {axis: name for axis, name in names.items() if name in free} for index, names in layer.free().items()}
        attributes = {"hidden_size": layer.hidden, "direction": layer.direction, **layer.attributes, **layer.given}
        if layer.layout:
            attributes["layout"] = 1
        with self.subTest(kind=layer.kind, steps=steps, batch=batch, buckets=buckets, **attributes):
            self.check(layer.kind, 14, inputs, layer.run(inputs), digits=digits, free=axes, buckets=buckets, constants=(1, 2, 3, 7),
                       **attributes)

    def test_any_length_beside_its_buckets(self):
        for kind, direction in itertools.product(GATES, ("forward", "reverse", "bidirectional")):
            layer = Layer(kind, direction=direction)
            for steps in (1, 3, 17, 40):
                self.compare(layer, steps, 2, "T", "T=4")
        for steps in (8, 9):
            self.compare(Layer("LSTM"), steps, 2, "T", "T=8,32")

    def test_any_length_and_any_batch(self):
        for kind in GATES:
            layer = Layer(kind, direction="bidirectional", lengths=True, hidden=16)
            for steps, batch in ((1, 1), (3, 5), (17, 2), (2, 40)):
                self.compare(layer, steps, batch, "TN", "T=4;N=2")
            self.compare(Layer(kind, states=False, bias=False), 9, 3, "TN", "T=4;N=2")

    def test_any_batch(self):
        for kind in GATES:
            self.compare(Layer(kind, hidden=7), 6, 5, "N", "N=2")
            self.compare(Layer(kind, states=False), 6, 33, "N", "N=2")

    def test_lengths_of_each_row(self):
        for kind, direction in itertools.product(GATES, ("forward", "reverse", "bidirectional")):
            self.compare(Layer(kind, direction=direction, lengths=True), 11, 9, "T", "T=4")

    def test_batch_first(self):
        for kind in GATES:
            layer = Layer(kind, direction="bidirectional", layout=1, lengths=True)
            self.compare(layer, 4, 3)
            self.compare(layer, 6, 3, "TN", "T=4;N=2")

    def test_forms_of_each_kind(self):
        for attributes in ({"clip": 0.4}, {"linear_before_reset": 1}, {"linear_before_reset": 1, "bias": False},
                           {"linear_before_reset": 1, "clip": 0.4, "lengths": True, "direction": "reverse"}):
            self.compare(Layer("GRU", **attributes), 5, 3, "T", "T=4")
        for attributes in ({"clip": 0.4, "peepholes": True}, {"input_forget": 1}, {"peepholes": True, "lengths": True},
                           {"input_forget": 1, "peepholes": True, "direction": "bidirectional"}):
            self.compare(Layer("LSTM", **attributes), 5, 3, "T", "T=4")
        self.compare(Layer("RNN", clip=0.4), 5, 3, "T", "T=4")

    def test_every_activation(self):
        for name in FUNCTIONS:
            for kind, count in (("RNN", 1), ("LSTM", 3)):
                layer = Layer(kind, activations=[name] * count, alphas=[0.3] * count, betas=[0.6] * count, hidden=5, size=2, clip=2.0)
                self.compare(layer, 4, 2)
                self.compare(layer, 3, 2, "T", "T=4")

    def test_two_directions_of_other_activations(self):
        layer = Layer("GRU", direction="bidirectional", activations=["HardSigmoid", "Softsign", "Sigmoid", "Relu"],
                      alphas=[0.3] * 4, betas=[0.4] * 4)
        self.compare(layer, 7, 3, "T", "T=4")

    def test_long_sequences_of_known_length(self):
        for kind, direction in itertools.product(GATES, ("reverse", "bidirectional")):
            self.compare(Layer(kind, direction=direction, hidden=8), 300, 2)
        self.compare(Layer("LSTM", hidden=8), 5000, 1, digits=4)

    def test_many_rows_and_wide_states(self):
        self.compare(Layer("LSTM", hidden=64, lengths=True), 3, 70, "TN", "T=4;N=2")
        self.compare(Layer("GRU", hidden=33, size=40), 3, 5, "TN", "T=4;N=2")

    def test_other_types(self):
        for kind, (dtype, digits) in itertools.product(GATES, ((np.float64, 12), (np.float16, 1.5))):
            layer = Layer(kind, dtype=dtype, direction="bidirectional", lengths=True, peepholes=kind == "LSTM")
            self.compare(layer, 4, 3, digits=digits)
            self.compare(layer, 6, 3, "T", "T=4", digits=digits)

    def test_rows_that_a_run_finds(self):
        """Batches as large as the number of elements that are not zero."""
        for kind, (dim, buckets) in itertools.product(GATES, ((5, ""), ("T", "T=4"))):
            layer = Layer(kind, states=False, bias=False, direction="bidirectional")
            x, (w, r), found = layer.floats(5, 6, layer.size), (layer.w, layer.r), np.array([0, 1, 0, 1, 1, 0], np.float32)
            nodes = [helper.make_node("NonZero", ["found"], ["at"]), helper.make_node("Reshape", ["at", "flat"], ["rows"]),
                     helper.make_node("Gather", ["x", "rows"], ["picked"], axis=1),
                     helper.make_node(kind, ["picked", "w", "r"], ["y", "h"], hidden_size=layer.hidden, direction=layer.direction)]
            info = helper.make_tensor_value_info
            graph = helper.make_graph(nodes, "found", [info("found", 1, [6]), info("x", 1, [dim, 6, layer.size])],
                                      [info("y", 1, None), info("h", 1, None)],
                                      [numpy_helper.from_array(array, name)
                                       for array, name in ((w, "w"), (r, "r"), (np.array([-1]), "flat"))])
            inputs = layer.draw(5, 3)
            inputs[0] = x[:, [1, 3, 4]]

            def expect(answer, outputs, wanted=layer.run(inputs)):
                self.assertTrue(answer.startswith("ok "), answer)
                for i in range(2):
                    np.testing.assert_allclose(outputs[str(i)], wanted[i], atol=1e-5)

            with self.subTest(kind=kind, buckets=buckets):
                self.run_model(graph, 14, {"found": found, "x": x}, expect, buckets=buckets)

    def test_operands_of_another_size_are_named(self):
        right = {"X": [4, 2, 3], "W": [1, 20, 3], "R": [1, 20, 5], "B": [1, 40], "l": [2], "h": [1, 2, 5], "c": [1, 2, 5], "P": [1, 15]}
        for name, shape, by in (("W", [1, 20, 4], "[1,20,3] by the columns of X"), ("R", [1, 20, 6], "[1,20,5] by hidden_size"),
                                ("B", [1, 41], "[1,40] by two for each gate"), ("h", [1, 1, 5], "[1,2,5] by the batch"),
                                ("c", [2, 2, 5], "[1,2,5] by directions"), ("P", [1, 16], "[1,15] by three gates")):
            feed = {each: np.zeros(shape if each == name else extents, np.int32 if each == "l" else np.float32)
                    for each, extents in right.items()}
            graph = helper.make_graph([helper.make_node("LSTM", list(right), ["y"], hidden_size=5)], "one",
                                      [helper.make_tensor_value_info(each, 6 if each == "l" else 1, array.shape)
                                       for each, array in feed.items()], [helper.make_tensor_value_info("y", 1, None)])
            with self.subTest(name):
                self.run_model(graph, 14, feed, lambda answer, _, by=by: self.assertIn(by, answer))

    def test_no_steps_at_all(self):
        for kind in GATES:
            self.compare(Layer(kind), 0, 2)


if __name__ == "__main__":
    unittest.main()
