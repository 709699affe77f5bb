"""Free dims: one package for all shapes, from the command line and through the server."""

import json
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import free_dims_models
import free_dims_nets
import made_models
import mill
import numpy as np
import scope
import serving
from onnx import TensorProto


class Dynamic(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.package = self.folder / "module.tar"

    def check(self, path, inputs, stem):
        feed, expected = mill.reference(path, inputs, stem)
        actual = mill.run_package(self, self.package, feed, self.folder / "out.npz")
        self.assertEqual(mill.compare.compare_sets(actual, expected, mill.tolerance(3)), [])

    def test_every_batch_of_a_network(self):
        path = mill.generated("mlp")
        model = mill.alive.onnx.load(str(path))
        inputs = mill.alive.random_inputs(model, seed=1, batch=1)
        name, row = next(iter(inputs.items()))
        free = ",".join(["N", *map(str, row.shape[1:])])
        mill.check_program(self, "compile", path, "--input-shapes", f"{name}:[{free}]", "--shape-buckets", "N=1,4",
                           "-o", self.package)
        shown = json.loads(mill.check_program(self, "show", self.package, "--json"))
        self.assertEqual(shown["inputs"][0]["shape"][0], "N")
        for batch in (1, 3, 4, 7):
            with self.subTest(batch=batch):
                self.check(path, mill.alive.random_inputs(model, seed=1, batch=batch), f"mlp.batch{batch}")

    def test_made_models(self):
        for name, (make, shapes, buckets, asked) in free_dims_models.MODELS.items():
            path = self.folder / f"{name}.onnx"
            path.write_bytes(make())
            options = [] if buckets is None else ["--shape-buckets", buckets]
            done = mill.run_program("compile", path, "--input-shapes", shapes, *options, "-o", self.package)
            self.assertEqual((done.returncode, done.stderr), (0, ""), name)
            for shape in asked:
                with self.subTest(model=name, shape=shape):
                    inputs = {"x": np.random.default_rng(1).uniform(-1, 1, shape).astype(np.float32)}
                    self.check(path, inputs, f"free.{name}.{'x'.join(map(str, shape))}")

    def test_one_import_makes_all_plans(self):
        """Types with symbols say what samples would have to show; a bucket is numbers in their place."""
        networks = {"pyramid": (free_dims_models.pyramid, "x:[N,3,H,W]", "N=1,2;H=32,64;W=64"),
                    "tokens": (free_dims_models.tokens, "x:[N,T,8]", "N=1;T=16,32"),
                    "detector": (free_dims_nets.detector, "x:[N,3,H,W]", None),
                    "rows": (free_dims_models.rows_of_a_fixed_size, "x:[N,4] y:[T,6]", None)}
        for name, (make, shapes, buckets) in networks.items():
            path = self.folder / f"{name}.onnx"
            path.write_bytes(make())
            options = ["--shape-buckets", buckets] if buckets else []
            done = mill.check_program(self, "compile", path, "--input-shapes", shapes, *options, "--opt-level", 1,
                                      "--print-pass-times", "--verify", "none", "-o", self.package)
            with self.subTest(name):
                self.assertRegex(done, r"(?m)^ *1 imports of the model$")

    def test_a_shape_that_no_plan_takes_is_refused_before_the_run(self):
        """An input of the right shape that is set after one of another does not bring the first plan's shapes back."""
        path = self.folder / "rows.onnx"
        path.write_bytes(free_dims_models.rows_of_a_fixed_size())
        mill.check_program(self, "compile", path, "--opt-level", 1, "-o", self.package)
        for shapes in ("x:[2,4] y:[2,6]", "y:[2,6] x:[2,4]", "x:[2,4]"):
            done = mill.run_program("run", self.package, "--input-shapes", shapes)
            self.assertEqual(done.returncode, 3, shapes)
            self.assertIn('"N" is 2 and may only be 3', done.stderr)

    def test_networks(self):
        for name, (make, shapes, asked) in scope.sampled(free_dims_nets.NETS.items(), 8):
            path = self.folder / f"{name}.onnx"
            path.write_bytes(make())
            done = mill.run_program("compile", path, "--input-shapes", shapes, "-o", self.package)
            said = ""
            if name in free_dims_nets.KERNELS:
                said = ("warning: some shapes have no kernels and are interpreted, which is slow: there are kernels where "
                        f"{free_dims_nets.KERNELS[name]}; shape_buckets make more\n")
            self.assertEqual((done.returncode, done.stderr), (0, said), name)
            for dims in asked:
                with self.subTest(net=name, dims=dims):
                    self.check(path, free_dims_nets.inputs_of(shapes, dims), f"free.{name}.{'x'.join(map(str, dims))}")

    def test_dims_that_the_model_leaves_free_stay_so(self):
        """Under its names; one that has none is called after its input and axis."""
        path = self.folder / "free.onnx"
        path.write_bytes(free_dims_models.tokens())
        unnamed = made_models.one_node_model("Relu", [("x", TensorProto.FLOAT, [None, 8])], ("y", TensorProto.FLOAT, None))
        for model, dims, asked in ((free_dims_models.tokens(), ["N", "T", 8], [(1, 16, 8), (3, 7, 8)]),
                                   (unnamed, ["x_0", 8], [(0, 8), (5, 8)])):
            path.write_bytes(model)
            done = mill.run_program("compile", path, "--opt-level", 1, "-o", self.package)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            shown = json.loads(mill.check_program(self, "show", self.package, "--json"))
            self.assertEqual(shown["inputs"][0]["shape"], dims)
            for shape in asked:
                inputs = {"x": np.random.default_rng(1).uniform(-1, 1, shape).astype(np.float32)}
                self.check(path, inputs, f"free.own.{'x'.join(map(str, shape))}")

    def test_a_dim_of_which_the_model_takes_one_extent(self):
        path = self.folder / "free.onnx"
        path.write_bytes(made_models.one_node_model("Squeeze", [("x", TensorProto.FLOAT, ["N", 8])], ("y", TensorProto.FLOAT, None),
                                                    [("axes", np.asarray([0], np.int64))]))
        for given in ([], ["--input-shapes", "x:[1,8]"]):
            mill.check_program(self, "compile", path, *given, "-o", self.package)
            mill.check_program(self, "run", self.package, "--input-shapes", "x:[1,8]")
        mill.check_program(self, "compile", path, "-o", self.package)
        done = mill.run_program("run", self.package, "--input-shapes", "x:[2,8]")
        self.assertEqual(done.returncode, 3)
        self.assertIn('is float32 [2,8], expected float32 [1,8]: "N" is 2 and may only be 1', done.stderr)

    def test_an_extent_that_an_exporter_wrote_into_the_model(self):
        """No operand has it as its own; the other dims stay free, and other extents are refused by name."""
        path = self.folder / "free.onnx"
        for name, make, others, feeds in (
                ("states", free_dims_models.baked_states, ("x:[4,5,4]", "x:[1,5,4]"), [{"x": (3, 7, 4)}, {"x": (3, 1, 4)}, {"x": (3, 40, 4)}]),
                ("rows", free_dims_models.rows_of_a_fixed_size, ("x:[2,4] y:[2,6]", "x:[6,4] y:[2,6]"),
                 [{"x": (3, 4), "y": (5, 6)}, {"x": (3, 4), "y": (1, 6)}])):
            path.write_bytes(make())
            done = mill.run_program("compile", path, "-o", self.package)
            self.assertEqual((done.returncode, done.stderr),
                             (0, "warning: of dims that inputs leave free the model takes one extent alone: N is 3\n"), name)
            for i, shapes in enumerate(feeds):
                with self.subTest(name, shapes=shapes):
                    random = np.random.default_rng(i)
                    inputs = {key: random.uniform(-1, 1, shape).astype(np.float32) for key, shape in shapes.items()}
                    self.check(path, inputs, f"free.baked.{name}.{i}")
            for shapes in others:
                done = mill.run_program("run", self.package, "--input-shapes", shapes)
                self.assertEqual(done.returncode, 3, name)
                self.assertRegex(done.stderr, r'input "x" is float32 \[\d,.*\], expected float32 \[3,.*\]: "N" is \d and may only be 3')
            # A shape that is asked for and that the model does not take is an error of the compilation.
            done = mill.run_program("compile", path, "--shape-buckets", "N=4", "-o", self.package)
            self.assertNotEqual(done.returncode, 0, name)

    def test_axes_of_one_letter_are_as_long_as_each_other(self):
        path = self.folder / "diagonals.onnx"
        path.write_bytes(free_dims_nets.diagonals())
        mill.check_program(self, "compile", path, "--opt-level", 1, "-o", self.package)
        done = mill.run_program("run", self.package, "--input-shapes", "x:[2,3,4] y:[3,5]")
        self.assertEqual(done.returncode, 3)
        self.assertIn('node "einsum0" (Einsum): axes 1 and 2 of shape [2,3,4] have one letter', done.stderr)
        self.assertIn('"U" is 4 and follows from them as 3', done.stderr)

    def test_multiples_are_told(self):
        path = self.folder / "two_scales.onnx"
        path.write_bytes(free_dims_models.net_of_two_scales())
        mill.check_program(self, "compile", path, "--input-shapes", "x:[1,2,H,W]", "--opt-level", 1, "-o", self.package)
        done = mill.run_program("run", self.package, "--input-shapes", "x:[1,2,8,7]")
        self.assertEqual(done.returncode, 3)
        self.assertIn("multiples of 2", done.stderr)

    def test_an_extent_follows_from_two_others(self):
        """A mask over what is there and what is new: its input comes first, and its length is theirs together."""
        path = self.folder / "masked.onnx"
        path.write_bytes(free_dims_models.masked_past())
        shapes = "m:[S] p:[P,4] x:[T,4]"
        mill.check_program(self, "compile", path, "--input-shapes", shapes, "--shape-buckets", "P=2,4;T=1;S=3,5",
                           "--opt-level", 1, "-o", self.package)
        random = np.random.default_rng(3)

        def run(past, new, both):
            feed = self.folder / "in.npz"
            given = {"m": random.random(both), "p": random.random((past, 4)), "x": random.random((new, 4))}
            given = {name: array.astype(np.float32) for name, array in given.items()}
            np.savez(feed, **given)
            done = mill.run_program("run", self.package, "-i", feed, "-o", self.folder / "out.npz")
            return given, done

        for past, new in ((2, 1), (4, 1), (7, 3), (1, 1), (0, 5)):
            with self.subTest(past=past, new=new):
                given, done = run(past, new, past + new)
                self.assertEqual(done.returncode, 0, done.stderr)
                whole = np.concatenate([given["p"], given["x"]])
                with np.load(self.folder / "out.npz") as archive:
                    np.testing.assert_array_equal(archive[archive.files[0]], whole * given["m"][:, None])
        _, done = run(7, 3, 9)
        self.assertEqual(done.returncode, 3)
        self.assertIn('input "m" is float32 [9], beside the other inputs the model takes float32 [10]: '
                      '"S" is 9 and follows from them as 10', done.stderr)

    def test_mistakes_on_the_command_line(self):
        path = mill.generated("mlp")
        for buckets, words in (("Q=1,2", "no free dim"), ("N=2,1", "not ascending"), ("N", "DIM=EXTENTS")):
            done = mill.run_program("compile", path, "--shape-buckets", buckets, "-o", self.package)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(words, done.stderr)

    def test_a_shape_that_the_model_does_not_take(self):
        path = mill.generated("mlp")
        inputs = mill.alive.random_inputs(mill.alive.onnx.load(str(path)), seed=1, batch=1)
        name, row = next(iter(inputs.items()))
        free = ",".join(["N", *map(str, row.shape[1:])])
        mill.check_program(self, "compile", path, "--input-shapes", f"{name}:[{free}]", "--shape-buckets", "N=2",
                           "--opt-level", 1, "-o", self.package)
        np.savez(self.folder / "in.npz", **{name: np.zeros((2, 3), np.float32)})
        done = mill.run_program("run", self.package, "-i", self.folder / "in.npz")
        self.assertEqual(done.returncode, 3)
        self.assertIn("N", done.stderr)


class Served(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = serving.make_server(cls)
        cls.server.upload("pyramid", free_dims_models.pyramid())
        cls.package = cls.server.compile("pyramid", {"x": ["N", 3, 32, 32]}, shape_buckets={"N": [1, 4]})
        cls.images = np.random.default_rng(5).random((16, 3, 32, 32), dtype=np.float32)

    def rows(self, name, first, count):
        answer = self.server.infer(name, {"x": self.images[first:first + count]})
        self.assertEqual(answer.status, 200, answer.body)
        return list(serving.from_npz(answer.body).values())[1]

    def test_any_batch_is_served_and_metadata_shows_free_dims(self):
        self.assertEqual(self.server.deploy("free", self.package).status, 201)
        shown = self.server.request("GET", "/v2/models/free").json()
        self.assertEqual(shown["inputs"][0]["shape"], [-1, 3, 32, 32])
        self.assertEqual([o["shape"][0] for o in shown["outputs"]], [-1, -1])
        alone = np.concatenate([self.rows("free", i, 1) for i in range(16)])
        for count in (1, 2, 4, 7, 16):
            np.testing.assert_allclose(self.rows("free", 0, count), alone[:count], rtol=1e-4, atol=1e-6)
        raw = self.images[:3]
        body = {"inputs": [{"name": "x", "shape": [3, 3, 32, 32], "datatype": "FP32", "data": raw.ravel().tolist()}]}
        answer = self.server.send_json("POST", "/v2/models/free/infer", json.dumps(body))
        self.assertEqual((answer.status, answer.json()["outputs"][0]["shape"][0]), (200, 3))
        refused = self.server.infer("free", {"x": np.zeros((1, 3, 32, 33), np.float32)})
        self.assertEqual((refused.status, refused.json()["code"]), (422, "invalid_tensor"))

    def test_the_batcher_takes_the_variants(self):
        answer = self.server.deploy("shared", self.package, max_batch=4, max_delay_us=20000)
        self.assertEqual(answer.status, 201, answer.body)
        expected = np.concatenate([self.rows("shared", i, 1) for i in range(16)])
        with ThreadPoolExecutor(8) as pool:
            got = np.concatenate(list(pool.map(lambda i: self.rows("shared", i, 1), range(16))))
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-6)
        stats = self.server.request("GET", "/v2/models/shared/stats").json()["model_stats"][0]
        self.assertEqual(stats["inference_count"], 32)
        config = self.server.request("GET", "/v2/models/shared/config").json()
        self.assertEqual((config["max_batch_size"], config["input"][0]["dims"]), (4, [3, 32, 32]))

    def test_a_batch_above_the_largest_bucket_is_refused(self):
        answer = self.server.deploy("large", self.package, max_batch=5)
        self.assertEqual(answer.status, 422, answer.body)
        self.assertIn("/max_batch", [error["pointer"] for error in answer.json()["errors"]])


if __name__ == "__main__":
    unittest.main()
