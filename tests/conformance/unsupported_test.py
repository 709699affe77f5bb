"""What is not implemented is named before any work: all nodes, operators, opsets and attributes at once, wherever in the model
they stand."""

import unittest

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from one_node import OneNode, floats

OWN = "test.functions"


def value(name, kind=TensorProto.FLOAT, shape=(2,)):
    return helper.make_tensor_value_info(name, kind, shape)


class Unsupported(OneNode):
    def refusal(self, nodes, functions=(), outputs=("y",), constants=(), opset=17):
        """The answer to a model of one input `x` [2]."""
        graph = helper.make_graph(nodes, "strange", [value("x")], [helper.make_empty_tensor_value_info(name) for name in outputs],
                                  list(constants))
        imports = [helper.make_opsetid(name, version) for name, version in (("", opset), (OWN, 1), ("com.microsoft", 1), ("odd.domain", 1))]
        model = helper.make_model(graph, opset_imports=imports, functions=list(functions))
        model.ir_version = 9
        return self.answer(model, {"x": floats(2)})

    def named(self, answer, *parts):
        self.assertTrue(answer.startswith("error "), answer)
        self.assertIn(f"{len(parts)} node{' is' if len(parts) == 1 else 's are'} not supported", answer)
        for part in parts:
            self.assertIn(part, answer)

    def test_all_of_the_main_graph(self):
        grid = helper.make_node("GridSample", ["x", "x"], ["c"], name="grid", mode="septic", padding_mode="mirror")
        answer = self.refusal([
            helper.make_node("Hammer", ["x"], ["a"], name="first"),
            helper.make_node("Cast", ["a"], ["b"], name="second", to=TensorProto.COMPLEX64),
            grid,
            helper.make_node("CDist", ["x", "x"], ["d"], domain="com.microsoft", metric="cosine"),
            helper.make_node("Anvil", ["d"], ["e"], domain="odd.domain"),
            helper.make_node("MultiHeadAttention", ["x", "x", "x"] + [""] * 6 + ["e"], ["y"], domain="com.microsoft", num_heads=1),
            helper.make_node("AveragePool", ["x"], [""], name="pool", auto_pad="ODD", kernel_shape=[1] * 4),
        ])
        self.named(answer, '"first" (op Hammer, opset 17: not implemented)',
                   '"second" (op Cast, opset 17, attribute to: element type COMPLEX64 is not implemented)',
                   '"grid" (op GridSample, opset 17, attribute mode: value "septic" is not implemented)',
                   '"grid" (op GridSample, opset 17, attribute padding_mode: value "mirror" is not implemented)',
                   '"CDist_3" (op com.microsoft.CDist, opset 17, attribute metric: value "cosine" is not implemented)',
                   '"Anvil_4" (op odd.domain.Anvil, opset 17: domain odd.domain is not implemented)',
                   '"MultiHeadAttention_5" (op com.microsoft.MultiHeadAttention, opset 17, attribute input 9: is not implemented)',
                   '"pool" (op AveragePool, opset 17, attribute auto_pad: value "ODD" is not implemented)',
                   '"pool" (op AveragePool, opset 17, attribute kernel_shape: more than 3 spatial dims are not implemented)')

    def test_attributes_that_an_operator_does_not_have(self):
        nodes = [helper.make_node("Relu", ["x"], ["a"], name="first", alpha=0.5),
                 helper.make_node("Gemm", ["a", "a"], ["b"], name="second", transC=1, transA=0, fast=1),
                 helper.make_node("Softmax", ["b"], ["y"], name="third", __note="exported")]
        self.named(self.refusal(nodes), '"first" (op Relu, opset 17, attribute alpha: is not implemented)',
                   '"second" (op Gemm, opset 17, attribute fast: is not implemented)',
                   '"second" (op Gemm, opset 17, attribute transC: is not implemented)')

    def test_attributes_of_contributed_operators(self):
        """What an attribute of theirs says is read, or it is named; a value that changes nothing may stand."""
        def own(op, inputs, output, **attributes):
            return helper.make_node(op, inputs, [output], domain="com.microsoft", **attributes)

        answer = self.refusal([
            own("FusedMatMul", ["x", "x"], "a", alpha=0.5, transB=1, transC=1),
            own("CausalConvWithState", ["a", "a"], "b", activation="silu", dilation=2, channels_last=1),
            own("MatMulNBits", ["b", "b", "b"], "c", K=32, N=8, bits=4, block_size=32, accuracy_level=4, weight_prepacked=1),
            own("GroupQueryAttention", ["c"] * 3 + ["", "", "c", "c"], "d", num_heads=1, kv_num_heads=1, sliding_window_cache=1),
            own("QMoE", ["d"] * 3, "e", activation_type="silu", quant_type="fp4", weights_prepacked=1, k=1),
            own("BiasGelu", ["e", "e"], "y", approximate="tanh"),
        ])
        self.named(answer, '"FusedMatMul_0" (op com.microsoft.FusedMatMul, opset 17, attribute transC: is not implemented)',
                   "CausalConvWithState, opset 17, attribute dilation: value 2 is not implemented",
                   "CausalConvWithState, opset 17, attribute channels_last: value 1 is not implemented",
                   "MatMulNBits, opset 17, attribute weight_prepacked: value 1 is not implemented",
                   "GroupQueryAttention, opset 17, attribute sliding_window_cache: value 1 is not implemented",
                   'QMoE, opset 17, attribute quant_type: value "fp4" is not implemented',
                   "QMoE, opset 17, attribute weights_prepacked: value 1 is not implemented",
                   "BiasGelu, opset 17, attribute approximate: is not implemented")
        plain = own("QuickGelu", ["x"], "y", alpha=1.0, __note="exported")
        self.assertTrue(self.refusal([plain]).startswith("ok "))

    def test_bodies(self):
        complex_weight = helper.make_tensor("w", TensorProto.COMPLEX64, [1], [1j])
        inner = helper.make_graph([helper.make_node("Screw", ["x"], ["i"]), helper.make_node("Identity", ["w"], ["j"])], "inner",
                                  [], [helper.make_empty_tensor_value_info("i")], [complex_weight])
        then = helper.make_graph([helper.make_node("If", ["c"], ["t"], name="deep", then_branch=inner, else_branch=inner)], "then", [],
                                 [helper.make_empty_tensor_value_info("t")])
        other = helper.make_graph([helper.make_node("Nail", ["x"], ["e"], name="nail")], "else", [],
                                  [helper.make_empty_tensor_value_info("e")])
        condition = numpy_helper.from_array(np.array(True), "c")
        answer = self.refusal([helper.make_node("If", ["c"], ["y"], name="choice", then_branch=then, else_branch=other)],
                              constants=[condition])
        parts = []
        for branch in ("then_branch", "else_branch"):
            parts += [f'"choice/then_branch/deep/{branch}/Screw_0" (op Screw, opset 17: not implemented)',
                      f'"choice/then_branch/deep/{branch}/w" (initializer, element type COMPLEX64 is not implemented)']
        self.named(answer, *parts, '"choice/else_branch/nail" (op Nail, opset 17: not implemented)')

    def test_functions_and_what_calls_give_them(self):
        fill = helper.make_node("Pad", ["x", "p"], ["y"], name="fill")
        fill.attribute.append(helper.make_attribute("mode", ""))
        fill.attribute[0].Clear()
        fill.attribute[0].name, fill.attribute[0].ref_attr_name, fill.attribute[0].type = "mode", "how", 3
        pads = helper.make_node("Constant", [], ["p"], value=numpy_helper.from_array(np.array([0, 0]), "v"))
        padded = helper.make_function(OWN, "Padded", ["x"], ["y"], [pads, fill], [helper.make_opsetid("", 18)], ["how"])
        broken = helper.make_function(OWN, "Broken", ["x"], ["y"], [helper.make_node("Wrench", ["x"], ["y"], name="turn")],
                                      [helper.make_opsetid("", 16)])
        answer = self.refusal([
            helper.make_node("Padded", ["x"], ["a"], domain=OWN, how="edge"),
            helper.make_node("Padded", ["a"], ["b"], domain=OWN, how="mirror"),
            helper.make_node("Broken", ["b"], ["d"], domain=OWN),
            helper.make_node("Padded", ["d"], ["e"], domain=OWN, how="twist"),
            helper.make_node("Broken", ["e"], ["y"], domain=OWN),
        ], [padded, broken])
        self.named(answer, '"Padded/fill" (op Pad, opset 18, attribute mode: value "mirror" is not implemented)',
                   '"Padded/fill" (op Pad, opset 18, attribute mode: value "twist" is not implemented)',
                   '"Broken/turn" (op Wrench, opset 16: not implemented)')


if __name__ == "__main__":
    unittest.main()
