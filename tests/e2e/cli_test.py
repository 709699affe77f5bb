"""What the command line answers to what is wrong, and what it prints: exit codes, one line, the place."""

import json
import os
import stat
import subprocess
import tempfile
import unittest
from pathlib import Path

import numpy as np
from onnx import TensorProto

import made_models
import mill

DIGITS = mill.ROOT / "tests/models/digits.onnx"
SHAPES = ["--input-shapes", "image:[1,1,28,28]"]


class CommandLine(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        cls.package = cls.folder / "digits.tar"
        done = mill.run_program("compile", DIGITS, *SHAPES, "-o", cls.package, "--opt-level", 1)
        assert done.returncode == 0, done.stderr

    def refused(self, code, words, *args):
        """`args` end with the exit code; stderr is one line that has the words."""
        done = mill.run_program(*args)
        self.assertEqual(done.returncode, code, f"{args}: {done.stderr}")
        self.assertTrue(done.stderr.startswith("error: "), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for word in [words] if isinstance(words, str) else words:
            self.assertIn(word, done.stderr)

    def compile_is_refused(self, code, words, *args):
        self.refused(code, words, "compile", DIGITS, *SHAPES, "-o", self.folder / "not.tar", *args)
        self.assertEqual(list(self.folder.glob("not.tar*")), [])

    def test_wrong_lines(self):
        self.refused(2, ['"compyle"', "compile"], "compyle", DIGITS)
        self.refused(2, "command is missing")
        self.refused(2, "MODEL", "compile")
        self.compile_is_refused(2, "--no-such", "--no-such")
        self.compile_is_refused(2, "--opt-level", "--opt-level", "5")
        self.compile_is_refused(2, "--threads", "--threads", "-1")
        self.compile_is_refused(2, '"nothing"', "--disabled-pass", "nothing")
        self.compile_is_refused(2, "nothing", "--dump-code", "relay,nothing")
        self.refused(2, "--seed", "run", self.package, "--seed", "-1")

    def test_numbers_of_no_elements(self):
        """Of operands that are one number."""
        x, none, zero = ("x", TensorProto.FLOAT, [8]), np.zeros(0, np.int64), np.zeros((), np.int64)
        for op, inputs, output, constants, words in (
                ("TopK", [x], ("y", TensorProto.FLOAT, None), [("k", none)], "k has 0 elements"),
                ("CumSum", [x], ("y", TensorProto.FLOAT, [8]), [("axis", none)], "axis has 0 elements"),
                ("Range", [], ("y", TensorProto.INT64, None), [("a", zero), ("b", none), ("c", zero)],
                 "limit has 0 elements")):
            model = self.folder / f"{op}.onnx"
            model.write_bytes(made_models.one_node_model(op, inputs, output, constants))
            self.refused(3, [op, words], "compile", model, "-o", self.folder / "not.tar")

    def test_wrong_targets(self):
        self.compile_is_refused(2, ["-mcpu", '"z80"', "skylake"], "--target", "llvm -mcpu=z80")
        self.compile_is_refused(2, '"-speed"', "--target", "llvm -speed=9")
        self.compile_is_refused(2, "JSON", "--target", '{"kind":')
        self.compile_is_refused(4, "cuda", "--target", "cuda")
        self.compile_is_refused(3, "none.json", "--target", "none.json")
        self.compile_is_refused(2, ["mcpu", "twice"], "--target", "llvm -mcpu=skylake", "--target-llvm-mcpu", "znver3")

    def test_options_of_the_target(self):
        for target in ([], ["--target", "llvm"], ["--target", '{"kind":"llvm"}']):
            done = mill.check_program(self, "--json", "compile", DIGITS, *SHAPES, *target, "--target-llvm-mcpu", "skylake",
                                      "--target-llvm-num-cores", "3", "--opt-level", "0", "-o", self.folder / "t.tar")
            self.assertIn("-mcpu=skylake", json.loads(done)["target"])
            self.assertIn("-num-cores=3", json.loads(done)["target"])

    def test_outputs_that_cannot_be_written_are_found_first(self):
        missing = self.folder / "none" / "x"
        self.refused(2, str(missing), "compile", DIGITS, *SHAPES, "-o", missing)
        self.refused(2, str(self.folder), "compile", DIGITS, *SHAPES, "-o", self.folder)
        self.refused(2, str(missing), "run", self.package, "-o", missing)
        self.refused(2, str(missing), "run", self.package, "--profile", missing)
        # Before the model is looked at.
        self.refused(2, str(missing), "tune", "none.onnx", "-o", missing)
        self.refused(2, str(self.folder), "tune", "none.onnx", "-o", self.folder)
        self.refused(2, "-o RECORDS.json", "tune", "none.onnx")
        for command in (["import", "none.onnx"], ["report", "none.onnx", "--inputs", "none.npz"], ["detect", "none.tar", "none.png"]):
            self.refused(2, str(missing), *command, "-o", missing)
        # Before an item is leased, and before one is done.
        self.refused(2, str(missing), "worker", "--server", "http://127.0.0.1:1", "--key-file", DIGITS, "--verbs", "run", "--take", missing)
        self.refused(2, str(missing), "worker", "--batch", "none", "--signing-key", "none", "--result", missing)
        # Before a registry is asked: nobody listens there.
        self.refused(2, str(missing), "pull", "127.0.0.1:1/team/digits:v1", "-o", missing)
        self.refused(2, str(self.folder), "pull", "127.0.0.1:1/team/digits:v1", "-o", self.folder)
        self.refused(2, str(missing), "keys", "--keys-file", missing, "add", "bob", "--scopes", "read")
        dump = self.folder / "dumped.tar"
        Path(f"{dump}.te").mkdir()
        self.refused(2, f"--dump-code {dump}.te", "compile", DIGITS, *SHAPES, "-o", dump, "--dump-code", "te")
        self.assertFalse(dump.exists())

    def test_a_device_is_written_and_stays(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        with subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE) as reader:
            mill.check_program(self, "run", self.package, "-o", pipe, "--fill-mode", "ones")
            self.assertEqual(reader.stdout.read(2), b"PK")
        self.assertTrue(stat.S_ISFIFO(pipe.stat().st_mode))
        link = self.folder / "link"
        link.symlink_to("/dev/null")
        mill.check_program(self, "run", self.package, "-o", link)
        self.assertTrue(link.is_symlink())

    def test_wrong_inputs_name_their_file(self):
        torn, text = self.folder / "torn.tar", self.folder / "text.npz"
        torn.write_bytes(self.package.read_bytes()[:50_000])
        text.write_text("no archive")
        self.refused(3, "none.onnx", "compile", "none.onnx")
        self.refused(3, "text.npz", "compile", text, *SHAPES)
        self.refused(3, ["torn.tar", "mod.params"], "run", torn)
        self.refused(3, "torn.tar", "show", torn)
        self.refused(3, "digits.onnx", "run", DIGITS)
        self.refused(3, "text.npz", "run", self.package, "-i", text)
        pipe = self.folder / "input-pipe"
        os.mkfifo(pipe)
        for args in (["compile", pipe], ["run", pipe], ["show", pipe], ["run", self.package, "-i", pipe]):
            self.refused(3, "input-pipe", *args)
        self.refused(3, '"other"', "run", self.package, "--outputs", "other")

    def test_wrong_tensors(self):
        image = np.zeros((1, 1, 28, 28), np.float32)
        for words, tensors in [("[1,1,28,27]", {"image": image[..., :27]}), ("float64", {"image": image.astype("f8")}),
                               ('"picture"', {"picture": image}), ('"image"', {}), ("|O", {"image": np.array([{}])})]:
            path = self.folder / "wrong.npz"
            np.savez(path, **tensors)
            self.refused(3, words, "run", self.package, "-i", path)

    def test_numbers_outside_their_range(self):
        """At every door of the command line: nothing wraps, nothing becomes a name."""
        large, model = "99999999999999999999", self.folder / "add.onnx"
        for dtype, array, values in ((TensorProto.INT8, np.int8, (300, -129, 1.5, "1")), (TensorProto.UINT64, np.uint64, (-1, 1 << 64)),
                                     (TensorProto.FLOAT, np.float32, (1e39, True)), (TensorProto.FLOAT16, np.float16, (65520,)),
                                     (TensorProto.INT64, np.int64, (1 << 63, 1e3))):
            made = made_models.one_node_model("Add", [("x", dtype, [2])], ("y", dtype, [2]), [("c", np.ones(2, array))])
            model.write_bytes(made)
            for value in values:
                words = ["input_values", '"x"'] if isinstance(value, str) else ["input_values", '"x"', "element 1"]
                self.refused(2, words, "compile", model, "--input-values", json.dumps({"x": [1, value]}), "-o", self.folder / "not.tar")
            self.refused(2, large, "compile", model, "--input-shapes", f"x:[{large}]", "-o", self.folder / "not.tar")
            self.refused(2, "-" + large, "compile", model, "--input-shapes", f"x:[-{large}]", "-o", self.folder / "not.tar")
        self.compile_is_refused(2, "--opt-level", "--opt-level", large)
        self.compile_is_refused(2, "-num-cores", "--target", f"llvm -num-cores={large}")
        self.compile_is_refused(2, "num-cores", "--target", json.dumps({"kind": "llvm", "num-cores": -1}))
        self.refused(2, "--seed", "run", self.package, "--seed", "18446744073709551616")
        self.refused(2, "--repeat", "run", self.package, "--repeat", large)
        self.refused(2, "--seed", "tune", model, "--seed", large, "-o", self.folder / "not.json")

    def test_bytes_that_are_no_values(self):
        """numpy takes any byte for a bool."""
        model, package, data = self.folder / "cast.onnx", self.folder / "cast.tar", self.folder / "cast.npz"
        made = made_models.one_node_model("Cast", [("x", TensorProto.BOOL, [3])], ("y", TensorProto.FLOAT, [3]),
                                          to=TensorProto.FLOAT)
        model.write_bytes(made)
        mill.check_program(self, "compile", model, "-o", package, "--opt-level", 1)
        np.savez(data, x=np.array([0, 1, 2], np.uint8).view(bool))
        self.refused(3, ['"x"', "element 2 is byte 2"], "run", package, "-i", data)

    def test_what_is_not_there_yet_is_named(self):
        for option, value in [("--mixed-precision", "bf16")]:
            self.compile_is_refused(4, option, option, value)
        self.compile_is_refused(4, '"tflite"', "--model-format", "tflite")

    def test_show(self):
        counts = {line.rsplit(" ", 1)[0]: int(line.rsplit(" ", 1)[1])
                  for line in mill.check_program(self, "show", DIGITS, "--ops").splitlines()}
        self.assertEqual(counts["Conv"], 4)
        for target in (self.package, DIGITS):
            tasks = mill.check_program(self, "show", target, "--tasks", *SHAPES).splitlines()
            self.assertTrue(any(line.startswith("conv") for line in tasks), tasks)
        ops = mill.check_program(self, "show", self.package, "--ops").splitlines()
        steps = mill.check_program(self, "show", self.package, "--graph").splitlines()
        self.assertEqual(sum(int(line.split()[1]) for line in ops), len(steps))

    def test_errors_as_json(self):
        model = self.folder / "shapeless.onnx"
        model.write_bytes(made_models.one_node_model("Relu", [("x", TensorProto.FLOAT, None)], ("y", TensorProto.FLOAT, None)))
        done = mill.run_program("compile", model, "--json", "-o", self.folder / "not.tar")
        self.assertEqual(done.returncode, 3)
        error = json.loads(done.stdout)["error"]
        self.assertEqual(error["code"], "shape_required")
        self.assertIn(error["detail"], done.stderr)

    def test_names_of_files_that_are_no_text_are_printed_as_json_all_the_same(self):
        picture, graph = (self.folder / os.fsdecode(name) for name in (b"7\xff.png", b"graph\xff.json"))
        picture.write_bytes((mill.ROOT / "tests/models/pictures/7.png").read_bytes())
        told = json.loads(mill.check_program(self, "classify", self.package, picture, picture, "--json"))
        self.assertEqual([one["picture"] for one in told["pictures"]], [f"{self.folder}/7\N{REPLACEMENT CHARACTER}.png"] * 2)
        told = json.loads(mill.check_program(self, "import", DIGITS, "-o", graph, "--json"))
        self.assertEqual(told["output"], f"{self.folder}/graph\N{REPLACEMENT CHARACTER}.json")
        self.assertTrue(graph.exists())
        # Nor need names in a model be UTF-8.
        model = self.folder / "renamed.onnx"
        model.write_bytes(DIGITS.read_bytes().replace(b"image", b"im\xffge"))
        told = json.loads(mill.check_program(self, "show", model, "--json"))
        self.assertEqual([one["name"] for one in told["inputs"]], [r"im\xffge"])


if __name__ == "__main__":
    unittest.main()
