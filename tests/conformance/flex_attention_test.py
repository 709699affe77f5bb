"""FlexAttention of ai.onnx.preview: attention with subgraphs of the model's own between its steps. Values by numpy."""

import unittest

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from attention_forms_test import softmax
from one_node import OneNode, element_type, floats

PREVIEW = (("ai.onnx.preview", 1),)


def subgraph(nodes, constants, dtype=TensorProto.FLOAT):
    """Nodes that make "y" of "x", [B,H,L,S]."""
    value = lambda name: helper.make_tensor_value_info(name, dtype, ["B", "H", "L", "S"])
    tensors = [numpy_helper.from_array(np.array(array), name) for name, array in constants.items()]
    return helper.make_graph([helper.make_node(op, ins, outs, **more) for op, ins, outs, more in nodes], "mod", [value("x")],
                             [value("y")], tensors)


def times(number):
    return subgraph([("Mul", ["x", "by"], ["y"], {})], {"by": number}, element_type(np.array(number)))


def causal():
    """Keys behind the query are not seen; how many there are of both is read from the scores."""
    nodes = [("Shape", ["x"], ["queries"], {"start": 2, "end": 3}), ("Shape", ["x"], ["keys"], {"start": 3})]
    for name, shape in (("queries", "column"), ("keys", "row")):
        nodes += [("Squeeze", [name], [name + "_count"], {}), ("Range", ["zero", name + "_count", "one"], [name + "_range"], {}),
                  ("Reshape", [name + "_range", shape], [name + "_at"], {})]
    nodes += [("GreaterOrEqual", ["queries_at", "keys_at"], ["seen"], {}), ("Where", ["seen", "x", "minus"], ["y"], {})]
    return subgraph(nodes, {"zero": np.int64(0), "one": np.int64(1), "column": np.array([1, 1, -1, 1]), "row": np.array([1, 1, 1, -1]),
                            "minus": np.float32(-np.inf)})


def flex_attention(q, k, v, scale=None, score=lambda x: x, weight=lambda x: x):
    repeats = q.shape[1] // k.shape[1]
    k, v = (np.repeat(x.astype(np.float64), repeats, 1) for x in (k, v))
    scores = q.astype(np.float64) @ k.transpose(0, 1, 3, 2) * (scale or q.shape[3]**-0.5)
    return (weight(softmax(score(scores))) @ v).astype(q.dtype)


class FlexAttention(OneNode):
    def setUp(self):
        self.operands = [floats(2, 6, 4, 8), floats(2, 2, 5, 8), floats(2, 2, 5, 3)]

    def check_form(self, operands, expected, **attributes):
        self.check("FlexAttention", 26, operands, [expected], domains=PREVIEW, **attributes)

    def check_error(self, said, operands=None, **attributes):
        with self.assertRaises(AssertionError) as caught:
            self.check_form(operands or self.operands, floats(2, 6, 4, 3), **attributes)
        self.assertIn(said, str(caught.exception))

    def test_without_subgraphs(self):
        self.check_form(self.operands, flex_attention(*self.operands))
        self.check_form(self.operands, flex_attention(*self.operands, scale=0.3), scale=0.3)

    def test_subgraphs(self):
        cap = subgraph([("Div", ["x", "cap"], ["a"], {}), ("Tanh", ["a"], ["b"], {}), ("Mul", ["b", "cap"], ["y"], {})],
                       {"cap": np.float32(1.5)})
        self.check_form(self.operands, flex_attention(*self.operands, score=lambda x: 1.5 * np.tanh(x / 1.5)), score_mod=cap)
        self.check_form(self.operands, flex_attention(*self.operands, weight=lambda x: 0.5 * x), prob_mod=times(np.float32(0.5)))
        both = flex_attention(*self.operands, score=lambda x: 3 * x, weight=lambda x: -x)
        self.check_form(self.operands, both, score_mod=times(np.float32(3)), prob_mod=times(np.float32(-1)))

    def test_subgraphs_that_read_extents(self):
        free = {0: {0: "N", 2: "S"}, 1: {0: "N", 2: "T"}, 2: {0: "N", 2: "T"}}
        for batch, queries, keys in ((1, 1, 1), (2, 4, 6), (1, 9, 5)):
            operands = [floats(batch, 2, queries, 8), floats(batch, 2, keys, 8), floats(batch, 2, keys, 8)]
            seen = np.arange(queries)[:, None] >= np.arange(keys)
            right = flex_attention(*operands, score=lambda x: np.where(seen, x, -np.inf))
            self.check_form(operands, right, score_mod=causal())
            self.check_form(operands, right, score_mod=causal(), free=free, buckets="N=1;S=4;T=6")

    def test_types(self):
        half, double = ([x.astype(dtype) for x in self.operands] for dtype in (np.float16, np.float64))
        right = flex_attention(*half, score=lambda x: 2 * x)
        self.check_form(half, right, digits=2.5, score_mod=times(np.float32(2)))
        self.check_form(half, right, digits=2.5, score_mod=times(np.float16(2)), softmax_precision=TensorProto.FLOAT16)
        self.check_form(double, flex_attention(*double, score=lambda x: 2 * x), digits=12, score_mod=times(np.float64(2)))

    def test_forms_that_there_are_not(self):
        self.check_error("score_mod gives no f32[2,6,4,5]", score_mod=subgraph([("ReduceMax", ["x"], ["y"], {"keepdims": 1})], {}))
        self.check_error("prob_mod gives no f32", prob_mod=subgraph([("Cast", ["x"], ["y"], {"to": TensorProto.DOUBLE})], {}))
        self.check_error("mask_mod", mask_mod=causal())
        self.check_error("op NoSuchOperator, opset 26", score_mod=subgraph([("NoSuchOperator", ["x"], ["y"], {})], {}))
        self.check_error("do not divide over", operands=[self.operands[0], floats(2, 4, 5, 8), floats(2, 4, 5, 3)])
        self.check_error("operand 1 is f64", operands=[self.operands[0], self.operands[1].astype(np.float64), self.operands[2]])


if __name__ == "__main__":
    unittest.main()
