"""Broken models of the kinds that have parts: subgraphs, sequences, functions, sparse tensors, files beside the model. Each
is refused with a line that names the place; none is an internal error."""

import os
import tempfile
import unittest
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import mill

F, I, B, S = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL, TensorProto.STRING
X, Y = ("x", F, [2, 3]), ("y", F, None)
THREE, YES = ("three", np.array(3)), ("yes", np.array(True))
INPUT_IS_WRONG, NOT_SUPPORTED = 3, 4


def constant(name, array):
    if array.dtype.kind != "U":
        return numpy_helper.from_array(array, name)
    return helper.make_tensor(name, S, array.shape, [text.encode() for text in array.ravel()])


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), name="the_node", **attributes)


def graph(nodes, inputs, outputs, constants=()):
    return helper.make_graph(nodes, "g", [helper.make_tensor_value_info(*i) for i in inputs],
                             [helper.make_tensor_value_info(*o) for o in outputs],
                             [constant(name, array) for name, array in constants])


def model(nodes, inputs, outputs, constants=(), functions=(), opset=17):
    imports = [helper.make_opsetid("", opset)] + [helper.make_opsetid("f", 1)] * bool(functions)
    made = helper.make_model(graph(nodes, inputs, outputs, constants), opset_imports=imports, functions=list(functions))
    made.ir_version = 9
    return made


def loop(nodes, inputs="three yes x", outputs="y", state=("v", F, [2, 3]), result=("w", F, [2, 3]), constants=(THREE, YES)):
    body = graph(nodes, [("i", I, []), ("c", B, []), state], [("go", B, []), result])
    return model([node("Loop", inputs, outputs, body=body)], [X], [Y], constants)


def scan(inputs, start=(3,), nodes=None, **attributes):
    body = graph(nodes or [node("Add", "s a", "t"), node("Mul", "t b", "o")], [("s", F, [3]), ("a", F, [3]), ("b", F, [3])],
                 [("t", F, [3]), ("o", F, [3])])
    constants = [("start", np.zeros(start, np.float32)), ("five", np.zeros((5, 3), np.float32)), ("one", np.float32(1))]
    attributes = {"num_scan_inputs": 2, "body": body, **attributes}
    return model([node("Scan", "start " + inputs, "last y", **attributes)], [X], [Y], constants)


def branch(condition, yes, no, inputs=(X, ("c", B, []))):
    sides = {name: graph(nodes, [], [("a", F, None)]) for name, nodes in (("then_branch", yes), ("else_branch", no)) if nodes}
    return model([node("If", condition, "y", **sides)], inputs, [Y], [YES])


def function(name, nodes, inputs="a", outputs="b"):
    return helper.make_function("f", name, inputs.split(), outputs.split(), nodes, [helper.make_opsetid("", 17), helper.make_opsetid("f", 1)])


def calls(functions, outputs="y"):
    return model([node("A", "x", outputs, domain="f")], [X], [(name, F, None) for name in outputs.split()], [YES], functions)


def sparse(shape, places, values=(1, 2)):
    made = model([node("Add", "x sparse", "y")], [X], [Y])
    tensor = made.graph.sparse_initializer.add(dims=shape)
    tensor.values.CopyFrom(numpy_helper.from_array(np.array(values, np.float32), "sparse"))
    tensor.indices.CopyFrom(numpy_helper.from_array(np.array(places, np.int64), "places"))
    return made


def external(location, **numbers):
    made = model([node("Add", "x w", "y")], [X], [Y], [("w", np.ones(3, np.float32))])
    tensor = made.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, **numbers}.items():
        entry = tensor.external_data.add()
        entry.key, entry.value = key, str(value)
    return made


def nested(depth):
    """Branches in branches, written from the innermost outward: no library goes that deep."""
    def number(value):
        return bytes([value & 127 | 128]) + number(value >> 7) if value > 127 else bytes([value])

    def part(field, data):
        return number(field << 3 | 2) + number(len(data)) + data

    result = part(12, helper.make_tensor_value_info("o", F, None).SerializeToString())
    inner = part(1, helper.make_node("Relu", ["x"], ["o"]).SerializeToString()) + result
    for _ in range(depth):
        side = b"".join(part(5, part(1, name) + number(20 << 3) + number(5) + part(6, inner if name[0] == 116 else b""))
                        for name in (b"then_branch", b"else_branch"))
        inner = part(1, part(1, b"yes") + part(2, b"o") + part(4, b"If") + side) + result
    inner += part(11, helper.make_tensor_value_info(*X).SerializeToString()) + part(5, numpy_helper.from_array(YES[1], "yes").SerializeToString())
    return number(1 << 3) + number(9) + part(7, inner) + part(8, helper.make_opsetid("", 17).SerializeToString())


RELU = [node("Identity", "c", "go"), node("Relu", "v", "w")]


class HostileModels(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        (cls.folder / "beside.bin").write_bytes(bytes(64))
        (cls.folder / "link.bin").symlink_to("/etc/passwd")

    def compiled(self, made):
        path = self.folder / "model.onnx"
        path.write_bytes(made if isinstance(made, bytes) else made.SerializeToString())
        return mill.run_program("compile", path, "--opt-level", 0, "--target", "llvm -mcpu=core-avx2", "-o", self.folder / "out.tar")

    def refused(self, made, words, code=INPUT_IS_WRONG):
        done = self.compiled(made)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertRegex(done.stderr, f"^error: .*{words}")
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertLess(len(done.stderr), 2000)

    def test_loops(self):
        self.refused(loop(RELU, inputs="three yes y"), 'reads "y", which is made later')
        self.refused(loop([RELU[0], node("Add", "v w", "w")]), 'reads "w", which is made later')
        self.refused(loop([node("Relu", "v", "go"), RELU[1]]), r"cond is f32\[2,3\], expected one bool")
        self.refused(loop(RELU, constants=[("three", np.float32(3)), YES]), r"M is f32\[\], expected one i64")
        self.refused(loop(RELU, constants=[("three", np.array([3, 4])), YES]), r"M is i64\[2\], expected one i64")
        self.refused(loop(RELU, constants=[("three", np.array(["3"])), YES]), r"M is str\[.*\], expected one i64")
        self.refused(loop(RELU, constants=[THREE, ("yes", np.ones(2, bool))]), r"cond is bool\[2\], expected one bool")
        body = graph([], [("i", I, []), ("c", B, []), ("v", F, [2, 3])], [("c", B, [])])
        self.refused(model([node("Loop", "three yes x", "y", body=body)], [X], [Y], [THREE, YES]), "the body has 1 outputs")
        body = graph([], [("i", I, []), ("c", B, [])], [("c", B, []), ("i", I, [])])
        self.refused(model([node("Loop", "three yes x", "y", body=body)], [X], [Y], [THREE, YES]), "has 2 inputs, expected 3")

    def test_operands(self):
        """Too few operands, of too few axes, and lists that are too short."""
        self.refused(model([node("Add", "x", "y")], [X], [Y]), "the_node.*operand 1 is missing")
        self.refused(model([node("Concat", "", "y", axis=0)], [X], [Y]), "the_node.*a concat without operands")
        self.refused(model([node("MaxPool", "x", "y", kernel_shape=[2, 2])], [X], [Y]), r"the_node.*the input has shape \[2,3\]")
        self.refused(model([node("Transpose", "x", "y", perm=[0])], [X], [Y]), "the_node.*is no permutation")
        picture = [("x", F, [1, 1, 4, 4])]
        self.refused(model([node("MaxPool", "x", "y", kernel_shape=[2, 2], strides=[1])], picture, [Y]), "the_node.*strides has 1 values, expected 2")
        self.refused(model([node("MaxPool", "x", "y", kernel_shape=[2, 2], pads=[1])], picture, [Y]), "the_node.*pads has 1 values, expected 4")
        body = graph([node("Gather", "x three", "r")], [], [("yes", B, []), ("r", F, None)])
        self.refused(model([node("Loop", "three yes", "y", body=body)], [X], [Y], [THREE, YES]), "has 0 inputs, expected 2")

    def test_loops_that_grow(self):
        wider = [RELU[0], node("Concat", "v v", "w", axis=0)]
        self.refused(loop(wider, constants=[("three", np.array(100)), YES]), "needs more than [0-9]* bytes")

    def test_scans(self):
        self.refused(scan("x five"), "scan inputs have other lengths")
        self.refused(scan("x x", scan_input_axes=[0, 7]), r"axis 7 is outside of \[-2,2\)")
        self.refused(scan("x x", scan_input_axes=[0]), "scan_input_axes and scan_input_directions do not fit")
        self.refused(scan("x x", scan_output_axes=[9]), r"axis 9 is outside of \[-2,2\)")
        self.refused(scan("x x", num_scan_inputs=9), "num_scan_inputs is 9")
        self.refused(scan("one one"), r"axis 0 is outside of \[0,0\)")
        self.refused(scan("x x", body=3), "attribute body is no graph")

    def test_names_that_nothing_makes(self):
        relu = [node("Relu", "x", "a")]
        self.refused(branch("yes", [node("Add", "x ghost", "a")], relu), 'reads "ghost", which nothing makes')
        self.refused(branch("yes", [node("Add", "x y", "a")], relu), 'reads "y", which is made later|reads "y", which nothing makes')
        inner = branch("yes", relu, relu)
        inner.graph.node.append(node("Neg", "a", "z"))
        self.refused(inner, 'reads "a", which nothing makes')

    def test_branches(self):
        relu = [node("Relu", "x", "a")]
        # Of two types, a run takes one: the other is not what the model declares.
        self.assertRegex(self.compiled(branch("c", [node("Cast", "x", "a", to=I)], relu)).stderr, 'each run is interpreted.*"c"')
        feed = self.folder / "in.npz"
        for condition in (False, True):
            np.savez(feed, x=np.ones((2, 3), np.float32), c=np.bool_(condition))
            done = mill.run_program("run", self.folder / "out.tar", "-i", feed, "-o", self.folder / "out.npz")
            self.assertEqual(done.returncode, INPUT_IS_WRONG if condition else 0, done.stderr)
        self.assertIn("has other inputs or outputs than the package", done.stderr)
        self.refused(branch("c", relu, None), "attribute else_branch is no graph")
        self.refused(branch("x", relu, relu, [X]), r"cond is f32\[2,3\], expected one bool")

    def test_sparse_tensors(self):
        self.refused(sparse([2, 3], [1, 6]), r'tensor "sparse": index 6 of a sparse tensor of shape \[2,3\] is outside')
        self.refused(sparse([2, 3], [[0, 1], [2, 0]]), "index 2 of a sparse tensor")
        self.refused(sparse([2, 3], [-1, 2]), "index -1 of a sparse tensor")
        self.refused(sparse([2, 3], [1, 2, 3]), r"indices of shape \[3\] are no sparse tensor")
        self.refused(sparse([1 << 40, 1 << 40], [1, 2]), "has more than [0-9]* elements")
        self.refused(sparse([1 << 20, 1 << 20], [1, 2]), "sparse tensors of more than", NOT_SUPPORTED)

    def test_sequences(self):
        mixed = [node("Cast", "x", "n", to=I), node("SequenceConstruct", "x n", "s"), node("ConcatFromSequence", "s", "y", axis=0)]
        self.refused(model(mixed, [X], [Y]), "operand 1 is of i64, in a sequence of f32")
        made = node("SequenceConstruct", "x", "s")
        self.refused(model([made, node("SequenceAt", "s three", "y")], [X], [Y], [THREE]), "position 3 of a sequence of 1")
        self.refused(model([made, node("Relu", "s", "y")], [X], [Y]), "an operand is no tensor")
        self.refused(model([node("SequenceAt", "x three", "y")], [X], [Y], [THREE]), "operand 0 is no sequence")

    def test_strings_where_numbers_belong(self):
        text = ("t", np.array(["6"]))
        self.refused(model([node("Relu", "x", "y")], [("x", S, [2])], [("y", S, None)]), "the_node.*strings are not implemented", NOT_SUPPORTED)
        self.refused(model([node("Add", "x t", "y")], [X], [Y], [text]), "the_node.*strings are not implemented", NOT_SUPPORTED)
        self.refused(model([node("Reshape", "x t", "y")], [X], [Y], [text]), "operand 1 holds strings")
        self.refused(model([node("Gather", "x t", "y")], [("x", S, [2])], [("y", S, None)], [text]), "operand 1 holds strings")
        self.refused(model([node("Squeeze", "x t", "y")], [X], [Y], [text]), "operand 1 holds strings")
        self.refused(model([node("Concat", "x x", "y", axis="zero")], [X], [Y]), "attribute axis is no integer")
        self.refused(model([node("Transpose", "x", "y", perm=1)], [X], [Y]), "attribute perm is no list of integers")
        self.refused(model([node("LeakyRelu", "x", "y", alpha=1)], [X], [Y]), "attribute alpha is no float")

    def test_functions(self):
        again = node("A", "a", "b", domain="f")
        self.refused(calls([function("A", [again])]), 'function "A" calls itself')
        self.refused(calls([function("A", [node("B", "a", "b", domain="f")]), function("B", [again])]), 'function "A" calls itself')
        inside = graph([node("A", "a", "q", domain="f")], [], [("q", F, None)])
        chosen = [node("ReduceSum", "a", "r", keepdims=0), node("Cast", "r", "c", to=B),
                  node("If", "c", "b", then_branch=inside, else_branch=inside)]
        self.refused(calls([function("A", chosen)]), 'function "A" calls itself')
        self.refused(calls([function("A", [node("Relu", "c", "b"), node("Relu", "b", "c")])]), 'reads "c", which is made later')
        self.refused(calls([function("A", [node("Relu", "a", "b")])], "y z"), "function A has 1 outputs, not 2")
        self.refused(calls([function("A", [node("Relu", "a", "b")], "")]), "function A has 0 inputs, not 1|reads .a., which nothing makes")

    def test_functions_that_multiply(self):
        def twice(i):
            return [node(f"A{i}", "a", "c", domain="f"), node(f"A{i}", "c", "b", domain="f")]

        self.refused(calls([function("A", twice(0))] + [function(f"A{i}", twice(i + 1)) for i in range(30)] +
                           [function("A30", [node("Relu", "a", "b")])]), "more than 32768 calls", NOT_SUPPORTED)
        chain = [function("A" if i == 0 else f"A{i}", [node(f"A{i + 1}", "a", "b", domain="f")]) for i in range(2000)]
        self.refused(calls(chain + [function("A2000", [node("Relu", "a", "b")])]), "is inside more than 256 others")

    def test_nested_branches(self):
        self.assertEqual(self.compiled(nested(30)).returncode, 0)
        self.refused(nested(10000), "messages are nested deeper than 100")

    def test_files_beside_the_model(self):
        for location, words, numbers in (("../../etc/passwd", 'has a part that is empty, "." or ".."', {}), ("/etc/passwd", "is absolute", {}),
                                         ("none.bin", "cannot be opened", {}), ("link.bin", "cannot be opened", {}),
                                         ("beside.bin", 'ends outside of "beside.bin"', {"offset": 1 << 60, "length": 12}),
                                         ("beside.bin", 'offset is "-4"', {"offset": -4}),
                                         ("beside.bin", r"shape \[3\] needs 12 bytes, the data has 4", {"length": 4})):
            self.refused(external(location, **numbers), words)

    def test_a_link_out_of_the_models_folder_says_where_it_goes(self):
        self.refused(external("link.bin"), "it is a link to /etc/passwd, which is outside of the model's folder")
        (self.folder / "dangling.bin").symlink_to("nowhere.bin")
        self.refused(external("dangling.bin"), "it is a link to nowhere.bin: No such file")

    def test_a_location_may_begin_in_the_models_folder(self):
        for location in ("./three.bin", ".//inner/./four.bin"):
            path = self.folder / location
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(np.ones(3, np.float32).tobytes())
            self.assertEqual(self.compiled(external(location)).returncode, 0)
        for location in ("./../x.bin", "inner/../three.bin", ".", "./", "", "inner/"):
            self.refused(external(location), "external file name")

    def test_a_download_cache_of_links_into_one_folder(self):
        cache = self.folder / "cache"
        blobs, snapshot = cache / "blobs", cache / "snapshots/x"
        for folder in (blobs, snapshot / "sub"):
            folder.mkdir(parents=True)
        (blobs / "abc").write_bytes(external("model.onnx.data").SerializeToString())
        (blobs / "def").write_bytes(np.ones(3, np.float32).tobytes())
        (cache / "outside").write_bytes(np.ones(3, np.float32).tobytes())
        for folder, up in ((snapshot, "../.."), (snapshot / "sub", "../../..")):
            (folder / "model.onnx").symlink_to(f"{up}/blobs/abc")
            (folder / "model.onnx.data").symlink_to(f"{up}/blobs/def")
            for path in (folder / "model.onnx", Path(os.path.relpath(folder / "model.onnx", mill.ROOT))):
                done = mill.run_program("compile", path, "-O", 0, "-o", self.folder / "p.tar")
                self.assertEqual(done.returncode, 0, done.stderr)
        (snapshot / "model.onnx.data").unlink()
        (snapshot / "model.onnx.data").symlink_to("../../outside")
        done = mill.run_program("compile", snapshot / "model.onnx", "-O", 0, "-o", self.folder / "p.tar")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn(f"it is a link to {cache.resolve()}/outside, which is outside of the model's folder", done.stderr)
        self.assertIn(f"and of {blobs.resolve()}", done.stderr)

    def test_names_may_be_in_another_encoding_than_utf8(self):
        """As exporters write whose users' folders and layers have names of their own alphabet."""
        made = model([node("Add", "input weight", "output")], [("input", F, [2, 3])], [("output", F, [2, 3])],
                     [("weight", np.ones((2, 3), np.float32))]).SerializeToString()
        for name in (b"input", b"output", b"weight", b"the_node"):
            made = made.replace(name, name[:-2] + b"\xb2\xe3")
        path = self.folder / "gbk.onnx"
        path.write_bytes(made)
        done = mill.run_program("compile", path, "-o", self.folder / "gbk.tar")
        self.assertEqual(done.returncode, 0, done.stderr)
        done = mill.run_program("run", self.folder / "gbk.tar", "--fill-mode", "ones", "-o", self.folder / "gbk.npz")
        self.assertEqual(done.returncode, 0, done.stderr)
        with np.load(self.folder / "gbk.npz") as outputs:
            np.testing.assert_array_equal(outputs[r"outp\xb2\xe3"], np.full((2, 3), 2, np.float32))
        done = mill.run_program("show", path, "--json")
        self.assertIn(r'"inp\\xb2\\xe3"', done.stdout)

    def test_opsets(self):
        for opset in (99, 0, -5):
            self.refused(model([node("Relu", "x", "y")], [X], [Y], opset=opset), f"opset {opset} is outside of 1 to", NOT_SUPPORTED)

    def test_sizes(self):
        huge = np.array([1 << 21, 1 << 21])
        self.refused(model([node("Relu", "x", "y")], [("x", F, [1 << 40, 1 << 40])], [Y]), "has more than [0-9]* elements")
        self.refused(model([node("Tile", "x n", "y")], [X], [Y], [("n", huge)]), "tile .* needs more than [0-9]* bytes")
        self.refused(model([node("Pad", "x n", "y")], [X], [Y], [("n", np.array([0, 1 << 40, 0, 1 << 40]))]), "needs more than [0-9]* bytes")
        numbers = [("a", np.array(0)), ("b", np.array(1 << 40)), ("d", np.array(1))]
        self.refused(model([node("Range", "a b d", "n"), node("Cast", "n", "y", to=F)], [X], [Y], numbers), "the range has more than [0-9]* elements")


if __name__ == "__main__":
    unittest.main()
