"""Tuning from the command line: records, their use by compile, an end in the middle, and what is refused."""

import json
import signal
import subprocess
import tarfile
import tempfile
import unittest
from pathlib import Path

import made_models
import mill
import numpy as np
from onnx import TensorProto, helper, numpy_helper

SHAPES = ["--input-shapes", "input:[1,1,28,28]"]

# Where a product of a matrix by itself is above 0.
FOUND = """graph "found" dims() run_dims (run0: 5 from 0 to "1600") (%t: f32[40,24]) {
  %gram: f32[40,40] = matmul(%t, %t) {transpose_b: 1} from ["gram"]
  %zero = const f32[1] {0.0}
  %above: bool[40,40] = greater(%gram, %zero) from ["above"]
  %places: i64[2,1600], %count: i64[1] = find_nonzero(%above) from ["places"]
  %bound: i64[1] = bind_extents(%count) {extents: dims[run0]} from ["places"]
  %there: i64[2,run0] = slice(%places) {extents: dims[2, run0], starts: dims[0, 0], steps: ints[1, 1]} from ["there"]
  return %gram, %there
}
"""


class Tune(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.model = mill.generated("mlp")
        self.records = self.folder / "records.json"

    def command(self, *words):
        return [str(mill.PROGRAM), *(str(word) for word in words)]

    def run_ok(self, *words):
        done = subprocess.run(self.command(*words), capture_output=True, text=True, timeout=mill.PROGRAM_LIMIT_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def tune(self, trials, *options):
        return self.command(
            "tune", self.model, *SHAPES, "-o", self.records, "--trials", trials, "--min-repeat-ms", "1", *options
        )

    def kernels(self, *options, shapes=SHAPES):
        package = self.folder / "module.tar"
        self.run_ok("compile", self.model, *shapes, "-o", package, *options)
        with tarfile.open(package) as archive:
            return json.load(archive.extractfile("metadata.json"))["kernels"]

    def test_records_are_written_and_used(self):
        done = subprocess.run(self.tune(12, "--tuner", "random", "--json"), capture_output=True, text=True, timeout=mill.PROGRAM_LIMIT_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        lines = [json.loads(line) for line in self.records.read_text().splitlines()]
        self.assertGreaterEqual(len(lines), report["trials"])
        self.assertTrue(all(line["result"][1] == 0 for line in lines), lines)
        self.assertLessEqual(report["best_ms"], report["default_ms"])
        network = report["network"]
        self.assertTrue(network["tuned"] or network["left_out"], network)
        self.assertGreater(min(network["untuned_ms"], network["tuned_ms"]), 0)
        for part in network["left_out"]:
            last = [line for line in lines if line["task_key"] == part["key"]][-1]
            self.assertTrue(last["config"]["default"] and last["config"]["final"], last)
        tuned = self.kernels("--tuning-records", self.records)
        self.assertEqual({kernel["task_key"] for kernel in tuned}, {line["task_key"] for line in lines})
        self.assertTrue(all(kernel["tuning_record"] and not kernel["tuning_reason"] for kernel in tuned), tuned)
        self.assertTrue(all(kernel["tuning_reason"] == "no records given" for kernel in self.kernels()))

    def test_steps_that_do_not_apply_are_named(self):
        subprocess.run(self.tune(4, "--json"), check=True, capture_output=True, timeout=mill.PROGRAM_LIMIT_S)
        lines = [json.loads(line) for line in self.records.read_text().splitlines()]
        kept = [line["schedule"] for line in lines]
        for line in lines:
            line["schedule"] = ["split s0 i99 4"]
        self.records.write_text("".join(json.dumps(line) + "\n" for line in lines))
        for kernel in self.kernels("--tuning-records", self.records):
            self.assertEqual(kernel["tuning_record"], "")
            self.assertIn("i99", kernel["tuning_reason"])
        self.check_damage([{**line, "schedule": steps} for line, steps in zip(lines, kept)])

    def compile_with(self, lines):
        self.records.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return subprocess.run(
            self.command("compile", self.model, *SHAPES, "--tuning-records", self.records, "-o", self.folder / "x.tar"),
            capture_output=True, text=True, timeout=mill.PROGRAM_LIMIT_S,
        )

    def check_damage(self, lines):
        """Damaged records are left out with a warning, however late the damage shows; where none is left it is an error."""
        def damaged(line):
            # Each step applies, but registers need loops that are unrolled.
            return {**line, "schedule": [step for step in line["schedule"] if not step.startswith("unroll")]}

        late = next(line for line in lines if line["schedule"] != damaged(line)["schedule"])
        others = [line for line in lines if line is not late]
        no_step = {**others[0], "schedule": ["spli s0 i0 4"]}
        no_time = {**others[1], "result": [[0.0, 0.0], 0, 1.0, 1.0]}
        done = self.compile_with([damaged(late), no_step, no_time, *others[2:]])
        self.assertEqual(done.returncode, 0, done.stderr)
        for part in ("line 2: line 1: no primitive 'spli'", "line 3: a time of result is 0", "its steps make no kernel"):
            self.assertIn(part, done.stderr)
        self.assertEqual(done.stderr.count("warning: "), 3, done.stderr)
        for left in ([damaged(late)], [no_step, no_time]):
            (self.folder / "x.tar").unlink(missing_ok=True)
            done = self.compile_with(left)
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertRegex(done.stderr, "error: .*no (record is left|line is a record)")
            self.assertFalse((self.folder / "x.tar").exists())

    def test_a_killed_run_goes_on_where_it_was(self):
        process = subprocess.Popen(
            self.tune(40, "--tuner", "random"), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        self.assertTrue(any(line.startswith("trials 4/") for line in process.stderr), "the defaults were not measured")
        process.send_signal(signal.SIGKILL)
        process.stderr.close()
        process.wait()
        before = len(self.records.read_text().splitlines())
        self.assertGreaterEqual(before, 4)
        done = subprocess.run(self.tune(40, "--tuner", "random", "--json"), capture_output=True, text=True, timeout=mill.PROGRAM_LIMIT_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [json.loads(line) for line in self.records.read_text().splitlines()]
        searched = [(line["task_key"], tuple(line["schedule"])) for line in lines if not line["config"]["final"]]
        self.assertEqual(len(searched), len(set(searched)), "a trial was made twice")
        self.assertEqual(len(searched), json.loads(done.stdout)["trials"])

    def test_tasks_are_listed_and_chosen(self):
        tasks = json.loads(
            self.run_ok("tune", self.model, *SHAPES, "--tasks", "list", "--min-repeat-ms", "1", "--json")
        )
        self.assertTrue(all(task["default_ms"] > 0 for task in tasks), tasks)
        self.assertAlmostEqual(sum(task["share"] for task in tasks), 1)
        self.assertEqual([task["task"] for task in tasks], list(range(len(tasks))))
        self.assertTrue(all(task["calls"] >= 1 and task["bytes"] > 0 for task in tasks), tasks)
        subprocess.run(self.tune(3, "--tasks", "1", "--json"), check=True, capture_output=True, timeout=mill.PROGRAM_LIMIT_S)
        keys = {json.loads(line)["task_key"] for line in self.records.read_text().splitlines()}
        self.assertEqual(keys, {tasks[1]["key"]})

    def test_what_comes_before_extents_of_a_run_is_tuned(self):
        """A model whose data decides an extent has kernels that do not depend on it: they have tasks and take records, and so do the others."""
        self.model = self.folder / "found.tmg"
        self.model.write_text(FOUND)
        listed = self.run_ok("show", self.model, "--tasks")
        self.assertIn("f32[40,24] -> f32[40,40]", listed)
        self.assertRegex(listed, r"any_\S+ 1 i64\[2,1600\] -> i64\[2,run0\]")
        done = subprocess.run(
            self.command("tune", self.model, "-o", self.records, "--trials", 6, "--min-repeat-ms", "1", "--tuner", "random", "--json"),
            capture_output=True, text=True, timeout=mill.PROGRAM_LIMIT_S,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(json.loads(done.stdout)["network"]["untuned_ms"] > 0, done.stdout)
        keys = {json.loads(line)["task_key"] for line in self.records.read_text().splitlines()}
        kernels = {kernel["task_key"]: kernel for kernel in self.kernels("--tuning-records", self.records, shapes=[])}
        self.assertTrue(keys and keys <= set(kernels), (keys, kernels))
        self.assertTrue(all(kernels[key]["tuning_record"] for key in keys), kernels)
        # Those whose extents the run decides are tasks, too.
        symbols = {kernels[key]["symbol"] for key in keys}
        self.assertEqual({symbol.startswith("any_") for symbol in symbols}, {True, False}, symbols)

    def test_kernels_of_all_extents_are_tuned(self):
        """A free dim: measured at the extents that are named, and taken by a compile of the model, not of another one."""
        def product(columns):
            path = self.folder / f"product{columns}.tmg"
            path.write_text(
                f'graph "product" dims(N: 24) (%x: f32[N,40], %w: f32[40,{columns}]) {{\n'
                f'  %y: f32[N,{columns}] = matmul(%x, %w) from ["y"]\n  return %y\n}}\n'
            )
            return path

        self.model = product(48)
        (listed,) = json.loads(self.run_ok("show", self.model, "--tasks", "--json"))
        self.assertEqual(listed["args"], "f32[N,40] f32[40,48] -> f32[N,48]")
        rows = next(knob for knob in listed["knobs"] if knob["name"] == "rows")
        self.assertIn(rows["default"], rows["candidates"])
        self.assertIn(f" rows={rows['default']}", self.run_ok("show", self.model, "--tasks"))
        done = subprocess.run(
            self.command("tune", self.model, "--extents", "N=24,60", "-o", self.records, "--trials", 8,
                         "--min-repeat-ms", "1", "--tuner", "random", "--json"),
            capture_output=True, text=True, timeout=mill.PROGRAM_LIMIT_S,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        self.assertTrue(all(not task["failures"] for task in report["tasks"]), report)
        self.assertGreater(report["network"]["untuned_ms"], 0)
        self.assertEqual(report["network"]["extents"], [{"N": 24}, {"N": 60}])
        records = [json.loads(line) for line in self.records.read_text().splitlines()]
        self.assertTrue(all("choose " in step for record in records for step in record["schedule"]), records)
        self.assertTrue(all("f32[60,48]" in record["input"][2] for record in records), records)
        kernels = self.kernels("--tuning-records", self.records, shapes=[])
        self.assertTrue(all(kernel["tuning_record"] for kernel in kernels), kernels)
        self.assertEqual({record["task_key"] for record in records}, {listed["key"]})
        self.assertLessEqual({listed["key"]}, {kernel["task_key"] for kernel in kernels})
        self.model = product(56)
        others = self.kernels("--tuning-records", self.records, shapes=[])
        self.assertFalse(any(kernel["tuning_record"] for kernel in others), others)
        refused = subprocess.run(
            self.command("tune", self.model, "--extents", "M=4", "-o", self.folder / "other.json"),
            capture_output=True, text=True, timeout=mill.PROGRAM_LIMIT_S,
        )
        self.assertEqual(refused.returncode, 3, refused.stderr)
        self.assertIn("no free dim M", refused.stderr)

    def test_sketches_are_searched_beside_the_template(self):
        done = subprocess.run(
            self.tune(24, "--enable-autoscheduler", "--tuner", "random", "--json"),
            capture_output=True,
            text=True,
            timeout=mill.PROGRAM_LIMIT_S,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [json.loads(line) for line in self.records.read_text().splitlines()]
        kinds = {value for line in lines for name, _, value in line["config"]["entity"] if name == "sketch"}
        self.assertEqual(kinds, {0, 1})
        self.assertFalse([line for line in lines if line["result"][1] in (4, 5)], "crashed, or gave a wrong answer")
        self.kernels("--tuning-records", self.records)

    def test_algorithms_of_a_layer_are_alternatives(self):
        random = np.random.default_rng(1)
        # Weights beside the convolution's make room for transformed ones.
        constants = [("w", [16, 16, 3, 3]), ("beside", [12, 1200])]
        nodes = [helper.make_node("Conv", ["input", "w"], ["c"], pads=[1, 1, 1, 1]),
                 helper.make_node("MatMul", ["c", "beside"], ["y"])]
        self.model = self.folder / "conv.onnx"
        self.model.write_bytes(made_models.model_of(
            nodes, [("input", TensorProto.FLOAT, [1, 16, 12, 12])], [("y", TensorProto.FLOAT, [1, 16, 12, 1200])],
            [numpy_helper.from_array(random.standard_normal(shape, dtype=np.float32), name) for name, shape in constants],
        ))
        shapes = ["--input-shapes", "input:[1,16,12,12]"]

        def tune():
            command = self.command(
                "tune", self.model, *shapes, "-o", self.records, "--trials", 12, "--min-repeat-ms", "1",
                "--tuner", "random", "--json",
            )
            done = subprocess.run(command, capture_output=True, text=True, timeout=mill.PROGRAM_LIMIT_S)
            self.assertEqual(done.returncode, 0, done.stderr)
            lines = [json.loads(line) for line in self.records.read_text().splitlines()]
            return json.loads(done.stdout), [line for line in lines if not line["config"]["final"]]

        report, lines = tune()
        layers = {line["algorithm"]: line["layer"] for line in lines if "layer" in line}
        self.assertEqual(set(layers), {"direct", "F(2,3)", "F(4,3)"})
        self.assertEqual(set(layers.values()), {line["task_key"] for line in lines if line.get("algorithm") == "direct"})
        self.assertLessEqual(report["best_ms"], report["default_ms"])
        again, same = tune()
        self.assertEqual((again["trials"], len(same)), (report["trials"], len(lines)), "all trials were known")
        conv = [kernel for kernel in self.kernels("--tuning-records", self.records, shapes=shapes)
                if "algorithm" in kernel]
        self.assertEqual([kernel["algorithm_reason"] for kernel in conv], ["records"])
        self.assertTrue(conv[0]["tuning_record"], conv)
        rule = [kernel for kernel in self.kernels(shapes=shapes) if "algorithm" in kernel]
        self.assertEqual([kernel["algorithm_reason"] for kernel in rule], ["rule"])

    def test_garbage_is_refused_with_its_line(self):
        self.records.write_text("\n{}\n")
        done = subprocess.run(
            self.command("compile", self.model, *SHAPES, "--tuning-records", self.records, "-o", self.folder / "x.tar"),
            capture_output=True,
            text=True,
        )
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("line 2", done.stderr)


if __name__ == "__main__":
    unittest.main()
