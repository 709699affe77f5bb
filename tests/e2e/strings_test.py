"""Strings of any number: packages with a free dim, from the command line and at several extents."""

import tempfile
import unittest
from pathlib import Path

import mill
import numpy as np
from onnx import TensorProto, helper

WORDS = np.array(["pear", "Größe", "", "fig", "pear", "日本", "x" * 90, "no"])


def model(nodes, inputs, outputs, initializers=()):
    """`inputs`: name -> (element type, shape); `outputs`: names -> element type."""
    graph = helper.make_graph(
        nodes, "strings", [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in inputs.items()],
        [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs.items()], list(initializers))
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 4)])
    made.ir_version = 8
    return made.SerializeToString()


def texts(name, values):
    return helper.make_tensor(name, TensorProto.STRING, [len(values)], [value.encode() for value in values])


def labels_of_words():
    """Strings to numbers, to other strings, and whether they are one of them."""
    nodes = [helper.make_node("LabelEncoder", ["x"], ["number"], domain="ai.onnx.ml", keys_strings=["pear", "fig"],
                              values_int64s=[7, 9], default_int64=-1),
             helper.make_node("LabelEncoder", ["number"], ["name"], domain="ai.onnx.ml", keys_int64s=[7, 9],
                              values_strings=["P", "F"], default_string="?"),
             helper.make_node("Equal", ["x", "pear"], ["is_pear"])]
    return model(nodes, {"x": (TensorProto.STRING, ["N"])},
                 {"number": TensorProto.INT64, "name": TensorProto.STRING, "is_pear": TensorProto.BOOL}, [texts("pear", ["pear"])])


def moved_words():
    """Strings behind each other, in pairs and in another order."""
    nodes = [helper.make_node("StringConcat", ["x", "mark"], ["marked"]),
             helper.make_node("Concat", ["marked", "x"], ["both"], axis=0),
             helper.make_node("Unsqueeze", ["both", "one"], ["column"]),
             helper.make_node("Gather", ["x", "zero"], ["first"], axis=0)]
    numbers = [helper.make_tensor("one", TensorProto.INT64, [1], [1]), helper.make_tensor("zero", TensorProto.INT64, [], [0])]
    return model(nodes, {"x": (TensorProto.STRING, ["N"])}, {"column": TensorProto.STRING, "first": TensorProto.STRING},
                 [texts("mark", ["!"]), *numbers])


def kept_words():
    """Strings that are no stop words: their number depends on the data, and on how many there are."""
    nodes = [helper.make_node("StringNormalizer", ["x"], ["y"], stopwords=["pear", "no"], case_change_action="UPPER",
                              is_case_sensitive=1)]
    return model(nodes, {"x": (TensorProto.STRING, ["N"])}, {"y": TensorProto.STRING})


def upper(word):
    """Letter by letter: what has no one capital stays."""
    return "".join(letter.upper() if len(letter.upper()) == 1 else letter for letter in word)


class Strings(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.package = self.folder / "module.tar"

    def compile(self, made, *options):
        path = self.folder / "model.onnx"
        path.write_bytes(made)
        mill.check_program(self, "compile", path, "-o", self.package, *options)

    def check(self, words, **expected):
        np.savez(self.folder / "in.npz", x=words)
        actual = mill.run_package(self, self.package, self.folder / "in.npz", self.folder / "out.npz")
        for name, wanted in expected.items():
            self.assertEqual(actual[name].tolist(), np.asarray(wanted).tolist(), name)

    def each_number(self, made, expected):
        """`expected`: what the outputs are, of the words."""
        for options in ([], ["--shape-buckets", "N=1,4"]):
            self.compile(made, "--input-shapes", "x:[N]", *options)
            for count in (1, 2, 3, 4, 7, 8):
                with self.subTest(count=count, options=options):
                    self.check(WORDS[:count], **expected(WORDS[:count]))

    def test_labels(self):
        def expected(words):
            numbers = [{"pear": 7, "fig": 9}.get(word, -1) for word in words]
            return {"number": numbers, "name": [{7: "P", 9: "F"}.get(n, "?") for n in numbers], "is_pear": words == "pear"}

        self.each_number(labels_of_words(), expected)

    def test_moves(self):
        self.each_number(moved_words(), lambda words: {
            "column": [[word] for word in [*(word + "!" for word in words), *words]], "first": words[0]})

    def test_long_strings(self):
        long = np.array(["x" * 300, "ä" * 150, "no"])
        for shapes in ("x:[N,300]", "x:[3,300]"):
            self.compile(kept_words(), "--input-shapes", shapes)
            self.check(long, y=[upper(word) for word in long[:2]])
            np.savez(self.folder / "in.npz", x=np.array(["x" * 301] * 3))
            done = mill.run_program("run", self.package, "-i", self.folder / "in.npz")
            self.assertEqual(done.returncode, 3)
            self.assertIn("301 bytes, at most 300", done.stderr)
        (self.folder / "model.onnx").write_bytes(kept_words())
        for shapes in ("x:[N,W]", "x:[N,0]"):
            done = mill.run_program("compile", self.folder / "model.onnx", "--input-shapes", shapes, "-o", self.package)
            self.assertEqual(done.returncode, 3, shapes)
            self.assertIn("a width that is no number", done.stderr)

    def test_stop_words(self):
        self.each_number(kept_words(), lambda words: {
            "y": [upper(word) for word in words if word not in ("pear", "no")] or [""]})


if __name__ == "__main__":
    unittest.main()
