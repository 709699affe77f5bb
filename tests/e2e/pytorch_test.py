"""PyTorch's exported programs: operators in their forms and small networks, against what eager torch makes of them; by the
command line, with a free batch, over HTTP, and by way of the project's own graph files.

The programs and their answers are made by tests/fixtures/pytorch_ops and tests/fixtures/pytorch_nets (`./dev fixtures`).
"""

import json
import unittest
import zipfile

import mill
import numpy as np
import serving
from fixture_case import arrays_of
from torch_case import TorchCase

FIXTURES = mill.ROOT / "tests/fixtures"
NETS = FIXTURES / "pytorch_nets"


def rewritten(source, target, change):
    """The archive with its program as `change` makes it."""
    with zipfile.ZipFile(source) as archive, zipfile.ZipFile(target, "w") as copy:
        for name in archive.namelist():
            data = archive.read(name)
            if name.endswith("models/model.json"):
                data = change(data.decode()).encode()
            copy.writestr(name, data)


class Pytorch(TorchCase):
    def test_networks(self):
        for name in ("residual", "windows", "pieces", "mixed", "loops", "spectral", "speech"):
            with self.subTest(network=name):
                inputs, outputs = arrays_of(NETS / name)
                self.compile(NETS / f"{name}.pt2", "-O", 1)
                self.check_outputs(self.run_on(inputs), outputs)

    def test_families(self):
        for name in ("unary1", "functions", "matrices", "moves", "quantized", "boxes", "counted", "lengths", "lengths_fixed", "lengths_ends", "lengths_found", "lengths_sorted",
                     "lengths_repeated", "lengths_distinct", "lengths_counts", "fourier", "frames", "orders", "factors", "solutions", "chosen", "statistics", "limits"):
            with self.subTest(family=name):
                inputs, outputs = arrays_of(FIXTURES / "pytorch_ops" / name)
                self.compile(FIXTURES / f"pytorch_ops/{name}.pt2", "-O", 1)
                self.check_outputs(self.run_on(inputs), outputs)

    def test_extents_that_a_run_works_out(self):
        inputs, outputs = arrays_of(FIXTURES / "pytorch_ops/lengths")
        self.compile(FIXTURES / "pytorch_ops/lengths.pt2")
        count = next(name for name, value in inputs.items() if value.shape == ())
        was = int(inputs[count])
        for number in (was, 5, 1, 0):
            got = self.run_on({**inputs, count: np.array(number)})
            if number == was:
                self.check_outputs(got, outputs)
            lengths = [got[name].shape[0] for name in outputs]
            self.assertEqual(lengths, [number, number, number, number + 1, number, number, 4, 3 + number, 6, 6, number, number, 4])
        # What the module demands of it is checked.
        feed = self.folder / "in.npz"
        np.savez(feed, **{**inputs, count: np.array(-2)})
        done = mill.run_program("run", self.package, "-i", feed, "-o", self.folder / "out.npz")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("does not take", done.stderr)

    def test_numbers_of_a_run_where_no_input_has_a_free_dim(self):
        """Slices, rows, windows and ranges from item(), each beside numpy's."""
        inputs, outputs = arrays_of(FIXTURES / "pytorch_ops/lengths_fixed")
        self.compile(FIXTURES / "pytorch_ops/lengths_fixed.pt2")
        by_shape = {value.shape: name for name, value in inputs.items()}
        x, w, i1, tab, sq = (inputs[by_shape[shape]] for shape in ((3, 4), (4,), (3,), (7, 4), (4, 4)))
        for n in (3, 1, 2):
            got = self.run_on({**inputs, by_shape[()]: np.array(n)})
            last = tab[n:] - tab[n:].max(0)
            wanted = [x[n:] * 2, x[n - 1:], x[-n:] + 1, x[:, n - 1:] + w[n - 1:], np.repeat(x[:1], n, 0) * 2, np.full((n + 1, i1.max()), np.float32(3)),
                      np.arange(n, -1, -1), np.arange(n, n + i1.max()) * 2, np.arange(0, n, 2), np.arange(n).astype(np.float32) * np.float32(0.5),
                      x[:, n] * 2, tab[n:n + 2] * 2, tab[n:n + 3] * 2, x[:, n - 4] * 2, np.concatenate([tab[n:], tab[:n]]),
                      np.exp(last) / np.exp(last).sum(0), tab[n:] @ sq, np.tile(x, (n, 1))]
            self.check_outputs(got, dict(zip(outputs, wanted)))
        # What the module takes of an axis is there, or it is an error.
        feed = self.folder / "in.npz"
        np.savez(feed, **{**inputs, by_shape[()]: np.array(9)})
        done = mill.run_program("run", self.package, "-i", feed, "-o", self.folder / "out.npz")
        self.assertNotEqual(done.returncode, 0)

    def test_ends_of_a_run_where_no_input_has_a_free_dim(self):
        inputs, outputs = arrays_of(FIXTURES / "pytorch_ops/lengths_ends")
        self.compile(FIXTURES / "pytorch_ops/lengths_ends.pt2")
        by_shape = {value.shape: name for name, value in inputs.items()}
        x, tab, sq = (inputs[by_shape[shape]] for shape in ((3, 4), (7, 4), (4, 4)))
        for n in (3, 1, 2):
            first = tab[:n] - tab[:n].max(0)
            wanted = [np.concatenate([tab[:n], x]), np.exp(first) / np.exp(first).sum(0), x[:, :n].sum(1), tab[:-n] @ sq]
            self.check_outputs(self.run_on({**inputs, by_shape[()]: np.array(n)}), dict(zip(outputs, wanted)))

    def test_free_batch(self):
        inputs, outputs = arrays_of(NETS / "mobile")
        self.compile(NETS / "mobile.pt2")
        (name, image), (result, want) = *inputs.items(), *outputs.items()
        for rows in ([0], [2, 1], [0, 1, 2, 0, 1]):
            self.check_outputs(self.run_on({name: image[rows]}), {result: want[rows]})
        # The export has a largest batch, which its own module refuses to exceed.
        feed = self.folder / "in.npz"
        np.savez(feed, **{name: np.repeat(image, 40, 0)})
        done = mill.run_program("run", self.package, "-i", feed, "-o", self.folder / "out.npz")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("64", done.stderr)

    def test_older_archives(self):
        image = np.linspace(-1, 1, 2 * 3 * 8 * 8, dtype=np.float32).reshape(2, 3, 8, 8)
        made = []
        for name in ("net", "net_torch2_7", "net_torch2_8"):
            self.compile(FIXTURES / f"pytorch/{name}.pt2", "-O", 1, "--input-shapes", "image:[2,3,8,8]")
            made.append(self.run_on({"image": image}))
        for other in made[1:]:
            self.check_outputs(other, made[0])

    def test_show(self):
        said = mill.check_program(self, "show", NETS / "residual.pt2")
        for words in ("format pt2 (schema 8.", "operator aten.conv2d.default: 4", "2 to 64"):
            self.assertIn(words, said)
        said = json.loads(mill.check_program(self, "--json", "show", NETS / "residual.pt2"))
        self.assertEqual((said["format"], said["inputs"][0]["shape"][1:]), ("pt2", [3, 16, 16]))
        self.assertIn("f32[", mill.check_program(self, "show", "--graph", NETS / "residual.pt2"))

    def test_all_that_is_missing_is_told_at_once(self):
        model = self.folder / "missing.pt2"
        rewritten(NETS / "residual.pt2", model, lambda text: text.replace("aten.relu_.default", "aten.fancy.default")
                  .replace("aten.linear.default", "my.own_linear.default").replace("aten.flatten.using_ints", "aten.rand_like.default"))
        done = mill.run_program("compile", model, "-o", self.package)
        self.assertEqual(done.returncode, 4, done.stderr)
        for words in ("3 operators are not supported", "op aten.rand_like.default: random numbers are not implemented, as", "op aten.fancy.default, 3 nodes, operands float32[", "op my.own_linear.default, 1 node"):
            self.assertIn(words, done.stderr)
        self.assertIn("not supported: op aten.fancy.default", mill.check_program(self, "show", model))

    def test_what_no_converter_reads_is_refused(self):
        model = self.folder / "unread.pt2"
        added = '"inputs": [{"name": "turned", "arg": {"as_int": 1}, "kind": 1}, {"name": "self"'
        rewritten(NETS / "branches.pt2", model, lambda text: text.replace('"inputs": [{"name": "self"', added, 1))
        done = mill.run_program("compile", model, "-o", self.package)
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn("turned: this argument is not implemented", done.stderr)

    def test_shapes_that_do_not_fit(self):
        name = next(iter(arrays_of(NETS / "residual")[0]))
        done = mill.run_program("compile", NETS / "residual.pt2", "--input-shapes", f"{name}:[1,3,16,17]", "-o", self.package)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("the extent 17 in dim 3, the model has 16", done.stderr)
        done = mill.run_program("compile", NETS / "residual.pt2", "--input-shapes", f"{name}:[65,3,16,16]", "-o", self.package)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("the module was exported for 2 to 64", done.stderr)

    def test_graph_file(self):
        inputs, outputs = arrays_of(NETS / "unet")
        graph = self.folder / "net.tmg"
        mill.check_program(self, "import", NETS / "unet.pt2", "-o", graph)
        name, shape = next((name, list(array.shape)) for name, array in inputs.items())
        self.compile(graph, "--input-shapes", f"{name}:{json.dumps(shape, separators=(',', ':'))}")
        self.check_outputs(self.run_on(inputs), outputs)

    def test_server(self):
        inputs, outputs = arrays_of(NETS / "vision")
        server = serving.make_server(self)
        answer = server.upload("net", (NETS / "vision.pt2").read_bytes())
        self.assertEqual((answer.status, answer.json()["format"]), (201, "pt2"), answer.body)
        package = server.compile("net", {name: list(array.shape) for name, array in inputs.items()})
        self.check_outputs(serving.from_npz(server.run(package, inputs).body), outputs)
        model = self.folder / "missing.pt2"
        rewritten(NETS / "residual.pt2", model, lambda text: text.replace("aten.relu_.default", "aten.fancy.default"))
        answer = server.upload("missing", model.read_bytes())
        self.assertEqual((answer.status, answer.json()["code"]), (422, "operator_not_implemented"), answer.body)
        self.assertEqual(answer.json()["model"]["operators"]["aten.fancy.default"], 3)
        self.assertEqual(server.upload("cut", (NETS / "vision.pt2").read_bytes()[:4000]).status, 422)


if __name__ == "__main__":
    unittest.main()
