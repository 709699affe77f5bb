"""What keeps a model of each format from being imported, in the graph of its file: which nodes, and why. By HTTP, as the console has it."""

import io
import unittest
import zipfile

import mill
import serving

FIXTURES = mill.ROOT / "tests/fixtures"


def rewritten(source, change):
    """The archive's bytes with its members as `change` makes them."""
    made = io.BytesIO()
    with zipfile.ZipFile(source) as archive, zipfile.ZipFile(made, "w") as copy:
        for name in archive.namelist():
            copy.writestr(name, change(name, archive.read(name)))
    return made.getvalue()


class RefusedGraphs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = serving.make_server(cls)

    def refused(self, name, data, is_joined=True):
        """The graph, and the refused nodes' operators and reasons. `is_joined`: most nodes read what others make."""
        answer = self.server.upload(name, data)
        self.assertEqual((answer.status, answer.json()["code"]), (422, "operator_not_implemented"), answer.body)
        graph = answer.json()["model"]["graph"]
        self.check_edges(graph, is_joined)
        return graph, [(node["op"], node["refused"]) for node in graph["nodes"] if "refused" in node]

    def check_edges(self, graph, is_joined):
        """Every value that is named is known; outputs are made by nodes, and some of what nodes read, too."""
        made = {value for node in graph["nodes"] for value in node["outputs"]}
        read = {value for node in graph["nodes"] for value in node["inputs"]}
        self.assertEqual([value for value in graph["inputs"] + graph["outputs"] if value not in graph["values"]], [])
        self.assertEqual([value for value in graph["outputs"] if value not in made], [])
        self.assertTrue(read & set(graph["inputs"]))
        if is_joined:
            self.assertGreater(len(made & read) + 2, len(graph["nodes"]) * 3 // 4)

    def test_tflite(self):
        graph, refused = self.refused("missing", (FIXTURES / "tflite_ops/missing.tflite").read_bytes(), is_joined=False)
        self.assertEqual([op for op, _ in refused].count("CONCAT_EMBEDDINGS"), 2)
        self.assertIn(("SKIP_GRAM", ["op SKIP_GRAM version 1: not implemented"]), refused)
        self.assertTrue(all(value["type"].startswith("f32[") for value in graph["values"].values()))

    def test_frozen_graph(self):
        data = (FIXTURES / "tensorflow_nets/mobile.pb").read_bytes()
        graph, refused = self.refused("frozen", data.replace(b"\x12\x05Relu6", b"\x12\x05Fancy").replace(b"\x12\x07Softmax", b"\x12\x07Hardmax"))
        self.assertEqual(refused, [("Fancy", ["op Fancy: not implemented"])] * 3 + [("Hardmax", ["op Hardmax: not implemented"])])
        # Weights are no nodes.
        self.assertEqual([node for node in graph["nodes"] if node["op"] in ("Const", "Placeholder")], [])

    def test_saved_model(self):
        change = lambda name, data: data.replace(b"\x12\x05Relu6", b"\x12\x05Fancy") if name.endswith("saved_model.pb") else data
        graph, refused = self.refused("saved", rewritten(FIXTURES / "tensorflow_nets/mobile.zip", change))
        self.assertEqual(refused, [("Fancy", ["op Fancy: not implemented"])] * 3)
        # What the signature's function has within stands in the graph itself.
        self.assertIn("Conv2D", {node["op"] for node in graph["nodes"]})
        self.assertNotIn("StatefulPartitionedCall", {node["op"] for node in graph["nodes"]})

    def test_tfjs(self):
        change = lambda name, data: data.replace(b'"Relu6"', b'"Fancy"').replace(b'"_FusedConv2D"', b'"Fancy"') if name.endswith("model.json") else data
        _, refused = self.refused("tfjs", rewritten(FIXTURES / "tensorflow_nets/mobile_graph_model.zip", change))
        self.assertEqual({(op, *reasons) for op, reasons in refused}, {("Fancy", "op Fancy: not implemented")})

    def test_keras(self):
        graph, refused = self.refused("keras", (FIXTURES / "keras/lambda.keras").read_bytes())
        self.assertEqual([op for op, _ in refused], ["Lambda"])
        self.assertIn("its program is Python", refused[0][1][0])
        self.assertEqual((graph["inputs"], graph["outputs"], len(graph["nodes"])), (["x"], ["doubled"], 1))

    def test_keras_within_another_model(self):
        change = lambda name, data: data.replace(b'"class_name": "ReLU"', b'"class_name": "Fancy"') if name == "config.json" else data
        graph, refused = self.refused("nested", rewritten(FIXTURES / "keras_layers/nested.keras", change))
        self.assertEqual({op for op, _ in refused}, {"Fancy"})
        label = next(node["origins"][0] for node in graph["nodes"] if "refused" in node)
        self.assertIn("/", label)

    def test_exported_program(self):
        change = lambda name, data: data.replace(b"aten.relu_.default", b"aten.fancy.default").replace(b"aten.linear.default", b"my.own_linear.default") \
            if name.endswith("models/model.json") else data
        graph, refused = self.refused("program", rewritten(FIXTURES / "pytorch_nets/residual.pt2", change))
        self.assertEqual(refused, [("aten.fancy.default", ["op aten.fancy.default: not implemented"])] * 3 + [("my.own_linear.default", ["op my.own_linear.default: not implemented"])])
        self.assertTrue(any(value["constant"] for value in graph["values"].values()))

    def test_torchscript(self):
        change = lambda name, data: data.replace(b"torch.relu_(", b"torch.fancy(").replace(b"torch.linear(", b"ops.my.linear(") if name.endswith(".py") else data
        for form in ("frozen", "traced"):
            with self.subTest(form=form):
                _, refused = self.refused(form, rewritten(FIXTURES / f"pytorch_script/residual_{form}.pt", change))
                self.assertEqual(refused, [("aten.fancy", ["op aten.fancy: not implemented"])] * 3 + [("my.linear", ["op my.linear: not implemented"])])


if __name__ == "__main__":
    unittest.main()
