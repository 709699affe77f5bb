"""Loops whose trips a run decides, of free length, and long ones."""

import json
import tarfile
import tempfile
import unittest
from pathlib import Path

import growth_models
import loop_models
import mill
import numpy as np
import onnx.parser
import scope


class Loops(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.path, self.package = self.folder / "model.onnx", self.folder / "module.tar"

    def compile(self, made, *options):
        self.path.write_bytes(made)
        mill.check_program(self, "compile", self.path, "-o", self.package, *options)

    def check(self, expected, what, tolerance=1e-5, **inputs):
        feed = self.folder / "in.npz"
        np.savez(feed, **inputs)
        actual = mill.run_package(self, self.package, feed, self.folder / "out.npz")
        named = dict(zip(actual, expected, strict=True))
        self.assertEqual(mill.compare.compare_sets(actual, named, tolerance), [], what)

    def plans(self):
        with tarfile.open(self.package) as archive:
            plan = json.load(archive.extractfile("mod.json"))
        return [plan] if "steps" in plan else [*(v["plan"] for v in plan["variants"]), *([plan["generic"]["plan"]] if "generic" in plan else [])]

    def loops(self, plan):
        return sum(step["function"] == "loop_begin" for step in plan["steps"])

    def test_data_decides_when_a_loop_ends(self):
        for level in (0, 3):
            self.compile(loop_models.collatz(), "--opt-level", level)
            for n in (0, 1, 2, 7, 27, 97):
                self.check(loop_models.collatz_of(n), n, n=np.int64(n))
            self.compile(loop_models.newton(50), "--opt-level", level)
            for x in ([1, 1, 1, 1], [2, 3, 1, 100], [1e-3, 5, 7, 1e4]):
                x = np.array(x, np.float32)
                self.check(loop_models.newton_of(x, 50), x, x=x)

    def test_a_bound_ends_it_first(self):
        self.compile(loop_models.newton(3))
        x = np.array([1e-3, 5, 7, 1e4], np.float32)
        self.check(loop_models.newton_of(x, 3), x, x=x)

    def test_an_input_says_how_often(self):
        x = np.array([0.3, -4, 2], np.float32)
        for level in (0, 3):
            self.compile(loop_models.repeated(), "--opt-level", level)
            for m in (0, 1, 2, 5, 80, -1):
                self.check(loop_models.repeated_of(m, x), m, m=np.int64(m), x=x)

    def test_loops_inside_loops(self):
        x = np.array([0.3, -0.4], np.float32)
        for level in (0, 3):
            self.compile(loop_models.nested(), "--opt-level", level)
            for m in (0, 1, 4):
                self.check(loop_models.nested_of(m, x), m, m=np.int64(m), x=x)

    def test_choices_inside_loops(self):
        x, w = np.array([0.5, -1, 2], np.float32), np.array([1.5, 0.5, 0.75], np.float32)
        for level in (0, 3):
            self.compile(loop_models.branching(), "--opt-level", level)
            for m in (0, 1, 2, 9):
                self.check(loop_models.branching_of(m, x, w), m, m=np.int64(m), x=x, w=w)

    def test_loops_inside_choices(self):
        self.compile(loop_models.chosen())
        for x in ([3, 40], [-3, 1], [0.25, 0.125]):
            x = np.array(x, np.float32)
            self.check(loop_models.chosen_of(x, np.float32(0.5)), x, x=x, bound=np.float32(0.5))

    def test_of_a_branch_that_is_not_taken_nothing_fails(self):
        self.compile(loop_models.chosen_or_endless())
        for step in (0.5, 0, -1, 1.5, 200):
            step = np.float32(step)
            self.check(loop_models.chosen_or_endless_of(step), step, step=step)

    def test_optional_values_are_handed_on(self):
        x, otherwise = np.random.default_rng(3).standard_normal((6, 2)).astype(np.float32), np.array([7, 8], np.float32)
        self.compile(growth_models.found())
        for m, bound in ((0, 0), (6, 1000), (6, 0), (6, -1000), (3, 1)):
            inputs = {"m": np.int64(m), "x": x, "bound": np.float32(bound), "otherwise": otherwise}
            self.check(growth_models.found_of(**inputs), (m, bound), **inputs)

    def test_lists_are_results(self):
        x = np.array([0.5, -1], np.float32)
        self.compile(growth_models.listed())
        for m, place in ((1, 0), (4, -1), (9, 3)):
            self.check(growth_models.listed_of(x, m, place), (m, place), x=x, m=np.int64(m), place=np.int64(place))
        for place in (4, -5):
            np.savez(self.folder / "in.npz", x=x, m=np.int64(4), place=np.int64(place))
            done = mill.run_program("run", self.package, "-i", self.folder / "in.npz", "-o", self.folder / "out.npz")
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("sequenceat", done.stderr)

    def test_steps_of_the_host_inside_loops(self):
        x = np.array([3, -1, 7.5, 2, 0.5], np.float32)
        self.compile(loop_models.host_steps())
        for m in (0, 1, 2, 40):
            self.check(loop_models.host_steps_of(m, x), m, m=np.int64(m), x=x)

    def test_what_is_handed_on_grows(self):
        rng = np.random.default_rng(2)
        inputs = {"k": rng.standard_normal((1, 2, 3)), "v": rng.standard_normal((1, 2, 2)), "x": rng.standard_normal((1, 1, 3))}
        inputs = {name: value.astype(np.float32) for name, value in inputs.items()}
        for level in (0, 3):
            self.compile(growth_models.cached(), "--opt-level", level)
            for bound in (0, 0.7, 1, 1000):
                self.check(growth_models.cached_of(**inputs, bound=bound), bound, **inputs, bound=np.float32(bound))

    def test_what_is_only_appended_to(self):
        r, x = np.array([[1, 2], [3, 4], [5, 6]], np.float32), np.array([0.5, -1], np.float32)
        c = np.array([7, 8], np.float32).reshape(2, 1, 1)
        for trips in (None, 100):
            for options in (("--input-shapes", "r:[3,2]"), ("--shape-buckets", "R=1,8")):
                self.compile(growth_models.collected(trips), *options)
                for m, bound in ((0, 9), (1, 9), (6, 9), (40, 9), (30, 0.2)) if trips is None else ((100, 9), (100, 0.2)):
                    inputs = {"r": r, "x": x, "c": c, "bound": np.float32(bound)}
                    given = {"m": np.int64(m)} if trips is None else {}
                    self.check(growth_models.collected_of(**inputs, m=m), (trips, options, m, bound), **inputs, **given)
        x, w = np.array([1, 2], np.float32), np.array([3, 4, 5], np.float32)
        self.compile(growth_models.collected_of_another())
        self.check(growth_models.collected_of_another_of(x, w), "of another", x=x, w=w)
        self.compile(growth_models.collected_unevenly())
        for m in (0, 3, 9):
            x = np.array([0.5, 3, 7, -2], np.float32)
            self.check(growth_models.collected_unevenly_of(x, m), m, x=x, m=np.int64(m))

    def test_tokens_are_appended(self):
        for options in (("--input-shapes", "prompt:[1,3]"), ("--shape-buckets", "N=3")):
            self.compile(growth_models.greedy(20), *options)
            for prompt in ([0, 1, 2], [3, 3, 5], [5, 4, 0], [2, 2, 2]):
                prompt = np.array([prompt])
                self.check(growth_models.greedy_of(prompt, 20), prompt, prompt=prompt)
        for length in (1, 2, 6):
            prompt = np.arange(length)[None] % 6
            self.check(growth_models.greedy_of(prompt, 20), prompt, prompt=prompt)

    def test_lists_grow(self):
        x = np.array([[0.5, -1], [2, 0.25]], np.float32)
        for options in ({}, {"new_axis": 1}, {"from_list": True}):
            self.compile(growth_models.appended(**options))
            for m in (1, 2, 7, 20):
                self.check(growth_models.appended_of(x, m, **options), (m, options), x=x, m=np.int64(m))
        for count in (3, 900):
            self.compile(growth_models.appended(count))
            self.check(growth_models.appended_of(x, count), count, x=x)
        self.assertEqual(self.loops(self.plans()[0]), 1)

    def test_lists_grow_by_an_extent(self):
        x = np.array([[0.5, -1], [2, 0.25]], np.float32)
        self.compile(growth_models.appended("rows"), "--shape-buckets", "T=3")
        for length in (1, 2, 3, 11):
            y = np.arange(length, dtype=np.float32)
            v, joined, last, count = growth_models.appended_of(x, length)
            self.check([v, joined + y.sum(), last, count], length, x=x, y=y)

    def test_lists_grow_and_shrink(self):
        x, w = np.array([0.5, -1], np.float32), np.array([0.3, 0.4], np.float32)
        self.compile(growth_models.queue())
        for m in (0, 1, 2, 3, 9, 20):
            self.check(growth_models.queue_of(x, w, m), m, x=x, w=w, m=np.int64(m))

    def test_lists_are_mapped(self):
        x = np.array([0.5, -1], np.float32)
        self.compile(growth_models.mapped())
        for m in (1, 4, 9):
            self.check(growth_models.mapped_of(x, m), m, x=x, m=np.int64(m))

    def recurrence_inputs(self, length, axes=(0, 1)):
        rng = np.random.default_rng(length)
        rows = [rng.standard_normal((length, width)).astype(np.float32) for width in (3, 2)]
        return {"h0": np.array([0.1, -0.2, 0.3], np.float32), "x": np.moveaxis(rows[0], 0, axes[0]), "y": np.moveaxis(rows[1], 0, axes[1])}

    def test_sequences_of_any_length(self):
        for options in ({}, {"axes": (1, 0), "reverse": (1, 0), "out_axes": (1, 0), "out_reverse": (0, 1)}):
            self.compile(loop_models.recurrence("T", **options), "--shape-buckets", "T=4")
            for length in (1, 2, 3, 4, 9, 300):
                inputs = self.recurrence_inputs(length, options.get("axes", (0, 1)))
                self.check(loop_models.recurrence_of(*inputs.values(), **options), length, **inputs)
            variant, generic = self.plans()
            self.assertEqual((self.loops(variant), self.loops(generic)), (0, 1))

    def test_batches_of_sequences_of_opset_8(self):
        rng = np.random.default_rng(8)
        for batch, length, looped in ((2, 4, 0), (3, 600, 2)):
            for reverse in (0, 1):
                self.compile(loop_models.batched_scan(batch, length, reverse))
                inputs = {"lengths": np.arange(batch) * (length // batch), "h0": rng.standard_normal((batch, 3)).astype(np.float32),
                          "x": rng.standard_normal((batch, length, 3)).astype(np.float32), "w": np.array([0.5, -1, 0.25], np.float32)}
                self.check(loop_models.batched_scan_of(**inputs, reverse=reverse), (batch, reverse), **inputs)
                self.assertEqual(self.loops(self.plans()[0]), looped)

    def test_batches_of_any_extents_of_opset_8(self):
        rng = np.random.default_rng(9)
        self.compile(loop_models.batched_scan("N", "T", has_lengths=False), "--shape-buckets", "N=2;T=3")
        for batch, length in ((2, 3), (1, 5), (4, 2)):
            inputs = {"h0": rng.standard_normal((batch, 3)).astype(np.float32), "x": rng.standard_normal((batch, length, 3)).astype(np.float32),
                      "w": np.array([0.5, -1, 0.25], np.float32)}
            self.check(loop_models.batched_scan_of([length] * batch, **inputs), (batch, length), **inputs)

    def test_as_many_rounds_as_rows(self):
        self.compile(loop_models.rounds_of_rows(), "--shape-buckets", "T=4")
        for length in (1, 2, 4, 31):
            x = np.random.default_rng(length).standard_normal((length, 4)).astype(np.float32)
            self.check(loop_models.rounds_of_rows_of(x), length, x=x)
        self.assertEqual(self.loops(self.plans()[-1]), 1)

    def test_as_many_steps_as_data_counts(self):
        """The steps of rows that data chooses, and what data chooses of their results."""
        text = """<ir_version: 8, opset_import: ["": 17]> counted (float[T, 4] x) => (float[4] s, float[K, 4] all, int64[J] late)
          <int64[1] flat = {-1}, int64 first = {0}, float bound = {0}, float[4] start = {0, 0, 0, 0}> {
          firsts = Gather<axis = 1>(x, first)
          above = Greater(firsts, bound)
          places = NonZero(above)
          list = Reshape(places, flat)
          rows = Gather(x, list)
          s, all = Scan(start, rows) <num_scan_inputs = 1, body = step (float[4] h, float[4] row) => (float[4] g, float[4] part) {
            g = Add(h, row)
            part = Relu(g)
          }>
          lasts = Gather<axis = 1>(all, first)
          some = Greater(lasts, bound)
          more = NonZero(some)
          late = Reshape(more, flat)
        }"""
        self.compile(onnx.parser.parse_model(text).SerializeToString())
        (plan,) = self.plans()
        self.assertEqual(self.loops(plan), 1)
        for length in (1, 7, 40, 3):
            for shift in (0, -100, 100):
                x = np.random.default_rng(length).standard_normal((length, 4)).astype(np.float32) + np.float32(shift)
                sums = np.cumsum(x[x[:, 0] > 0], axis=0, dtype=np.float32)
                wanted = [sums[-1] if len(sums) else np.zeros(4, np.float32), np.maximum(sums, 0), np.nonzero(sums[:, 0] > 0)[0]]
                self.check(wanted, (length, shift), x=x)

    def test_long_sequences(self):
        self.compile(loop_models.recurrence(900))
        inputs = self.recurrence_inputs(900)
        self.check(loop_models.recurrence_of(*inputs.values()), 900, **inputs)
        (plan,) = self.plans()
        self.assertEqual(self.loops(plan), 1)
        self.assertLess(len(plan["steps"]), 30)

    def test_loops_without_a_bound_make_what_the_run_says(self):
        x = np.array([0.25, -2], np.float32)
        self.compile(growth_models.growing())
        for m in (0, 1, 3, 4, 64, 65, 700, 2):
            self.check([np.tile(x, m + 1)], m, x=x, m=np.int64(m))
        self.compile(loop_models.unbounded_parts())
        for m in (0, 1, 65, 700):
            rows = [x]
            for _ in range(m):
                rows.append(np.tanh(rows[-1]))
            self.check([rows[-1], -np.array(rows[1:], np.float32).reshape(m, 2)], m, x=x, m=np.int64(m))
        # No guess at how many there are: one plan, without free dims.
        with tarfile.open(self.package) as archive:
            plans = json.load(archive.extractfile("mod.json"))
        self.assertEqual((plans["free_dims"], plans["variants"]), ([], []))

    def test_what_grows_is_read(self):
        draw = np.random.default_rng(5)
        for room in (0, 2):
            inputs = {"k": draw.standard_normal((1, 2, room, 3)), "v": draw.standard_normal((2, room, 3)), "x": draw.standard_normal((1, 2, 1, 3))}
            inputs = {name: value.astype(np.float32) for name, value in inputs.items()}
            for level in (0, 3):
                self.compile(growth_models.heads(400, room=room), "--opt-level", level)
                self.assertEqual(self.loops(self.plans()[0]), 1)
                self.check(growth_models.heads_of(**inputs, m=400), (room, level), 1e-4, **inputs)
                self.compile(growth_models.heads(room=room), "--opt-level", level)
                for m in scope.sampled((0, 1, 63, 64, 65, 200, 2000), 4):
                    self.check(growth_models.heads_of(**inputs, m=m), (room, level, m), 1e-4, **inputs, m=np.int64(m))
        # Sums of 10,000 terms in the step's kernel pass their check.
        self.compile(growth_models.heads(10_000, room=2))
        self.check(growth_models.heads_of(**inputs, m=10_000), 10_000, 1e-3, **inputs)
        # Data ends it, before and after there has been room for as many.
        self.compile(growth_models.heads(np.iinfo(np.int64).max, ends=True, room=2))
        expected = growth_models.heads_of(**inputs, m=300)[3]
        trips = set()
        for bound in (-9, *np.quantile(expected, (0.5, 0.9, 0.97, 0.995))):
            wanted = growth_models.heads_of(**inputs, m=10_000, bound=np.float32(bound))
            trips.add(len(wanted[3]))
            self.check(wanted, bound, 1e-4, **inputs, bound=np.float32(bound))
        self.assertGreater(max(trips), 64)

    def test_data_decides_by_how_much_a_value_grows(self):
        self.compile(growth_models.uneven())
        for n, x in ((0, [3, 1, 2]), (20, [3, 1, 2]), (200, [0.5, -1, 1]), (900, [0.5, 2, 1])):
            inputs = {"n": np.int64(n), "x": np.array(x, np.float32)}
            self.check(growth_models.uneven_of(**inputs), n, **inputs)

    def test_decoders_end_when_data_says_so_alone(self):
        self.compile(growth_models.greedy(None), "--input-shapes", "prompt:[1,N]")
        for prompt in ([[1]], [[0, 3]], [[5, 2, 4]]):
            prompt = np.array(prompt)
            for limit in (0, 60, 69, 300):
                expected = growth_models.greedy_of(prompt, max(limit - prompt.shape[1], 1), None)
                self.check(expected, (prompt, limit), prompt=prompt, limit=np.int64(limit))
        draw = np.random.default_rng(8)
        inputs = {"k": draw.standard_normal((1, 2, 3)), "v": draw.standard_normal((1, 2, 2)), "x": draw.standard_normal((1, 1, 3))}
        inputs = {name: value.astype(np.float32) for name, value in inputs.items()}
        self.compile(growth_models.cached(most=np.iinfo(np.int64).max))
        for bound in (0, 1, 1.2, 1.5):
            self.check(growth_models.cached_of(**inputs, bound=bound, most=10_000), bound, **inputs, bound=np.float32(bound))

    def test_what_is_handed_on_doubles(self):
        x = np.float32([3, 4])
        for most in (9, None):
            self.compile(growth_models.doubled(most))
            self.assertEqual(self.loops(self.plans()[0]), 1)
            for trips in (0, 1, 5, 12):
                count = trips if most is None else min(trips, most)
                self.check([np.tile(x, 2**count)], (most, trips), m=np.int64(trips), x=x)


if __name__ == "__main__":
    unittest.main()
