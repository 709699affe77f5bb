"""Models whose runs are interpreted, with sequences and optional values among their outputs and inputs: from the command line and
through the server. What they give are the tensors that packages with kernels give for them."""

import json
import tempfile
import unittest
from pathlib import Path

import mill
import numpy as np
import sequence_models
import serving

# A run says of what shape the rows are, so that nothing is planned before it.
LISTS = """lists (float[N, 24] x, int64[4] s, int64[P] lengths, bool has) => (float[R, 24] l_parts, float[A, B, C, D] l_even, float l_any,
                                                                                 float[24] l_none, float[24] o_row, float[R, 24] q_parts, float[N, 24] y) {
 zero = Constant<value = int64 {0}>()
 r = Reshape(x, s)
 rows = Shape<start = 0, end = 1>(r)
 length = Shape<start = 1, end = 2>(r)
 all = Expand(length, rows)
 d = ReverseSequence<batch_axis = 0, time_axis = 1>(r, all)
 whole = Shape(x)
 y = Reshape(d, whole)
 l_parts = SplitToSequence<axis = 0>(y, lengths)
 l_even = SequenceConstruct(d, d)
 top = ReduceMax<keepdims = 0>(y)
 l_any = SequenceConstruct(top, top, top)
 l_none = SequenceEmpty()
 row = Gather<axis = 0>(y, zero)
 o_row = If (has) <then_branch = t () => (float[24] o_t) { o_t = Optional(row) },
   else_branch = e () => (float[24] o_e) { o_e = Optional() }>
 q_parts = If (has) <then_branch = t2 () => (float[R, 24] q_t) { q_t = Optional(l_parts) },
   else_branch = e2 () => (float[R, 24] q_e) { q_e = Optional() }>
}"""

# As many elements as input_shapes say, and what an optional value holds, as values of a run.
TAKEN = """taken (int64[K] l_shapes, float[24] x, float[2] o_y, int64 place) => (float l_made, float[2] o_twice, bool holds) {
 shape = SequenceAt(l_shapes, place)
 r = Reshape(x, shape)
 rows = Shape<start = 0, end = 1>(r)
 length = Shape<start = 1, end = 2>(r)
 all = Expand(length, rows)
 d = ReverseSequence<batch_axis = 0, time_axis = 1>(r, all)
 l_made = SequenceConstruct(r, d)
 o_twice = Identity(o_y)
 holds = OptionalHasElement(o_y)
}"""


def turned(x, shape):
    return x.reshape(shape)[:, ::-1]


def stacked(parts):
    """The elements behind each other with zeros behind each, and their extents."""
    shapes = np.array([part.shape for part in parts], np.int64)
    padded = np.zeros((len(parts), *shapes.max(0)), np.float32)
    for row, part in zip(padded, parts, strict=True):
        row[tuple(map(slice, part.shape))] = part
    return padded, shapes


def expected(x, shape, lengths, has):
    d = turned(x, shape)
    y = d.reshape(x.shape)
    parts, extents = stacked(np.split(y, np.cumsum(lengths)[:-1]))
    none = np.zeros((0, 0, 24), np.float32), np.zeros((0, 2), np.int64)
    kept, kept_extents = (parts, extents) if has else none
    return {
        "l_parts": parts, "l_parts.extents": extents, "l_even": np.stack([d, d]), "l_even.extents": np.array([d.shape] * 2),
        "l_any": np.full(3, x.max()), "l_any.extents": np.zeros((3, 0), np.int64), "l_none": np.zeros((0, 24), np.float32),
        "l_none.extents": np.zeros((0, 1), np.int64), "o_row": y[0] if has else np.zeros(24, np.float32), "o_row.present": np.bool_(has),
        "q_parts": kept, "q_parts.extents": kept_extents, "q_parts.present": np.bool_(has), "y": y}


RUNS = [(4, (4, 4, 2, 3), (1, 3), True), (4, (1, 8, 4, 3), (1, 1, 2), False), (6, (2, 12, 1, 6), (6,), True), (2, (2, 4, 2, 3), (0, 2), False)]


def inputs_of(rows, shape, lengths, has):
    x = np.random.default_rng(1).uniform(-1, 1, (rows, 24)).astype(np.float32)
    return {"x": x, "s": np.array(shape, np.int64), "lengths": np.array(lengths, np.int64), "has": np.bool_(has)}


class Sequences(unittest.TestCase):
    def check(self, actual, wanted):
        self.assertEqual(sorted(actual), sorted(wanted))
        for name, value in wanted.items():
            self.assertEqual(np.asarray(actual[name]).dtype, value.dtype, name)
            np.testing.assert_array_equal(actual[name], value, name)

    def check_lists(self, actual, inputs):
        wanted = expected(inputs["x"], inputs["s"], inputs["lengths"], inputs["has"])
        if not inputs["has"]:
            # Whether the branch is known is the import's: of what is not there nothing is promised but that.
            for name in ("o_row", "q_parts", "q_parts.extents"):
                self.assertFalse(np.any(actual.pop(name)) and not name.endswith("extents"), name)
                wanted.pop(name)
        self.check(actual, wanted)


class InterpretedSequences(Sequences):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.package = self.folder / "module.tar"

    def compile(self, text, *options):
        path = self.folder / "model.onnx"
        path.write_bytes(sequence_models.model(text, 18))
        done = mill.run_program("compile", path, *options, "-o", self.package)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("there are no kernels, and each run is interpreted", done.stderr)

    def run_on(self, inputs):
        feed = self.folder / "in.npz"
        np.savez(feed, **inputs)
        return mill.run_package(self, self.package, feed, self.folder / "out.npz")

    def test_outputs(self):
        self.compile(LISTS)
        shown = {each["name"]: each["shape"] for each in json.loads(mill.check_program(self, "show", self.package, "--json"))["outputs"]}
        self.assertEqual(list(shown), list(expected(**dict(zip(("x", "shape", "lengths", "has"), inputs_of(*RUNS[0]).values())))))
        self.assertEqual((shown["l_parts"], shown["l_parts.extents"], shown["l_even"]), (["", "", 24], ["", 2], [""] * 5))
        self.assertEqual((shown["l_any"], shown["o_row.present"], shown["q_parts"]), ([""], [], ["", "", 24]))
        for run in RUNS:
            with self.subTest(run=run):
                inputs = inputs_of(*run)
                self.check_lists(self.run_on(inputs), inputs)

    def test_some_outputs_alone(self):
        self.compile(LISTS, "--outputs", "l_parts,o_row")
        inputs = inputs_of(*RUNS[0])
        wanted = expected(inputs["x"], inputs["s"], inputs["lengths"], True)
        self.check(self.run_on(inputs), {name: wanted[name] for name in ("l_parts", "l_parts.extents", "o_row", "o_row.present")})

    def test_inputs(self):
        x = np.arange(24, dtype=np.float32)
        shapes = {"l_shapes/0": np.array([1, 4, 2, 3], np.int64), "l_shapes/1": np.array([2, 4, 3, 1], np.int64)}
        y = np.array([1, 2], np.float32)
        self.compile(TAKEN, "--input-shapes", "l_shapes/0:[4] l_shapes/1:[4] o_y/0:[2]")
        for place in (0, 1, -2):
            shape = shapes[f"l_shapes/{place % 2}"]
            made, extents = stacked([x.reshape(shape), turned(x, shape)])
            wanted = {"l_made": made, "l_made.extents": extents, "o_twice": y, "o_twice.present": np.bool_(True), "holds": np.bool_(True)}
            self.check(self.run_on({**shapes, "x": x, "o_y/0": y, "place": np.int64(place)}), wanted)
        self.compile(TAKEN, "--input-shapes", "l_shapes/0:[4]", "--input-values", '{"o_y": null}')
        actual = self.run_on({"l_shapes/0": shapes["l_shapes/1"], "x": x, "place": np.int64(0)})
        self.assertEqual((bool(actual["o_twice.present"]), bool(actual["holds"]), actual["o_twice"].any()), (False, False, False))


class InterpretedSequencesBehindHttp(Sequences):
    @classmethod
    def setUpClass(cls):
        cls.server = serving.make_server(cls)
        answer = cls.server.upload("lists", sequence_models.model(LISTS, 18))
        assert answer.status == 201, answer.body
        cls.package = cls.server.compile("lists", {})
        answer = cls.server.deploy("lists", cls.package, version="1")
        assert answer.status == 201, answer.body

    def test_arrays(self):
        for run in RUNS:
            inputs = inputs_of(*run)
            for answer in (self.server.infer("lists", inputs), self.server.run(self.package, inputs)):
                self.assertEqual(answer.status, 200, answer.body)
                self.check_lists(serving.from_npz(answer.body), inputs)

    def test_kserve(self):
        kinds = {"float32": "FP32", "int64": "INT64", "bool": "BOOL"}
        inputs = inputs_of(*RUNS[0])
        tensors = [{"name": name, "datatype": kinds[str(value.dtype)], "shape": list(value.shape), "data": value.ravel().tolist()}
                   for name, value in inputs.items()]
        answer = self.server.send_json("POST", "/v2/models/lists/infer", {"inputs": tensors})
        self.assertEqual(answer.status, 200, answer.body)
        outputs = {output["name"]: output for output in answer.json()["outputs"]}
        for name, value in expected(inputs["x"], inputs["s"], inputs["lengths"], True).items():
            self.assertEqual(outputs[name]["shape"], list(value.shape), name)
            np.testing.assert_array_equal(np.array(outputs[name]["data"]).reshape(value.shape), value, name)


if __name__ == "__main__":
    unittest.main()
