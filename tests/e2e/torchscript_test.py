"""TorchScript modules: networks traced, and scripted and frozen, at a free batch and over HTTP, against what torch makes of them; what is
missing or broken is refused by file and line.

The modules and their answers are made by tests/fixtures/pytorch_script (`./dev fixtures`).
"""

import json
import unittest
import zipfile

import mill
import serving
from fixture_case import arrays_of
from torch_case import TorchCase

SCRIPTS = mill.ROOT / "tests/fixtures/pytorch_script"


def values_of(name):
    return arrays_of(SCRIPTS / name)


def shapes_of(inputs, batch=None):
    def extents(array):
        return [batch, *array.shape[1:]] if batch else list(array.shape)
    return " ".join(f"{name}:[{','.join(map(str, extents(array)))}]" for name, array in inputs.items())


def rewritten(source, target, change):
    """The archive with its code as `change` makes it."""
    with zipfile.ZipFile(source) as archive, zipfile.ZipFile(target, "w") as copy:
        for name in archive.namelist():
            data = archive.read(name)
            copy.writestr(name, change(data.decode()).encode() if name.endswith(".py") else data)


class TorchScript(TorchCase):
    def compile(self, name, *options):
        super().compile(SCRIPTS / f"{name}.pt", "-O", 1, *options)

    def test_free_batch(self):
        for name in ("residual_traced", "residual_frozen", "mobile_frozen"):
            with self.subTest(module=name):
                inputs, outputs = values_of(name)
                self.compile(name, "--input-shapes", shapes_of(inputs, "N"))
                (image, rows), (result, want) = *inputs.items(), *outputs.items()
                for batch in ([0], [2, 1], [0, 1, 2, 0, 1]):
                    self.check_outputs(self.run_on({image: rows[batch]}), {result: want[batch]})

    def test_fixed_shapes(self):
        for name in ("control_scripted", "search_scripted", "ops_counted", "ops_lengths_found", "ops_lengths_sorted", "ops_lengths_distinct",
                     "ops_lengths_counts", "ops_lengths", "ops_lengths_ends", "ops_lengths_fixed", "nearest_traced"):
            with self.subTest(module=name):
                inputs, outputs = values_of(name)
                self.compile(name, "--input-shapes", shapes_of(inputs))
                self.check_outputs(self.run_on(inputs), outputs)

    def test_shapes_are_asked_for(self):
        done = mill.run_program("compile", SCRIPTS / "control_frozen.pt", "-o", self.package)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn('give input_shapes of "x", "bias_0", "bias_1"', done.stderr)
        done = mill.run_program("compile", SCRIPTS / "control_frozen.pt", "--input-shapes", "x:[3,5] bias_0:[3,4] bias_1:[4]", "-o", self.package)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("raises an exception for these shapes: x has the shape", done.stderr)

    def test_show(self):
        said = mill.check_program(self, "show", SCRIPTS / "residual_traced.pt")
        for words in ("format torchscript (file version", "input image: Tensor", "operator aten._convolution: 4"):
            self.assertIn(words, said)
        said = json.loads(mill.check_program(self, "--json", "show", SCRIPTS / "residual_traced.pt"))
        self.assertEqual(said["format"], "torchscript")

    def test_all_that_is_missing_is_told_at_once(self):
        model = self.folder / "missing.pt"
        rewritten(SCRIPTS / "residual_frozen.pt", model, lambda text: text.replace("torch.relu_(", "torch.fancy(").replace("torch.linear(", "ops.my.linear("))
        for options in ((), ("--input-shapes", "image:[1,3,16,16]")):
            done = mill.run_program("compile", model, *options, "-o", self.package)
            self.assertEqual(done.returncode, 4, done.stderr)
            self.assertIn("2 operators are not supported", done.stderr)
            self.assertIn("op aten.fancy, 3 calls", done.stderr)
        self.assertIn("not supported: op my.linear", mill.check_program(self, "show", model))

    def test_graph_file(self):
        inputs, outputs = values_of("unet_traced")
        graph = self.folder / "net.tmg"
        mill.check_program(self, "import", SCRIPTS / "unet_traced.pt", "--input-shapes", shapes_of(inputs), "-o", graph)
        mill.check_program(self, "compile", graph, "-O", 1, "-o", self.package)
        self.check_outputs(self.run_on(inputs), outputs)

    def test_server(self):
        inputs, outputs = values_of("tagger_frozen")
        server = serving.make_server(self)
        answer = server.upload("net", (SCRIPTS / "tagger_frozen.pt").read_bytes())
        self.assertEqual((answer.status, answer.json()["format"]), (201, "torchscript"), answer.body)
        package = server.compile("net", {name: list(array.shape) for name, array in inputs.items()})
        self.check_outputs(serving.from_npz(server.run(package, inputs).body), outputs)
        model = self.folder / "missing.pt"
        rewritten(SCRIPTS / "residual_frozen.pt", model, lambda text: text.replace("torch.relu_(", "torch.fancy("))
        answer = server.upload("missing", model.read_bytes())
        self.assertEqual((answer.status, answer.json()["code"]), (422, "operator_not_implemented"), answer.body)
        rewritten(SCRIPTS / "residual_frozen.pt", model, lambda text: text.replace("def forward(", "def forward(("))
        self.assertEqual(server.upload("broken", model.read_bytes()).status, 422)
        self.assertEqual(server.upload("cut", (SCRIPTS / "tagger_frozen.pt").read_bytes()[:4000]).status, 422)


if __name__ == "__main__":
    unittest.main()
