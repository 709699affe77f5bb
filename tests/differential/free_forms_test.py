"""Models of free dims at shapes without kernels of their own, beside ONNX Runtime."""

import itertools
import tempfile
import unittest

import free_branches  # noqa: F401
import free_dependents  # noqa: F401
import free_exports  # noqa: F401
import free_limits  # noqa: F401
import free_networks  # noqa: F401
import free_slices  # noqa: F401
import free_runs  # noqa: F401
import free_spread  # noqa: F401
import free_weights  # noqa: F401
import numpy as np
import sweep
import scope  # (sweep adds its folder)
from free_forms import MODELS, FreeBuilder


# A branch demands something, and data decides how long the result is: imported at samples still.
SAMPLED = ("places_that_there_are", "places_that_nobody_looks_for")


class FreeForms(unittest.TestCase):
    def answer(self, run, name, shape):
        """Ours, which is the peer's, for the form at the shape, from a package without a variant of it."""
        make, dims, _, opset, values = MODELS[name]
        buckets = ";".join(f"{dim}={extent}" for dim, extent in dims.items()) if isinstance(dims, dict) else "*"
        builder = FreeBuilder(opset, dict(zip(dims, shape, strict=True)), values)
        make(builder)
        model, feed, ours, peer = (run.folder / file for file in ("model.onnx", "in.npz", "ours.npz", "peer.npz"))
        model.write_bytes(builder.free_model().SerializeToString())
        sweep.cases.save(feed, builder.feed)
        answers = run.own.ask(f"{model} {feed} {ours} 3 {buckets}"), run.ask_peer(model, feed, peer)
        with self.subTest(name, shape=shape):
            self.assertEqual(run.compare(builder, *answers), ("equal", ""))
        return answers[0]

    def test_shapes_without_a_variant_are_served(self):
        with tempfile.TemporaryDirectory() as folder:
            run = sweep.Sweep(folder)
            self.addCleanup(run.close)
            for name, (_, _, shapes, _, _) in scope.sampled(MODELS.items(), 40):
                for shape in scope.sampled(shapes, 2):
                    answer = self.answer(run, name, shape)
                    with self.subTest(name, shape=shape):
                        self.assertTrue(name in SAMPLED or answer.endswith(" symbolic"), answer)

    def test_what_shapes_compute_is_of_one_import(self):
        """Counts of float ranges, depths, middles, places of maxima, products of bounds, and a dim that may be 1 beside a number."""
        names = ("ranges", "codes_of_two_depths", "middles", "places_undone_in_odd_maps", "pools_to_a_grid", "a_row_for_all_rows_of_weights")
        with tempfile.TemporaryDirectory() as folder:
            run = sweep.Sweep(folder)
            self.addCleanup(run.close)
            for name in names:
                for shape in MODELS[name][2][:2]:
                    with self.subTest(name, shape=shape):
                        self.assertRegex(self.answer(run, name, shape), " 1 symbolic$")

    def test_sizes_that_floats_make_have_a_plan(self):
        """Sums of as many minima as a detector has levels, and what is chosen of them in the run."""
        with tempfile.TemporaryDirectory() as folder:
            run = sweep.Sweep(folder)
            self.addCleanup(run.close)
            for shape in MODELS["detectors_that_scale_pictures"][2]:
                self.assertRegex(self.answer(run, "detectors_that_scale_pictures", shape), " symbolic$")

    def test_what_a_run_decides_is_of_one_import(self):
        """Counts of what is chosen, of what was chosen of that, none of them, and numbers as shapes, ends, sizes and k."""
        names = [name for name, (make, *_) in MODELS.items() if make.__module__ == "free_runs"]
        self.assertEqual(len(names), 13)
        with tempfile.TemporaryDirectory() as folder:
            run = sweep.Sweep(folder)
            self.addCleanup(run.close)
            for name in names:
                for shape in MODELS[name][2]:
                    with self.subTest(name, shape=shape):
                        self.assertRegex(self.answer(run, name, shape), " 1 symbolic$")

    def test_branches_are_of_one_import(self):
        """Of a condition of the run, or of extents; each form that free_branches has, and exporters' decoders in one. A shape with
        kernels of its own is imported once more where a run decides about extents."""
        names = [name for name, (make, *_) in MODELS.items() if make.__module__ == "free_branches" and name not in SAMPLED]
        names += ["one_row_takes_another_branch", "merged_decoders_with_a_cache", "merged_decoders_without_a_cache"]
        with tempfile.TemporaryDirectory() as folder:
            run = sweep.Sweep(folder)
            self.addCleanup(run.close)
            for name in names:
                for shape in MODELS[name][2][-2:]:
                    with self.subTest(name, shape=shape):
                        self.assertRegex(self.answer(run, name, shape), " [12] symbolic$" if "merged" in name else " 1 symbolic$")

    def test_what_a_branch_demands_is_refused_where_it_is_taken(self):
        """With the node and both numbers; rows_that_need_not_meet is the same model where it is not."""
        make, dims, *_ = MODELS["rows_side_by_side"]
        with tempfile.TemporaryDirectory() as folder:
            run = sweep.Sweep(folder)
            self.addCleanup(run.close)
            builder = FreeBuilder(17, {"N": 7, "M": 5}, {"use": lambda rng, shape: np.ones(shape, bool)})
            make(builder)
            model, feed, ours = (run.folder / file for file in ("model.onnx", "in.npz", "ours.npz"))
            model.write_bytes(builder.free_model().SerializeToString())
            sweep.cases.save(feed, builder.feed)
            answer = run.own.ask(f"{model} {feed} {ours} 3 " + ";".join(f"{dim}={extent}" for dim, extent in dims.items()))
            self.assertRegex(answer, r'the branch that is taken does not take .*node ".*Concat.*": M \(5\) has to be == N \(7\)')

    def test_sequences_over_a_free_axis_are_one_tensor(self):
        """With the extents of each part where they differ; the peer gives no sequences."""

        def parts_of(size, keepdims=1):
            def make(b):
                sizes = [] if size is None else [b.const(size, np.int64)]
                b.outputs = [b.node("SplitToSequence", [b.input("x", ["N", 4]), *sizes], keepdims=keepdims)]
            return make

        def longer(b):
            rows = b.node("SplitToSequence", [b.input("x", ["N", 4])])
            b.outputs = [b.node("SequenceInsert", [rows, b.const(np.ones((1, 4)), "f4"), b.const(0, np.int64)]), b.node("SequenceLength", [rows])]

        def by_twos(x):
            starts = range(0, len(x), 2)
            whole = np.zeros((len(starts), min(2, len(x)), 4), "f4")
            for i, start in enumerate(starts):
                whole[i, : len(x[start : start + 2])] = x[start : start + 2]
            return [whole, np.array([[len(x[start : start + 2]), 4] for start in starts], np.int64).reshape(-1, 2)]

        forms = {"rows": (parts_of(None), lambda x: [x[:, None]]), "dropped": (parts_of(None, 0), lambda x: [x]),
                 "twos": (parts_of(2), by_twos),
                 "longer": (longer, lambda x: [np.concatenate([np.ones((1, 1, 4), "f4"), x[:, None]]), np.array(len(x))])}
        with tempfile.TemporaryDirectory() as folder:
            run = sweep.Sweep(folder)
            self.addCleanup(run.close)
            for (name, (make, expected)), buckets, n in itertools.product(forms.items(), ("*", "N=4"), (0, 1, 2, 3, 4, 7)):
                if name == "longer" and n == 0:
                    continue  # The extent of 0 is refused.
                builder = FreeBuilder(17, {"N": n}, {})
                make(builder)
                model, feed, ours = (run.folder / file for file in ("model.onnx", "in.npz", "ours.npz"))
                model.write_bytes(builder.free_model().SerializeToString())
                sweep.cases.save(feed, builder.feed)
                with self.subTest(name, n=n, buckets=buckets):
                    answer = run.own.ask(f"{model} {feed} {ours} 3 {buckets}")
                    self.assertTrue(answer.startswith("ok"), answer)
                    actual, wanted = sweep.read(ours), expected(builder.feed["x"])
                    self.assertEqual([each.shape for each in actual], [each.shape for each in wanted])
                    for own, other in zip(actual, wanted):
                        np.testing.assert_array_equal(own, other)


if __name__ == "__main__":
    unittest.main()
