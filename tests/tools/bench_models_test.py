"""The benchmark's own arithmetic: model variants, bars and the chart, without measuring anything."""

import sys
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

from models_bench import bars, report, variants  # noqa: E402
from models_bench.measure import largest_ratio, summary  # noqa: E402


def dense_model():
    """x [1,2,3] -> Flatten -> MatMul [6,4] -> Reshape [1,2,2]."""
    weight = numpy_helper.from_array(np.arange(24, dtype=np.float32).reshape(6, 4), "w")
    target = numpy_helper.from_array(np.array([1, 2, 2], np.int64), "shape")
    nodes = [helper.make_node("Flatten", ["x"], ["flat"], axis=1), helper.make_node("MatMul", ["flat", "w"], ["m"]),
             helper.make_node("Reshape", ["m", "shape"], ["y"])]
    graph = helper.make_graph(nodes, "dense", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, 3])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2, 2])], [weight, target])
    return helper.make_model(graph)


class Variants(unittest.TestCase):
    def test_batch_reaches_inputs_outputs_and_reshapes(self):
        made = variants.with_batch(dense_model(), 8)
        self.assertEqual(made.graph.input[0].type.tensor_type.shape.dim[0].dim_value, 8)
        self.assertEqual(made.graph.output[0].type.tensor_type.shape.dim[0].dim_value, 8)
        self.assertEqual(numpy_helper.to_array(made.graph.initializer[1]).tolist(), [8, 2, 2])

    def test_chain_copies_have_their_own_weights_and_depend_on_each_other(self):
        made = variants.chain(dense_model(), 3)
        self.assertEqual([n.op_type for n in made.graph.node], ["Flatten", "MatMul", "Reshape", "Pad"] * 2
                         + ["Flatten", "MatMul", "Reshape"])
        weights = [numpy_helper.to_array(t) for t in made.graph.initializer if t.name.endswith("w")]
        self.assertEqual(len({w.tobytes() for w in weights}), 3)
        self.assertEqual(made.graph.node[0].input[0], "x")
        self.assertEqual(made.graph.node[4].input[0], made.graph.node[3].output[0])
        self.assertEqual(made.graph.node[-1].output[0], "y")

    def test_identity_keeps_names_and_shapes(self):
        made = variants.identity({"a": np.zeros((1, 3), np.int64)}, {"y": np.zeros((2, 5), np.float32)})
        self.assertEqual([v.name for v in made.graph.input], ["a"])
        self.assertEqual(made.graph.input[0].type.tensor_type.elem_type, TensorProto.INT64)
        self.assertEqual([d.dim_value for d in made.graph.output[0].type.tensor_type.shape.dim], [2, 5])

    def test_weights_are_counted_in_bytes(self):
        self.assertEqual(variants.weight_bytes(dense_model()), 24 * 4 + 3 * 8)


def net_figures(ratio):
    return {"compile_s": 1.0, "batch8": {"ratio": 1.5},
            "accuracy": {"against_peer": 1e-6, "against_reference": 1e-6},
            "memory": {"ratio": 0.5, "params_ratio": 1.0},
            "latency": {"speedup": 1.8, "probe_speedup": 1.9, "ratio2_to_best_peer": 1.3,
                        "threads1": {"ours_ms": 1.0, "peer_ms": ratio, "ratio": ratio},
                        "threads2": {"ours_ms": 0.6, "peer_ms": 0.9, "ratio": 1.5}}}


class Figures(unittest.TestCase):
    def test_floor_is_taken_off_the_peer_block_by_block(self):
        blocks = {"ours1": [100, 200], "ours2": [50, 100], "peer1": [210, 410], "peer2": [110, 210], "floor": [10, 10]}
        made = summary(blocks, [{1: 100, 2: 180}])
        self.assertEqual(made["threads1"]["ratio"], 2)
        self.assertEqual(made["threads2"]["ratio"], 2)
        self.assertEqual(made["speedup"], 2)
        self.assertEqual(made["probe_speedup"], 1.8)
        self.assertEqual(made["ratio2_to_best_peer"], 2)

    def test_a_missed_bar_is_seen(self):
        made = bars.all_bars({"resnet18": net_figures(1.6), "resnet50": net_figures(1.1)})
        missed = [b["what"] for b in made if not b["passed"]]
        self.assertEqual(missed, ["geometric mean of the ratios, 1 thread", "resnet50: ratio, 1 thread"])

    def test_error_is_relative_to_the_largest_value(self):
        self.assertAlmostEqual(largest_ratio({"a": np.array([1.0, 2.02])}, {"b": np.array([1.0, 2.0])}), 0.01)
        with self.assertRaises(RuntimeError):
            largest_ratio({"a": np.zeros(2)}, {"b": np.zeros(3)})

    def test_table_and_chart_show_every_network(self):
        run = {"rounds": 8, "cpu": "a <CPU>", "peak1": 100.0, "peak2": 190.0, "bars": [],
               "nets": {"resnet18": net_figures(1.6), "mobilenetv2": net_figures(1.1)}}
        text = report.markdown(run)
        chart = "".join(ElementTree.fromstring(report.svg(run)).itertext())
        for name in run["nets"]:
            self.assertIn(f"| {name} |", text)
            self.assertIn(name, chart)


if __name__ == "__main__":
    unittest.main()
