"""Models that cannot be planned before a run's values are known are interpreted: operators over axes whose extents, or whose
number, a run says. What they give is what the same operators' kernels give for the same tensors of fixed shapes."""

import unittest
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import cases
from one_node import RANDOM, OneNode, element_type, floats

ML = [("ai.onnx.ml", 3)]


def ints(*values):
    return np.array(values, np.int64)


def below(limit, *shape):
    return RANDOM.integers(0, limit, shape).astype(np.int64)


def boxes(count):
    corners = np.sort(RANDOM.uniform(0, 7, (count, 2, 2)).astype(np.float32), axis=1)
    return corners.reshape(count, 4)


# Operator, its attributes, and its operands, the first of which a run brings into its shape.
FORMS = [
    ("ConvTranspose", dict(strides=[2, 2], pads=[1, 0, 1, 0]), floats(1, 3, 4, 5), floats(3, 2, 3, 3)),
    ("Conv", dict(auto_pad="SAME_UPPER", strides=[2, 2]), floats(1, 3, 7, 5), floats(4, 3, 3, 3)),
    ("LpPool", dict(kernel_shape=[2, 2], p=2), floats(1, 2, 4, 6)),
    ("MaxPool", dict(kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1), floats(1, 2, 6, 8)),
    ("AveragePool", dict(kernel_shape=[3], strides=[2], ceil_mode=1), floats(2, 3, 8)),
    ("LRN", dict(size=3), floats(2, 5, 3, 2)),
    ("Einsum", dict(equation="bij,bjk->bik"), floats(2, 3, 4), floats(2, 4, 5)),
    ("DynamicQuantizeLinear", {}, floats(3, 5)),
    ("GatherElements", dict(axis=1), floats(3, 4), below(4, 3, 2)),
    ("ScatterElements", dict(axis=1), floats(3, 4), ints(*[[0, 2], [3, 1], [1, 0]]), floats(3, 2)),
    ("ScatterND", {}, floats(4, 3), ints([0], [2]), floats(2, 3)),
    ("DepthToSpace", dict(blocksize=2, mode="CRD"), floats(1, 8, 2, 3)),
    ("SpaceToDepth", dict(blocksize=2), floats(1, 2, 4, 6)),
    ("LSTM", dict(hidden_size=3), floats(4, 2, 5), floats(1, 12, 5), floats(1, 12, 3)),
    ("GRU", dict(hidden_size=3, direction="reverse"), floats(4, 2, 5), floats(1, 9, 5), floats(1, 9, 3)),
    ("ReverseSequence", dict(batch_axis=1, time_axis=0), floats(4, 3), ints(1, 4, 2)),
    ("Det", {}, floats(3, 2, 2)),
    ("GridSample", {}, floats(1, 2, 4, 5), RANDOM.uniform(-1, 1, (1, 3, 3, 2)).astype(np.float32)),
    ("RoiAlign", dict(output_height=2, output_width=2), floats(1, 2, 8, 8), boxes(3), ints(0, 0, 0)),
    ("NonMaxSuppression", {}, boxes(6)[None], RANDOM.random((1, 2, 6), np.float32), ints(2), np.full(1, 0.5, np.float32)),
    ("GroupNormalization", dict(num_groups=2), floats(2, 4, 3), floats(2), floats(2)),
]


class RunModels(OneNode):
    def outputs_of(self, graph, feed, buckets, opset=18, domains=()):
        found = {}

        def expect(answer, outputs):
            self.assertRegex(answer, "^ok 0 ", graph.node)
            found.update(outputs)

        self.run_model(graph, opset, feed, expect, domains, buckets)
        return found

    def one(self, op, attributes, operands, reshaped, domains=()):
        """A graph of the operator and what it is given; `reshaped`: the first operand comes flat, with its shape."""
        names = [f"x{i}" for i in range(len(operands))]
        feed = dict(zip(names, operands))
        nodes, first, dims = [], names[0], {name: array.shape for name, array in feed.items()}
        if reshaped:
            feed.update(x0=operands[0].reshape(-1, operands[0].shape[-1]), shape=ints(*operands[0].shape))
            dims.update(x0=["rows", "columns"], shape=[operands[0].ndim])
            nodes, first = [helper.make_node("Reshape", ["x0", "shape"], ["r"])], "r"
        count = {"DynamicQuantizeLinear": 3, "LSTM": 3, "GRU": 2}.get(op, 1)
        results = [f"y{i}" for i in range(count)]
        nodes.append(helper.make_node(op, [first, *names[1:]], results, domain=domains[0][0] if domains else None, **attributes))
        types = {"DynamicQuantizeLinear": [TensorProto.UINT8, TensorProto.FLOAT, TensorProto.UINT8],
                 "NonMaxSuppression": [TensorProto.INT64]}.get(op, [TensorProto.FLOAT] * count)
        graph = helper.make_graph(
            nodes, "one", [helper.make_tensor_value_info(name, element_type(array), dims[name]) for name, array in feed.items()],
            [helper.make_tensor_value_info(name, kind, None) for name, kind in zip(results, types)])
        return graph, feed

    def check_form(self, op, attributes, *operands, opset=18, domains=()):
        with self.subTest(op=op):
            graph, feed = self.one(op, attributes, operands, False, domains)
            wanted = self.outputs_of(graph, feed, "", opset, domains)
            graph, feed = self.one(op, attributes, operands, True, domains)
            actual = self.outputs_of(graph, feed, "?", opset, domains)
            self.assertEqual(sorted(actual), sorted(wanted))
            for name, array in wanted.items():
                self.assertEqual(cases.difference(actual[name], array), "", name)

    def test_operators_over_axes_of_a_run(self):
        for op, attributes, *operands in FORMS:
            self.check_form(op, attributes, *operands)

    def test_attention(self):
        self.check_form("Attention", {}, floats(1, 2, 3, 4), floats(1, 2, 5, 4), floats(1, 2, 5, 6), opset=23)

    def test_classical_models(self):
        self.check_form("LinearRegressor", dict(coefficients=[1.0, 2.0, 3.0], intercepts=[0.5], targets=1), floats(4, 3), domains=ML)
        self.check_form("ArrayFeatureExtractor", {}, floats(3, 4), ints(2, 0), domains=ML)

    def test_ranks_of_a_run(self):
        x = floats(4, 6)
        for shape in ([24], [2, 3, 4], [1, 1, 2, 2, 6], [-1, 8], [0, 3, -1]):
            with self.subTest(shape=shape):
                graph = helper.make_graph(
                    [helper.make_node("Reshape", ["x", "shape"], ["r"]), helper.make_node("Neg", ["r"], ["y"])], "rank",
                    [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 6]),
                     helper.make_tensor_value_info("shape", TensorProto.INT64, ["rank"])],
                    [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
                actual = self.outputs_of(graph, {"x": x, "shape": ints(*shape)}, "?")
                lengths = [4 if extent == 0 else extent for extent in shape]
                np.testing.assert_array_equal(actual["0"], -x.reshape(lengths))

    def test_elements_that_are_found_go_through_a_layer(self):
        x = floats(5, 3)
        weights = [floats(1, 12, 3), floats(1, 12, 3)]
        graph = helper.make_graph(
            [helper.make_node("Compress", ["x", "kept"], ["some"], axis=0), helper.make_node("Unsqueeze", ["some", "one"], ["steps"]),
             helper.make_node("LSTM", ["steps", "w", "r"], ["y"], hidden_size=3)], "some",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [5, 3]), helper.make_tensor_value_info("kept", TensorProto.BOOL, [5])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["steps", 1, 1, 3])],
            [numpy_helper.from_array(array, name) for array, name in zip([*weights, ints(1)], ["w", "r", "one"])])
        lstm = helper.make_graph(
            [helper.make_node("LSTM", ["x", "w", "r"], ["y"], hidden_size=3)], "lstm",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, None)], [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
            [numpy_helper.from_array(array, name) for array, name in zip(weights, "wr")])
        for kept in ([1, 0, 1, 1, 0], [0, 1, 0, 0, 0], [1] * 5):
            mask = np.array(kept, bool)
            actual = self.outputs_of(graph, {"x": x, "kept": mask}, "?")["0"]
            lstm.input[0].CopyFrom(helper.make_tensor_value_info("x", TensorProto.FLOAT, [sum(kept), 1, 3]))
            wanted = self.outputs_of(lstm, {"x": x[mask][:, None]}, "")["0"]
            self.assertEqual(cases.difference(actual, wanted), "")

    def test_lists_of_elements_of_several_ranks(self):
        """The standard's case whose list begins with a scalar and goes on with vectors."""
        case = "node/test_loop16_seq_none"
        path = cases.ROOT / case / "model.onnx"
        made, data = onnx.load(str(path)), cases.data_sets(case)[0]
        folder = Path(self.folder.name)
        for trips in (5, 2, 0):
            feed, wanted = cases.values(made, data, "input"), list(cases.values(made, data, "output").values())
            feed["trip_count"] = np.array(trips, np.int64)
            cases.save(folder / "in.npz", feed)
            answer = self.program.ask(f"{path} {folder}/in.npz {folder}/out.npz 3 ?")
            if trips == 0:
                # Then the list is the optional value that the loop was given.
                wanted = [feed["opt_seq/0"]]
            self.assertRegex(answer, "^ok 0 3")
            with np.load(folder / "out.npz") as archive:
                rows, table = archive["0"], archive["1"]
            actual = [row[tuple(slice(extent) if extent >= 0 else 0 for extent in extents)] for row, extents in zip(rows, table)]
            self.assertEqual(len(actual), trips + 1)
            for array, expected in zip(actual, wanted):
                self.assertEqual(cases.difference(np.asarray(array), expected), "")

    def test_values_that_the_model_does_not_take(self):
        graph, feed = self.one("LRN", dict(size=3), [floats(2, 5, 3, 2)], True)
        feed["shape"] = ints(2, 5, 3, 3)

        def expect(answer, _):
            self.assertRegex(answer, r"error node .*Reshape.*: shape \[2,5,3,3\] is none of 60 elements")

        self.run_model(graph, 18, feed, expect, buckets="?")


if __name__ == "__main__":
    unittest.main()
