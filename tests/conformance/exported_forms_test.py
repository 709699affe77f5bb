"""Forms in which exporters write what a model's author did not: squeezes as branches, expansions with -1, selections of boxes without a
limit, over rows that data chooses. None of their values is bound, and all have kernels. Values by numpy."""

import unittest

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import cases
from one_node import OneNode, element_type, floats

make = helper.make_node
LARGEST = 2**63 - 1
CONSTANTS = {"zero": np.int64([0]), "one": np.int64([1]), "two": np.int64([2]), "zero_s": np.int64(0), "one_s": np.int64(1), "none": np.float32(0),
             "minus": np.int64(-1), "minus_v": np.int64([-1]), "column": np.int64([-1, 1, 1, 1]), "half": np.float32([0.5]), "most": np.int64([LARGEST])}


def chosen_rows(x, rows):
    """Nodes for x[x.sum(1) > 0]: `rows` are their numbers, "some" they themselves."""
    return [make("ReduceSum", [x, "one"], ["sums"], keepdims=0), make("Greater", ["sums", "none"], ["mask"]), make("NonZero", ["mask"], ["found"]),
            make("Transpose", ["found"], ["turned"], perm=[1, 0]), make("Squeeze", ["turned", "one"], [rows]), make("Gather", [x, rows], ["some"])]


def expanded(x, shape, result):
    """As torch writes expand(): a shape may say -1 for an extent that stays."""
    return [make("Shape", [shape], ["rank"]), make("ConstantOfShape", ["rank"], ["ones"], value=numpy_helper.from_array(np.int64([1]))),
            make("Mul", ["ones", "minus"], ["kept"]), make("Equal", [shape, "kept"], ["stays"]), make("Where", ["stays", "ones", shape], ["extents"]),
            make("Expand", [x, "extents"], [result])]


def branch(name, *nodes):
    return helper.make_graph(list(nodes), name, [], [helper.make_tensor_value_info(nodes[-1].output[0], TensorProto.FLOAT, None)])


class ExportedForms(OneNode):
    def check_nodes(self, nodes, inputs, right, weights=None):
        """At fixed shapes, and with rows of matrices free; the output is "y"."""
        used = {name for node in nodes for name in node.input} | {name for node in nodes for part in node.attribute
                                                                  for each in part.g.node for name in each.input}
        for buckets in ("", "*"):
            graph = helper.make_graph(
                nodes, "graph", [helper.make_tensor_value_info(name, element_type(array), [f"{name}_0" if buckets and array.ndim > 1 else array.shape[0], *array.shape[1:]])
                                 for name, array in inputs.items()], [helper.make_tensor_value_info("y", element_type(right), None)],
                [numpy_helper.from_array(array, name) for name, array in {**CONSTANTS, **(weights or {})}.items() if name in used])

            def expect(answer, actual):
                self.assertRegex(answer, "^ok 0 ")
                self.assertEqual(cases.difference(actual["0"], right), "")

            self.run_model(graph, 13, inputs, expect, buckets=buckets)

    def inputs(self):
        """Of which some, none and all rows are chosen."""
        x = floats(7, 5)
        for shift in (0, -100, 100):
            yield x + np.float32(shift)

    def test_squeezes_of_chosen_rows(self):
        nodes = chosen_rows("x", "rows") + [
            make("Gather", ["some", "zero"], ["first"], axis=1), make("Shape", ["first"], ["shape"]), make("Gather", ["shape", "one_s"], ["extent"]),
            make("Equal", ["extent", "one_s"], ["is_one"]),
            make("If", ["is_one"], ["y"], then_branch=branch("yes", make("Squeeze", ["first", "one"], ["squeezed"])),
                 else_branch=branch("no", make("Identity", ["first"], ["same"])))]
        for x in self.inputs():
            self.check_nodes(nodes, {"x": x}, x[x.sum(1) > 0][:, 0])

    def test_a_squeeze_that_is_not_done(self):
        nodes = chosen_rows("x", "rows") + [
            make("Shape", ["some"], ["shape"]), make("Gather", ["shape", "one_s"], ["extent"]), make("Equal", ["extent", "one_s"], ["equal"]),
            make("Cast", ["equal"], ["number"], to=TensorProto.INT32), make("Cast", ["number"], ["is_one"], to=TensorProto.BOOL),
            make("Not", ["is_one"], ["is_more"]),
            make("If", ["is_more"], ["y"], then_branch=branch("yes", make("Neg", ["some"], ["negated"])),
                 else_branch=branch("no", make("Squeeze", ["some", "one"], ["squeezed"])))]
        for x in self.inputs():
            self.check_nodes(nodes, {"x": x}, -x[x.sum(1) > 0])

    def test_rows_that_are_written_where_they_came_from(self):
        nodes = chosen_rows("x", "rows") + [
            make("Unsqueeze", ["rows", "one"], ["places"]), make("Shape", ["some"], ["shape"]), *expanded("places", "shape", "all_places"),
            make("Neg", ["some"], ["values"]), make("ScatterElements", ["x", "all_places", "values"], ["y"], axis=0)]
        for x in self.inputs():
            self.check_nodes(nodes, {"x": x}, np.where((x.sum(1) > 0)[:, None], -x, x))

    def test_maps_that_are_written_to_their_rows(self):
        nodes = chosen_rows("x", "rows") + [
            make("Unsqueeze", ["some", "two"], ["map"]), make("Concat", ["map", "map"], ["maps"], axis=2), make("Unsqueeze", ["maps", "two"], ["updates"]),
            make("Reshape", ["rows", "column"], ["places"]), make("Shape", ["places"], ["place_shape"]), make("Shape", ["updates"], ["shape"]),
            make("Slice", ["place_shape", "zero", "one"], ["count"]), make("Slice", ["shape", "one", "most"], ["rest"]),
            make("Concat", ["count", "rest"], ["joined"], axis=0), make("Reshape", ["joined", "minus_v"], ["wanted"]),
            *expanded("places", "wanted", "all_places"), make("Shape", ["x"], ["own"]), make("Slice", ["own", "zero", "one"], ["height"]),
            make("Concat", ["height", "rest"], ["target"], axis=0), make("ConstantOfShape", ["target"], ["zeros"]),
            make("ScatterElements", ["zeros", "all_places", "updates"], ["y"], axis=0)]
        for x in self.inputs():
            kept = np.where((x.sum(1) > 0)[:, None], x, np.float32(0))
            self.check_nodes(nodes, {"x": x}, np.stack([kept, kept], axis=2)[:, :, None])

    def layer(self, op, direction, inputs, names):
        """A recurrent layer of 3 units: its weights, and nodes that run it on "steps"."""
        gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[op]
        sides = 2 if direction == "bidirectional" else 1
        weights = {"w": floats(sides, 3 * gates, inputs), "r": floats(sides, 3 * gates, 3)}
        return weights, [make(op, ["steps", "w", "r", "", *names], ["all", "last"], hidden_size=3, direction=direction)]

    def test_layers_of_chosen_steps(self):
        for op, direction in (("RNN", "forward"), ("LSTM", "bidirectional"), ("GRU", "reverse")):
            for names in ([], ["lengths"]):
                weights, nodes = self.layer(op, direction, 5, names)
                chosen = chosen_rows("x", "rows") + [make("Unsqueeze", ["some", "one"], ["single"]), make("Concat", ["single", "single"], ["steps"], axis=1)]
                for x in self.inputs():
                    some = x[x.sum(1) > 0]
                    lengths = {"lengths": np.int32([len(some) // 2, len(some)])} if names else {}
                    steps = np.stack([some, some], axis=1)
                    for output in ("all", "last"):
                        with self.subTest(op=op, names=names, output=output, steps=len(some)):
                            end = [make("Identity", [output], ["y"])]
                            self.check_nodes(chosen + nodes + end, {"x": x, **lengths}, self.made(nodes + end, {"steps": steps, **lengths}, weights),
                                             weights)

    def made(self, nodes, inputs, weights):
        """What the nodes make of inputs of fixed shapes."""
        found = {}
        graph = helper.make_graph(nodes, "fixed", [helper.make_tensor_value_info(name, element_type(array), array.shape) for name, array in inputs.items()],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                                  [numpy_helper.from_array(array, name) for name, array in weights.items()])

        def keep(answer, outputs):
            self.assertRegex(answer, "^ok 0 ")
            found.update(outputs)

        self.run_model(graph, 13, inputs, keep)
        return found["0"]

    def test_boxes_without_a_limit(self):
        corners = np.stack([np.arange(6) * 2.0, np.arange(6) * 2.0], axis=1).astype(np.float32)
        boxes = np.concatenate([corners, corners + 1.5], axis=1)
        boxes[3] = boxes[2]
        scores = np.float32([0.1, 0.6, 0.4, 0.9, 0.2, 0.3])
        nodes = [make("Unsqueeze", ["boxes", "zero"], ["b"]), make("Unsqueeze", ["scores", "zero"], ["s"]), make("Unsqueeze", ["s", "zero"], ["t"]),
                 make("NonMaxSuppression", ["b", "t", "most", "half"], ["kept"]), make("Gather", ["kept", "two"], ["column_2"], axis=1),
                 make("Squeeze", ["column_2", "one"], ["y"])]
        self.check_nodes(nodes, {"boxes": boxes, "scores": scores}, np.int64([3, 1, 5, 4, 0]))


if __name__ == "__main__":
    unittest.main()
