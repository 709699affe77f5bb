"""Lists whose elements have several shapes, or whose lengths a run works out, beside ONNX Runtime or numpy."""

import tempfile
import unittest
from pathlib import Path

import mill
import numpy as np
import sequence_models
from onnx import TensorProto, helper


def boxes_of(rng, n):
    corners = rng.uniform(0, 10, (n, 2))
    return np.concatenate([corners, corners + rng.uniform(1, 6, (n, 2))], axis=1).astype(np.float32)


class SequenceChecks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.path, self.package = self.folder / "model.onnx", self.folder / "module.tar"
        self.rng = np.random.default_rng(31)

    def some(self, *shape):
        return self.rng.standard_normal(shape).astype(np.float32)

    def compile(self, made, *options):
        self.path.write_bytes(made)
        mill.check_program(self, "compile", self.path, "-o", self.package, *options)

    def run_model(self, feed):
        np.savez(self.folder / "in.npz", **feed)
        return mill.run_package(self, self.package, self.folder / "in.npz", self.folder / "out.npz")

    def check_values(self, feed, expected, what=None, tolerance=1e-5):
        actual = self.run_model(feed)
        self.assertEqual(set(actual), set(expected), what)
        self.assertEqual(mill.compare.compare_sets(actual, expected, tolerance), [], what)

    def check_reference(self, name, feeds, shapes="", text=None):
        """Beside ONNX Runtime, without and with optimization."""
        text = text or getattr(sequence_models, name)
        for level in (0, 3):
            options = ("--input-shapes", shapes) if shapes else ()
            self.compile(sequence_models.model(text), *options, "--opt-level", level)
            for i, feed in enumerate(feeds):
                np.savez(self.folder / "ref_in.npz", **feed)
                mill.alive.ort_run(str(self.path), str(self.folder / "ref_in.npz"), str(self.folder / "ref.npz"))
                self.check_values(feed, mill.load_npz(self.folder / "ref.npz"), (name, level, i))

    def check_kernels(self, text):
        """No shape is interpreted."""
        self.path.write_bytes(sequence_models.model(text))
        done = mill.run_program("compile", self.path, "-o", self.package)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def check_fails(self, feed, *words):
        np.savez(self.folder / "in.npz", **feed)
        done = mill.run_program("run", self.package, "-i", self.folder / "in.npz", "-o", self.folder / "out.npz")
        self.assertNotEqual(done.returncode, 0)
        for word in words:
            self.assertIn(word, done.stderr)


class Sequences(SequenceChecks):
    def test_parts_as_large_as_data_says(self):
        feeds = [{"x": self.some(9), "bounds": self.some(4), "place": np.int64(place)} for place in (0, 1, -1, -3)]
        self.check_reference("FOUND", feeds, "bounds:[4]")
        self.check_reference("FOUND", [*feeds, {"x": self.some(9), "bounds": self.some(30), "place": np.int64(-29)}], "bounds:[R]")
        self.check_fails({"x": self.some(9), "bounds": self.some(4), "place": np.int64(4)}, "SequenceAt")

    def test_detections_of_each_class(self):
        feeds = [{"boxes": boxes_of(self.rng, 12), "scores": self.rng.uniform(0, most, (3, 12)).astype(np.float32)} for most in (1, 0.35, 0.2)]
        self.check_reference("DETECTIONS", feeds, "boxes:[12,4] scores:[3,12]")
        other = {"boxes": boxes_of(self.rng, 30), "scores": self.rng.uniform(0, 1, (7, 30)).astype(np.float32)}
        self.check_reference("DETECTIONS", [*feeds, other], "boxes:[N,4] scores:[C,N]")
        self.check_reference("DETECTIONS", [*feeds, other], "boxes:[N,4] scores:[C,N]",
                             sequence_models.DETECTIONS.replace("most = Constant<value = int64[1] {5}>", "most = Constant<value = int64[1] {100000}>"))

    def test_lists_side_by_side(self):
        feeds = [{"x": self.some(3, 7, 2), "scores": self.some(3, 7), "bound": np.float32(bound)} for bound in (0, 9, -9)]
        self.check_reference("PAIRS", feeds, "x:[3,7,2] scores:[3,7]")
        self.check_reference("PAIRS", [*feeds, {"x": self.some(20, 7, 2), "scores": self.some(20, 7), "bound": np.float32(0.3)}],
                             "x:[R,7,2] scores:[R,7]")

    def test_as_many_of_one_as_of_the_other(self):
        x = np.arange(-4, 4).astype(np.float32)
        self.check_reference("SUMS", [{"x": x, "y": np.array(y, np.float32)} for y in ([1, 2, 3, -1, -1], [5, 6, -1, -1, 7])])
        for y in ([1, 2, -3, -1, -1], [1, 2, 3, 4, -1]):
            self.check_fails({"x": x, "y": np.array(y, np.float32)}, "axis -1 of an operand of ", " elements meets one of ")

    def test_elements_of_several_shapes(self):
        self.check_reference("PLACES", [{"a": self.some(2, 3), "b": self.some(4, 3), "c": self.some(1, 3), "place": np.int64(place)}
                                        for place in (0, 1, 2, -1, -3)])
        self.check_reference("CHOSEN", [{"a": self.some(2, 3), "b": self.some(4, 3), "which": np.bool_(which), "w": self.some(3)}
                                        for which in (False, True)])

    def test_parts_of_given_lengths(self):
        self.check_reference("LENGTHS", [{"x": self.some(10, 2), "lengths": np.array(lengths)}
                                         for lengths in ([3, 3, 4], [0, 10, 0], [1, 0, 9])])
        for lengths in ([3, 3, 3], [3, 3, 5], [-1, 6, 5], [1 << 62, 1 << 62, 10]):
            self.check_fails({"x": self.some(10, 2), "lengths": np.array(lengths)}, "SplitToSequence")
        text = sequence_models.LENGTHS.replace("float[10,2] x", "float[T,2] x")
        self.check_reference("LENGTHS", [{"x": self.some(sum(lengths), 2), "lengths": np.array(lengths)}
                                         for lengths in ([3, 3, 4], [0, 12, 0], [1, 0, 29])], "x:[T,2]", text)
        feeds = [{"x": self.some(10), "size": np.int64(size), "lengths": np.array(lengths)} for size, lengths in
                 ((1, [1, 2, 3, 4, 0]), (3, [5, 0, 5, 0, 0]), (10, [9, 0, 0, 0, 1]), (20, [2, 2, 2, 2, 2]))]
        self.check_reference("SIZES", feeds)
        for size in (0, -3):
            self.check_fails({**feeds[0], "size": np.int64(size)}, "SplitToSequence")

    def test_elements_grow(self):
        self.check_reference("BEAMS", [{"rounds": np.int64(n), "choice": self.rng.integers(0, 3, 8)} for n in (0, 1, 5, 8)], "choice:[8]")
        text = sequence_models.BEAMS.replace(" trips = Min(rounds, most)", " trips = Identity(rounds)")
        self.check_reference("BEAMS", [{"rounds": np.int64(n), "choice": self.rng.integers(0, 3, 90)} for n in (0, 1, 8, 80)], "choice:[R]", text)

    def test_what_is_there_so_far(self):
        self.check_reference("SO_FAR", [{"x": self.some(3), "steps": self.some(5)}], "steps:[5]")
        self.check_reference("SO_FAR", [{"x": self.some(3), "steps": self.some(n)} for n in (1, 2, 9)], "steps:[R]")

    def test_stacked_parts_as_long_as_data_says(self):
        feeds = [{"x": self.some(6), "factors": self.some(4), "bound": np.float32(bound)} for bound in (0, 9, -9)]
        self.check_reference("STACKED", feeds, "factors:[4]")
        self.check_reference("STACKED", [*feeds, {"x": self.some(6), "factors": self.some(11), "bound": np.float32(0.3)}], "factors:[R]")

    def test_parts_that_do_not_fit_together(self):
        text = sequence_models.FOUND.replace("joined = ConcatFromSequence<axis=0>(l_all)", "joined = ConcatFromSequence<axis=0, new_axis=1>(l_all)")
        for shapes in ("bounds:[3]", "bounds:[R]"):
            self.compile(sequence_models.model(text), "--input-shapes", shapes)
            x = np.arange(9, dtype=np.float32)
            feed = {"x": x, "bounds": np.array([3.5, 3.2, 3.9], np.float32), "place": np.int64(0)}
            actual = self.run_model(feed)
            np.testing.assert_array_equal(actual["joined"], x[:4] + feed["bounds"][:, None])
            self.check_fails({**feed, "bounds": np.array([3.5, 2.5, 3.5], np.float32)}, "ConcatFromSequence")

    def test_results_that_data_decides_about(self):
        x, bounds = self.some(5, 2), np.array([0, 0.7, 9], np.float32)
        self.compile(sequence_models.model(sequence_models.RESULTS, 18))
        for m, limit in ((3, 9), (2, -9), (0, 9), (1, 9)):
            parts = [x[x[:, 0] < bound] for bound in bounds[:m]]
            largest = max((len(part) for part in parts), default=0)
            padded = np.zeros((m, largest, 2), np.float32)
            for row, part in zip(padded, parts, strict=True):
                row[:len(part)] = part
            found = x.max() < limit
            expected = {"l_parts": padded, "l_parts.extents": np.array([part.shape for part in parts], np.int64).reshape(m, 2),
                        "l_known/0": x[:2, 0], "l_known/1": x[2:, 0], "o_row": x[0] if found else np.zeros(2, np.float32),
                        "o_row.present": np.bool_(found), "l_rows": x[:m]}
            self.check_values({"x": x, "bounds": bounds, "limit": np.float32(limit), "m": np.int64(m)}, expected, (m, limit))

    def test_lists_in_branches_and_in_lists(self):
        feeds = [{"x": self.some(5, 6), "bound": np.float32(bound)} for bound in (0, 1, 9)]
        self.check_reference("SOME_ROWS", feeds, "x:[5,6]")
        self.check_reference("SOME_ROWS", [*feeds, {"x": self.some(60, 6), "bound": np.float32(0.5)}], "x:[R,6]")
        feeds = [{"x": self.some(2, 3, 4), "bounds": self.some(2)} for _ in range(2)]
        self.check_reference("NESTED", feeds, "x:[2,3,4] bounds:[2]")
        self.check_reference("NESTED", [*feeds, {"x": self.some(5, 20, 4), "bounds": self.some(5)}], "x:[B,R,4] bounds:[B]")

    def test_optional_lists(self):
        x, y = self.some(2), self.some(3)
        self.compile(sequence_models.model(sequence_models.MAYBE_LIST, 18))
        for wanted, place in ((True, 0), (True, -1), (False, 0)):
            actual = self.run_model({"x": x, "y": y, "wanted": np.bool_(wanted), "place": np.int64(place)})
            self.assertEqual(bool(actual["has"]), wanted)
            np.testing.assert_array_equal(actual["got"], [x, y][place] if wanted else y)
        self.compile(sequence_models.model(sequence_models.MAYBE_LIST.replace("=> (bool has", "=> (float[K] q_list, bool has"), 18))
        for wanted in (True, False):
            actual = self.run_model({"x": x, "y": y, "wanted": np.bool_(wanted), "place": np.int64(0)})
            self.assertEqual((bool(actual["has"]), bool(actual["q_list.present"])), (wanted, wanted))
            for name, array in (("q_list/0", x), ("q_list/1", y)):
                np.testing.assert_array_equal(actual[name], array if wanted else np.zeros_like(actual[name]))

    def test_optional_values_as_large_as_data_says(self):
        x = self.some(6, 2)
        self.compile(sequence_models.model(sequence_models.FIRST_FOUND, 18))
        for bound, m in ((0, 6), (-3, 6), (9, 6), (0.5, 6), (0, 0), (0, 2)):
            found = next((row for row in x[:m, 0] if row > bound), None)
            expected = {"has": np.bool_(found is not None), "got": x if found is None else x[x[:, 0] >= found]}
            self.check_values({"x": x, "bound": np.float32(bound), "m": np.int64(m)}, expected, (bound, m))

    def test_elements_of_other_types_are_named(self):
        for op, text in (("SequenceInsert", " l_a = SequenceConstruct(x)\n l_b = SequenceInsert(l_a, n)\n y = SequenceLength(l_b)"),
                         ("SequenceConstruct", " l_a = SequenceConstruct(x, n)\n y = SequenceLength(l_a)")):
            self.path.write_bytes(sequence_models.model("g (float[2] x, int64[2] n) => (int64 y) {\n" + text + "\n}"))
            done = mill.run_program("compile", self.path, "-o", self.package)
            self.assertNotEqual(done.returncode, 0)
            for word in (op, "i64", "f32"):
                self.assertIn(word, done.stderr)


class Words(SequenceChecks):
    """Lists of strings: numpy says what comes out."""

    def check_words(self, nodes, inputs, outputs, feed, expected):
        graph = helper.make_graph(nodes, "words", [helper.make_tensor_value_info(*each) for each in inputs],
                                  [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs])
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
        made.ir_version = 8
        self.compile(made.SerializeToString())
        for values in feed:
            np.savez(self.folder / "in.npz", **values)
            actual = mill.run_package(self, self.package, self.folder / "in.npz", self.folder / "out.npz")
            wanted = expected(**values)
            self.assertEqual(set(actual), set(wanted))
            for name, value in wanted.items():
                np.testing.assert_array_equal(actual[name], value, str(values))

    def test_places_that_a_run_says(self):
        text, number = TensorProto.STRING, TensorProto.INT64
        nodes = [helper.make_node("SequenceConstruct", ["x", "y", "x"], ["l"]),
                 helper.make_node("SequenceAt", ["l", "place"], ["at"]),
                 helper.make_node("SequenceInsert", ["l", "at", "place"], ["more"]),
                 helper.make_node("ConcatFromSequence", ["more"], ["joined"], axis=0),
                 helper.make_node("SequenceErase", ["l", "place"], ["less"]),
                 helper.make_node("ConcatFromSequence", ["less"], ["rest"], axis=0)]

        def expected(x, y, place):
            parts = [x, y, x]
            more = [*parts[:place], parts[place], *parts[place:]]
            return {"at": parts[place], "joined": np.concatenate(more), "rest": np.concatenate(parts[:place] + parts[place + 1:])}

        feed = [{"x": np.array(["fig", "日本"]), "y": np.array(["", "Größe", "x" * 30]), "place": np.int64(place)} for place in (0, 1, 2)]
        self.check_words(nodes, [("x", text, [2]), ("y", text, [3]), ("place", number, [])],
                         [(name, text) for name in ("at", "joined", "rest")], feed, expected)

    def test_parts_of_given_lengths(self):
        text, number = TensorProto.STRING, TensorProto.INT64
        nodes = [helper.make_node("SplitToSequence", ["x", "lengths"], ["l"], axis=0),
                 helper.make_node("SequenceAt", ["l", "place"], ["at"]),
                 helper.make_node("SequenceInsert", ["l", "at"], ["more"]),
                 helper.make_node("ConcatFromSequence", ["more"], ["joined"], axis=0)]

        def expected(x, lengths, place):
            parts = np.split(x, np.cumsum(lengths)[:-1])
            return {"at": parts[place], "joined": np.concatenate([*parts, parts[place]])}

        x = np.array(["a", "bc", "", "def", "gg"])
        feed = [{"x": x, "lengths": np.array(lengths), "place": np.int64(place)} for lengths, place in (([2, 3], 0), ([5, 0], 0), ([1, 4], 1))]
        self.check_words(nodes, [("x", text, [5]), ("lengths", number, [2]), ("place", number, [])],
                         [(name, text) for name in ("at", "joined")], feed, expected)

    def test_each_row_is_repeated(self):
        """As torch writes repeat_interleave: lists of the rows and of how often each comes, a list that grows of what they become."""
        self.check_kernels(sequence_models.REPEATED)
        for times in ([1, 2, 0, 3], [1], [0, 0], [4] * 9, [0, 1] * 50):
            x = self.some(len(times), 3)
            self.check_values({"x": x, "times": np.array(times)}, {"y": np.repeat(x, times, axis=0)}, times)

    def test_rows_that_are_repeated_are_read(self):
        """Of lists that loops let grow by parts as long as a run says: elements, places, other lists, and what an iteration sees of them."""
        self.check_reference("REPEATED_READS", [{"x": self.some(len(times), 3), "times": np.array(times), "place": np.int64(place)}
                                                for times, place in (([1, 2, 0, 3], 2), ([1], 0), ([0, 0], -1), ([4] * 9, 5), ([0, 1] * 50, 99))])
        self.check_kernels(sequence_models.REPEATED_READS)
        self.check_fails({"x": self.some(2, 3), "times": np.array([1, 1]), "place": np.int64(3)}, "Sequence", "3 in a sequence of")

    def test_pairs_of_rows_are_repeated(self):
        """Of lists that grow with a free dim the other one is twice as long."""
        text = sequence_models.REPEATED.replace("float[N,3] x", "float[M,3] x").replace("SplitToSequence<axis=0>(x, ones)",
                                                                                      "SplitToSequence<axis=0>(x, twos)")
        text = text.replace(" l_rows", " two = Constant<value = int64[1] {2}>()\n twos = Mul(ones, two)\n l_rows", 1)
        text = text.replace("higher = Unsqueeze(row, one)", "last = Constant<value = int64[1] {2}>()\n   higher = Unsqueeze(row, last)")
        self.check_kernels(text.replace("Concat<axis=0>(one, own, wide)", "Concat<axis=0>(one, wide, own)"))
        for times in ([1, 2, 0, 3], [1], [4] * 9):
            x = self.some(len(times), 2, 3)
            expected = np.concatenate([np.repeat(x[i, :, :, None], n, axis=2).reshape(-1, 3) for i, n in enumerate(times)])
            self.check_values({"x": x.reshape(-1, 3), "times": np.array(times)}, {"y": expected}, times)

    def test_words_are_collected_in_a_loop(self):
        text, number = TensorProto.STRING, TensorProto.INT64
        listed = helper.make_tensor_sequence_value_info
        body = helper.make_graph(
            [helper.make_node("Identity", ["go"], ["on"]), helper.make_node("Gather", ["x", "i"], ["word"], axis=0),
             helper.make_node("StringConcat", ["word", "x"], ["own"]),
             helper.make_node("Equal", ["word", "x"], ["same"]), helper.make_node("Compress", ["own", "same"], ["kept"], axis=0),
             helper.make_node("SequenceInsert", ["all", "kept"], ["longer"])],
            "each", [helper.make_tensor_value_info("i", number, []), helper.make_tensor_value_info("go", TensorProto.BOOL, []),
                     listed("all", text, None)],
            [helper.make_tensor_value_info("on", TensorProto.BOOL, []), listed("longer", text, None)])
        nodes = [helper.make_node("SequenceEmpty", [], ["none"], dtype=text), helper.make_node("Loop", ["m", "", "none"], ["all_of"], body=body),
                 helper.make_node("ConcatFromSequence", ["all_of"], ["joined"], axis=0), helper.make_node("SequenceLength", ["all_of"], ["n"])]

        def expected(x, m):
            return {"joined": np.array([word + word for word in x[:m] for other in x if other == word]), "n": np.int64(m)}

        feed = [{"x": np.array(["fig", "", "fig", "pear"]), "m": np.int64(m)} for m in (1, 3, 4)]
        least = [helper.make_node("Constant", [], ["four"], value=helper.make_tensor("four", number, [], [4])),
                 helper.make_node("Min", ["m", "four"], ["trips"])]
        nodes[1].input[0] = "trips"
        self.check_words([*least, *nodes], [("x", text, [4]), ("m", number, [])], [("joined", text), ("n", number)], feed, expected)


if __name__ == "__main__":
    unittest.main()
