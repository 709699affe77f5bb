"""Operators on strings: values by numpy and Python from the standard's text."""

import tempfile
import unittest
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, mapping, numpy_helper

import cases
from program_case import ProgramCase

ML = "ai.onnx.ml"
WORDS = np.array([["pear", "", "Größe"], ["日本", "a b", "x" * 40]])


def tensor_type(array):
    return TensorProto.STRING if array.dtype.kind in "SU" else mapping.NP_TYPE_TO_TENSOR_TYPE[array.dtype]


def info(name, array):
    return helper.make_tensor_value_info(name, tensor_type(array), array.shape)


def constant(name, array):
    if array.dtype.kind != "U":
        return numpy_helper.from_array(array, name)
    return helper.make_tensor(name, TensorProto.STRING, array.shape, [text.encode() for text in array.ravel()])


class TextCase(ProgramCase):
    def answer(self, graph, feed, opset=24):
        """The program's answer and the outputs, by position."""
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid(ML, 4)])
        model.ir_version = 8
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "model.onnx").write_bytes(model.SerializeToString())
            cases.save(Path(folder) / "in.npz", feed)
            said = self.program.ask(f"{folder}/model.onnx {folder}/in.npz {folder}/out.npz")
            if not said.startswith("ok "):
                return said, []
            with np.load(Path(folder) / "out.npz") as archive:
                return said, [archive[str(i)] for i in range(len(archive.files))]

    def run_node(self, op, inputs, outputs, constants=(), domain="", **attributes):
        """`constants`: numbers of the inputs that the model knows."""
        names = [f"x{i}" for i in range(len(inputs))]
        node = helper.make_node(op, names, [f"y{i}" for i in range(len(outputs))], domain=domain, **attributes)
        feed = {name: array for i, (name, array) in enumerate(zip(names, inputs)) if i not in constants}
        graph = helper.make_graph([node], "text", [info(name, array) for name, array in feed.items()],
                                  [helper.make_tensor_value_info(f"y{i}", tensor_type(array), None)
                                   for i, array in enumerate(outputs)],
                                  [constant(names[i], inputs[i]) for i in constants])
        return self.answer(graph, feed)

    def check(self, op, inputs, *outputs, **options):
        outputs = [np.asarray(output) for output in outputs]
        said, actual = self.run_node(op, inputs, outputs, **options)
        self.assertTrue(said.startswith("ok "), f"{op}: {said}")
        self.assertEqual([cases.difference(a, b) for a, b in zip(actual, outputs)], [""] * len(outputs), op)

    def refused(self, op, inputs, output, text, **options):
        self.assertIn(text, self.run_node(op, inputs, [np.asarray(output)], **options)[0])


class Moves(TextCase):
    def test_shapes(self):
        def ints(*values):
            return np.array(values, np.int64)

        self.check("Identity", [WORDS], WORDS)
        self.check("Reshape", [WORDS, ints(3, -1)], WORDS.reshape(3, 2), constants=(1,))
        self.check("Unsqueeze", [WORDS, ints(-1)], WORDS[..., None], constants=(1,))
        self.check("Squeeze", [WORDS[:1], ints(0)], WORDS[0], constants=(1,))
        self.check("Flatten", [WORDS], WORDS.reshape(2, 3), axis=-1)
        self.check("Shape", [WORDS], ints(2, 3))
        self.check("Size", [WORDS], np.int64(6))

    def test_moves(self):
        index = np.array([[1, 0], [-1, 1]], np.int64)
        self.check("Transpose", [WORDS], WORDS.T)
        self.check("Concat", [WORDS, WORDS[:, :1]], np.concatenate([WORDS, WORDS[:, :1]], -1), axis=-1)
        self.check("Gather", [WORDS, index], WORDS[:, index], axis=-1)
        self.check("Gather", [WORDS, index], WORDS[index], axis=0)
        self.check("GatherElements", [WORDS, index], np.take_along_axis(WORDS, index % 3, 1), axis=1)
        self.check("Split", [WORDS], WORDS[:1], WORDS[1:], axis=0, num_outputs=2)
        self.check("Slice", [WORDS, np.array([-1]), np.array([-4]), np.array([1]), np.array([-2])], WORDS[:, ::-2],
                   constants=(1, 2, 3, 4))
        self.check("Tile", [WORDS, np.array([2, 1])], np.tile(WORDS, (2, 1)), constants=(1,))
        self.check("Expand", [WORDS[:1], np.array([2, 3])], np.tile(WORDS[:1], (2, 1)), constants=(1,))
        chosen = np.array([[True, False, True], [False, True, False]])
        self.check("Where", [chosen, WORDS, np.array("other")], np.where(chosen, WORDS, "other"))
        self.check("Compress", [WORDS, np.array([True, False, True])], WORDS[:, [0, 2]], axis=1, constants=(1,))
        self.check("Equal", [WORDS, np.array(["pear", "pear", "Größe"])], WORDS == np.array(["pear", "pear", "Größe"]))

    def test_pads_choices_and_updates(self):
        self.check("Pad", [WORDS, np.array([0, 1, 1, 0])], np.pad(WORDS, ((0, 1), (1, 0)), constant_values=""))
        self.check("Pad", [WORDS, np.array([1, 0, 0, 1]), np.array("new")], np.pad(WORDS, ((1, 0), (0, 1)), constant_values="new"))
        self.check("Pad", [WORDS, np.array([0, 2, 0, 2])], np.pad(WORDS, ((0, 0), (2, 2)), mode="reflect"), mode="reflect")
        self.check("CenterCropPad", [WORDS, np.array([1, 5])], np.pad(WORDS[:1], ((0, 0), (1, 1)), constant_values=""))
        self.check("Resize", [WORDS, np.zeros(0, np.float32), np.array([2, 1], np.float32)], WORDS.repeat(2, 0), constants=(1, 2))
        grid = np.array([[[[-1, -1], [0, 1], [0.9, -0.9], [3, 0]]]], np.float32)
        self.check("GridSample", [WORDS[None, None], grid], np.array([[[["pear", "a b", "Größe", ""]]]]), mode="nearest", align_corners=1)
        hot = np.where(np.arange(3) == np.array([[2], [0]]), "yes", "no")
        self.check("OneHot", [np.array([-1, 0]), np.array(3), np.array(["no", "yes"])], hot)
        later = WORDS.copy()
        later[0, 2], later[1, 0] = "first", "second"
        self.check("TensorScatter", [WORDS, np.array([["first"], ["second"]]), np.array([2, 0])], later, axis=1)

    def test_strings_have_no_sums(self):
        grid, sizes = np.zeros((1, 1, 1, 2), np.float32), np.array([1, 1, 4, 6])
        for op, inputs, attributes in (("GridSample", [WORDS[None, None], grid], {}),
                                       ("Resize", [WORDS[None, None], np.zeros(0, np.float32), np.zeros(0, np.float32), sizes],
                                        {"mode": "linear", "constants": (1, 2, 3)})):
            said, _ = self.run_node(op, inputs, [WORDS], **attributes)
            self.assertRegex(said, 'mode is "linear", and strings have no weighted sums')

    def test_sparse_strings(self):
        values = helper.make_tensor("s", TensorProto.STRING, [2], ["Größe".encode(), b"b"])
        sparse = helper.make_sparse_tensor(values, helper.make_tensor("i", TensorProto.INT64, [2], [1, 5]), [2, 3])
        graph = helper.make_graph([helper.make_node("Where", ["x", "s", "w"], ["y"])], "sparse",
                                  [helper.make_tensor_value_info("x", TensorProto.BOOL, [2, 3]), info("w", WORDS)],
                                  [helper.make_tensor_value_info("y", TensorProto.STRING, [2, 3])], sparse_initializer=[sparse])
        chosen = np.array([[True, True, False], [False, False, True]])
        said, outputs = self.answer(graph, {"x": chosen, "w": WORDS})
        self.assertTrue(said.startswith("ok "), said)
        np.testing.assert_array_equal(outputs[0], np.where(chosen, [["", "Größe", ""], ["", "", "b"]], WORDS))

    def test_an_operator_that_takes_no_strings(self):
        self.refused("Neg", [WORDS], WORDS, "strings are not implemented")


class Operators(TextCase):
    def test_numbers(self):
        numbers = np.array([0.1, -2.5, 1e6, 3e-7, np.nan, np.inf, -np.inf, 0.039187793, 1e20], np.float32)
        texts = np.array(["0.1", "-2.5", "1000000", "3e-07", "NaN", "INF", "-INF", "0.039187793", "1e+20"])
        self.check("Cast", [numbers], texts, to=TensorProto.STRING)
        self.check("Cast", [texts], numbers, to=TensorProto.FLOAT)
        self.check("Cast", [np.array([0.1, 1 / 3])], np.array(["0.1", "0.3333333333333333"]), to=TensorProto.STRING)
        integers = np.array([0, -7, 2**63 - 1, -(2**63)], np.int64)
        self.check("Cast", [integers], integers.astype(np.str_), to=TensorProto.STRING)
        self.check("Cast", [np.array([" 12", "+5", "-7", str(2**63 - 1)])], np.array([12, 5, -7, 2**63 - 1]), to=TensorProto.INT64)
        self.check("CastLike", [np.array(["1.5"]), np.array([0.0])], np.array([1.5]))
        self.refused("Cast", [np.array(["1", "one"])], np.zeros(2), "string 1, \"one\", is no number", to=TensorProto.DOUBLE)

    def test_join_and_split(self):
        self.check("StringConcat", [WORDS, np.array("!")], np.char.add(WORDS, "!"))
        self.check("StringConcat", [WORDS, WORDS[:, :1]], np.char.add(WORDS, WORDS[:, :1]))
        lines = np.array(["a,b,c", "d", ",", "ä,,ö"])
        parts = np.array([["a", "b", "c"], ["d", "", ""], ["", "", ""], ["ä", "", "ö"]])
        self.check("StringSplit", [lines], parts, np.array([3, 1, 2, 3]), delimiter=",")
        self.check("StringSplit", [lines], np.array([["a", "b,c"], ["d", ""], ["", ""], ["ä", ",ö"]]), np.array([2, 1, 2, 2]),
                   delimiter=",", maxsplit=1)
        self.check("StringSplit", [np.array([["  one  two three"], [""]])],
                   np.array([[["one", "two", "three"]], [["", "", ""]]]), np.array([[3], [0]]))
        self.check("StringSplit", [np.array(["x--y--"])], np.array([["x", "y", ""]]), np.array([3]), delimiter="--")
        nothing = np.zeros(0, np.str_)
        self.check("StringSplit", [nothing], np.zeros((0, 0), np.str_), np.zeros(0, np.int64))
        self.check("StringConcat", [nothing, np.array(["!"])], nothing)

    def test_patterns(self):
        sites = np.array(["www.google.com", "www.facebook.com", "www.bbc.co.uk"])
        self.check("RegexFullMatch", [sites], np.array([True, True, False]), pattern=r"www\.[\w.-]+\.\bcom\b")
        mails = np.array([["account@gmail.com", "account@hotmail.com"], ["not email", "account@yahoo.com"]])
        self.check("RegexFullMatch", [mails], np.array([[True, False], [False, True]]),
                   pattern=r"(\W|^)[\w.\-]{0,25}@(yahoo|gmail)\.com(\W|$)")
        self.check("RegexFullMatch", [np.zeros((2, 0), np.str_)], np.zeros((2, 0), bool), pattern="a*")
        self.refused("RegexFullMatch", [sites], np.zeros(3, bool), "missing )", pattern="(a")

    def test_normalizer(self):
        days = np.array(["Montag", "ÖSTLICH", "montag", "страна"])
        self.check("StringNormalizer", [days], np.array(["östlich", "montag", "страна"]), stopwords=["Montag"],
                   case_change_action="LOWER", is_case_sensitive=1)
        self.check("StringNormalizer", [days[None]], np.array([["ÖSTLICH", "СТРАНА"]]), stopwords=["MONTAG"],
                   case_change_action="UPPER", is_case_sensitive=0)
        self.check("StringNormalizer", [days], days)
        self.refused("StringNormalizer", [WORDS], WORDS, "expected [c] or [1,c]")

    def test_distinct(self):
        words = np.array(["b", "a", "b", "c", "a"])
        values = np.unique(words, return_index=True, return_inverse=True, return_counts=True)
        self.check("Unique", [words], *values)
        self.check("Unique", [words], np.array(["b", "a", "c"]), np.array([0, 1, 3]), np.array([0, 1, 0, 2, 1]), np.array([2, 2, 1]),
                   sorted=0)

    def test_labels(self):
        fruit, wanted = np.array([["pear", "fig"], ["plum", "pear"]]), np.array([[7, -1], [9, 7]])
        keys = {"keys_strings": ["plum", "pear"], "domain": ML}
        self.check("LabelEncoder", [fruit], wanted, values_int64s=[9, 7], **keys)
        self.check("LabelEncoder", [fruit], np.array([["P", "?"], ["Q", "P"]]), values_strings=["Q", "P"], default_string="?", **keys)
        self.check("LabelEncoder", [fruit], np.array([[0.5, 2.0], [1.5, 0.5]], np.float32), values_floats=[1.5, 0.5],
                   default_float=2.0, **keys)
        self.check("LabelEncoder", [wanted], np.array([["pear", "_Unused"], ["plum", "pear"]]), keys_int64s=[7, 9],
                   values_strings=["pear", "plum"], domain=ML)
        self.check("CategoryMapper", [fruit], wanted, cats_strings=["plum", "pear"], cats_int64s=[9, 7], domain=ML)
        self.check("CategoryMapper", [wanted], np.array([["pear", "_Unused"], ["plum", "pear"]]), cats_strings=["plum", "pear"],
                   cats_int64s=[9, 7], domain=ML)
        hot = np.stack([fruit == cat for cat in ("plum", "pear", "kiwi")], -1).astype(np.float32)
        self.check("OneHotEncoder", [fruit], hot, cats_strings=["plum", "pear", "kiwi"], domain=ML)
        self.check("ArrayFeatureExtractor", [fruit, np.array([1])], fruit[:, 1:], domain=ML)

    def test_missing_values(self):
        rows = np.array([["a", "?"], ["?", "längeres"], ["c", "?"]])
        self.check("Imputer", [rows], np.where(rows == "?", ["eins", "zwei"], rows), imputed_value_strings=["eins", "zwei"],
                   replaced_value_string="?", domain=ML)
        self.check("Imputer", [rows], np.where(rows == "?", "x" * 40, rows), imputed_value_strings=["x" * 40],
                   replaced_value_string="?", domain=ML)
        numbers = np.array([[1, -9], [-9, 4]], np.int64)
        self.check("Imputer", [numbers], np.where(numbers == -9, [7, 8], numbers), imputed_value_int64s=[7, 8],
                   replaced_value_int64=-9, domain=ML)

    def test_classes(self):
        x = np.array([[1, 0], [0, 2]], np.float32)
        self.check("LinearClassifier", [x], np.array(["one", "two"]), np.array([[1, 0], [0, 2]], np.float32), domain=ML,
                   coefficients=[1.0, 0.0, 0.0, 1.0], intercepts=[0.0, 0.0], classlabels_strings=["one", "two"], multi_class=1)

    def test_vectorizer(self):
        words = np.array([["to", "be", "or", "to", "be"], ["be", "not", "to", "x", "to"]])
        self.check("TfIdfVectorizer", [words], np.array([[2, 2, 0, 2], [2, 1, 1, 0]], np.float32), mode="TF", min_gram_length=1,
                   max_gram_length=2, max_skip_count=0, ngram_counts=[0, 3], ngram_indexes=[0, 1, 2, 3],
                   pool_strings=["to", "be", "not", "to", "be"])


class Structures(TextCase):
    def run_nodes(self, nodes, feed, outputs, constants=()):
        graph = helper.make_graph(nodes, "parts", [info(name, array) for name, array in feed.items()],
                                  [helper.make_tensor_value_info(name, tensor_type(np.asarray(array)), None)
                                   for name, array in outputs.items()], list(constants))
        said, actual = self.answer(graph, feed)
        self.assertTrue(said.startswith("ok "), said)
        for array, (name, wanted) in zip(actual, outputs.items()):
            self.assertEqual(cases.difference(array, np.asarray(wanted)), "", name)

    def test_sequences(self):
        nodes = [helper.make_node("SplitToSequence", ["x"], ["parts"], axis=1, keepdims=0),
                 helper.make_node("SequenceAt", ["parts", "one"], ["second"]),
                 helper.make_node("SequenceInsert", ["parts", "y"], ["more"]),
                 helper.make_node("ConcatFromSequence", ["more"], ["joined"], axis=0),
                 helper.make_node("ConcatFromSequence", ["more"], ["stacked"], axis=-1, new_axis=1),
                 helper.make_node("SplitToSequence", ["x", "two"], ["halves"], axis=-1),
                 helper.make_node("SequenceAt", ["halves", "zero"], ["left"])]
        last = np.array(["!", "?" * 300])
        columns = [*WORDS.T, last]
        self.run_nodes(nodes, {"x": WORDS}, {"second": WORDS[:, 1], "joined": np.concatenate(columns),
                                             "stacked": np.stack(columns, -1), "left": WORDS[:, :2]},
                       [constant("y", last), *(constant(name, np.array(value)) for name, value in
                                               (("zero", 0), ("one", 1), ("two", 2)))])

    def test_a_scan(self):
        one = [helper.make_tensor_value_info(name, TensorProto.STRING, [2]) for name in ("so_far", "row", "longer", "pair")]
        body = helper.make_graph([helper.make_node("StringConcat", ["so_far", "row"], ["longer"]),
                                  helper.make_node("Identity", ["longer"], ["pair"])], "body", one[:2], one[2:])
        first = np.array(["<", ">"])
        for axis in (0, 1):
            x = WORDS if axis == 1 else WORDS.T
            steps = [first]
            for column in WORDS.T:
                steps.append(np.char.add(steps[-1], column))
            self.run_nodes([helper.make_node("Scan", ["first", "x"], ["end", "steps"], num_scan_inputs=1, body=body,
                                             scan_input_axes=[axis], scan_output_axes=[-1])],
                           {"first": first, "x": x}, {"end": steps[-1], "steps": np.stack(steps[1:], -1)})


class Bytes(TextCase):
    def test_what_a_string_may_be(self):
        long = np.array(["x" * 257])
        self.refused("Identity", [long], long, "input \"x0\": string 0 has 257 bytes, at most 256 are allowed")
        self.check("Identity", [np.array(["x" * 256])], np.array(["x" * 256]))
        self.check("Identity", [np.array([b"ab", "ä".encode()])], np.array(["ab", "ä"]))
        self.refused("Identity", [np.array([b"ok", b"\xff"])], np.array(["ab"]), "string 1 is not UTF-8")

    def test_a_sequence_of_steps(self):
        """Constants, host steps behind each other, results whose extent depends on data."""
        nodes = [helper.make_node("Constant", [], ["tail"], value_string="!"),
                 helper.make_node("StringNormalizer", ["x"], ["kept"], stopwords=["no"], case_change_action="UPPER"),
                 helper.make_node("StringConcat", ["kept", "mark"], ["y"]),
                 helper.make_node("Concat", ["x", "more"], ["z"], axis=0),
                 helper.make_node("Gather", ["z", "at"], ["w"], axis=0)]
        graph = helper.make_graph(
            nodes, "steps",
            [helper.make_tensor_value_info("x", TensorProto.STRING, [3]), helper.make_tensor_value_info("at", TensorProto.INT64, [2])],
            [helper.make_tensor_value_info(n, TensorProto.STRING, None) for n in ("y", "w", "tail")],
            [constant("mark", np.array(["?"] * 3)), constant("more", np.array(["end"]))])
        said, actual = self.answer(graph, {"x": np.array(["yes", "no", "so"]), "at": np.array([3, 0])})
        self.assertTrue(said.startswith("ok "), said)
        for array, wanted in zip(actual, (["YES?", "SO?"], ["end", "yes"], "!")):
            self.assertEqual(cases.difference(array, np.array(wanted)), "")


if __name__ == "__main__":
    unittest.main()
