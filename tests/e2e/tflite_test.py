"""TFLite models: operators in their forms and small networks, against what TensorFlow Lite makes of them; by the command
line, with a free batch, over HTTP, and by way of the project's own graph files.

The models and their answers are made by tests/fixtures/tflite_ops and tests/fixtures/tflite (`./dev fixtures`).
"""

import json
import unittest

import mill
import numpy as np
from PIL import Image
import serving
from fixture_case import FixtureCase, arrays_of

OPS = mill.ROOT / "tests/fixtures/tflite_ops"
NETS = mill.ROOT / "tests/fixtures/tflite"


def values_of(kind):
    values = json.loads((NETS / f"net_{kind}.values.json").read_text(encoding="utf-8"))
    dtype = np.int8 if kind == "int8" else np.float32
    return np.array(values["image"], dtype).reshape(1, 8, 8, 3), np.array(values["classes"], dtype).reshape(1, 5)


class Tflite(FixtureCase):
    TOLERANCE = 1e-5

    def check_family(self, family, level, *options, quanta=0):
        self.check_all(OPS / f"{family}.tflite", OPS / f"{family}.npz", "-O", level, *options, quanta=quanta)

    def test_elementwise(self):
        self.check_family("elementwise", 3)

    def test_integers(self):
        self.check_family("integers", 3)

    def test_windows(self):
        self.check_family("windows", 3)

    def test_products(self):
        self.check_family("products", 3)

    def test_moves(self):
        self.check_family("moves", 3)

    def test_places(self):
        self.check_family("places", 3)

    def test_steps(self):
        self.check_family("steps", 3)

    def test_updates(self):
        self.check_family("updates", 3)

    def test_boxes(self):
        self.check_family("boxes", 3)

    def test_text(self):
        self.check_family("text", 1)

    def test_counted(self):
        self.check_family("counted", 3)

    def test_sound(self):
        self.check_family("sound", 3)

    def test_operators_of_mediapipe(self):
        self.check_family("mediapipe", 3)

    def test_landmarks_of_mediapipe(self):
        self.check_family("landmarks", 3)

    def test_small_cells(self):
        self.check_family("small_cells", 3, quanta=1)

    def test_bits(self):
        self.check_family("bits", 3)

    def test_gathers(self):
        self.check_family("gathers", 3)

    def test_rows(self):
        self.check_family("rows", 3)

    def test_cells(self):
        self.check_family("cells", 3)

    def test_state(self):
        self.check_family("state", 3)

    def test_spectra(self):
        self.check_family("spectra", 3)

    def test_quantized(self):
        self.check_family("quantized", 3, quanta=1)
        # Convolutions and products of int8 are computed on the integers.
        steps = mill.check_program(self, "show", "--graph", self.package)
        for kernel, count in (("conv_blocked_cast_mul_", 2), ("matmul_packed_cast_mul_", 1)):
            self.assertEqual(len([line for line in steps.splitlines() if line.startswith(kernel)]), count, steps)

    def test_reference_kernels_bit_for_bit(self):
        """`--quantized exact`, at the first level and the last, and for another CPU."""
        for family in ("exact_products", "exact_elements", "exact_rows", "exact_cells"):
            for options in (("-O", 3), ("-O", 0), ("-O", 3, "--target", "llvm -mcpu=x86-64-v2")):
                self.check_family(family, *options[1:], "--quantized", "exact")

    def test_integers_of_a_free_batch(self):
        """A package for all batches gives the bits of one for a single picture, rounded either way."""
        images = np.random.default_rng(9).integers(-128, 128, (5, 8, 8, 3)).astype(np.int8)
        for options in ((), ("--quantized", "exact")):
            with self.subTest(options=options):
                self.compile(NETS / "net_int8.tflite", "--input-shapes", "image:[1,8,8,3]", *options)
                single = [self.run_on({"image": image[None]})["output_0"] for image in images]
                self.compile(NETS / "net_int8.tflite", *options)
                for count in (1, 2, 5):
                    self.check("classes", self.run_on({"image": images[:count]})["output_0"], np.concatenate(single[:count]))

    def test_what_has_no_exact_form(self):
        package = self.folder / "other.tar"
        done = mill.run_program("compile", NETS / "net_int16.tflite", "--quantized", "exact", "--input-shapes", "image:[1,8,8,3]", "-o", package)
        self.assertIn("quantized exact: output 0 is int16", done.stderr)
        self.assertFalse(package.exists())
        done = mill.run_program("compile", mill.ROOT / "tests/fixtures/keras/net.keras", "--quantized", "exact", "-o", package)
        self.assertIn("have no reference kernels", done.stderr)

    def test_network(self):
        image, classes = values_of("float32")
        self.compile(NETS / "net_float32.tflite", "--input-shapes", "image:[1,8,8,3]")
        self.check("classes", self.run_on({"image": image})["output_0"], classes)
        # Maps stay with their channels first from the first convolution to the last.
        steps = mill.check_program(self, "show", "--graph", self.package)
        moves = [line for line in steps.splitlines() if "transpose" in line]
        self.assertLessEqual(len(moves), 1, steps)

    def test_free_batch(self):
        image, classes = values_of("float32")
        self.compile(NETS / "net_float32.tflite")
        for count in (1, 3):
            got = self.run_on({"image": np.repeat(image, count, 0)})["output_0"]
            self.check(f"batch {count}", got, np.repeat(classes, count, 0))

    def test_free_maps(self):
        self.compile(NETS / "any_size.tflite")
        for case in json.loads((NETS / "any_size.values.json").read_text(encoding="utf-8")):
            image = np.array(case["image"], np.float32).reshape(case["shape"])
            want = np.array(case["map"], np.float32).reshape(case["map_shape"])
            self.check(str(case["shape"]), self.run_on({"image": image})["output_0"], want)

    def test_float16_and_dynamic_range(self):
        for kind, tolerance in (("float16", 1e-4), ("dynamic", 2e-2)):
            with self.subTest(kind=kind):
                image, classes = values_of(kind)
                self.compile(NETS / f"net_{kind}.tflite", "--input-shapes", "image:[1,8,8,3]")
                self.check("classes", self.run_on({"image": image})["output_0"], classes, tolerance)

    def test_int8(self):
        image, classes = values_of("int8")
        self.compile(NETS / "net_int8.tflite", "--input-shapes", "image:[1,8,8,3]")
        got = self.run_on({"image": image})["output_0"]
        self.assertEqual(got.dtype, np.int8)
        self.assertLessEqual(np.abs(got.astype(int) - classes.astype(int)).max(), 1)

    def test_a_picture_for_integers(self):
        """A picture and the scores go through the scales of the model's inputs and outputs."""
        self.compile(NETS / "net_int8.tflite", "--input-shapes", "image:[1,8,8,3]")
        metadata = json.loads(mill.check_program(self, "--json", "show", self.package))
        image, classes = (metadata[key][0]["quantization"] for key in ("inputs", "outputs"))
        said = mill.check_program(self, "show", self.package)
        self.assertIn(f"int8[1,8,8,3] (scale {image['scale']:g}, zero point {image['zero_point']})", said)
        pixels = np.random.default_rng(5).integers(0, 256, (8, 8, 3), np.uint8)
        picture = self.folder / "picture.png"
        Image.fromarray(pixels).save(picture)
        real = (pixels.astype(np.float64) / 255 - 0.5) / 0.25
        feed = np.clip(np.rint(real.astype(np.float32) / image["scale"]) + image["zero_point"], -128, 127).astype(np.int8)
        scores = classes["scale"] * (self.run_on({"image": feed[None]})["output_0"][0].astype(np.float64) - classes["zero_point"])
        said = json.loads(mill.check_program(self, "--json", "classify", self.package, picture, "--mean", "0.5", "--std", "0.25",
                                             "--probabilities", "--top", "5"))
        top = {row["index"]: row["probability"] for row in said["pictures"][0]["top"]}
        self.assertEqual(set(top), set(range(5)))
        for index, score in enumerate(scores):
            self.assertAlmostEqual(top[index], score, places=6)

    def picture(self, seed=5):
        pixels = np.random.default_rng(seed).integers(0, 256, (8, 8, 3), np.uint8)
        picture = self.folder / "picture.png"
        Image.fromarray(pixels).save(picture)
        return picture

    def classes_of(self, picture, *options):
        said = json.loads(mill.check_program(self, "--json", "classify", self.package, picture, "--probabilities", "--top", "5", *options))
        return [(row["label"], row["index"], row["probability"]) for row in said["pictures"][0]["top"]]

    def test_what_a_file_says_of_pictures_and_classes(self):
        """Labels and normalization of the file's description are what is taken unless the user says something."""
        picture, labels = self.picture(), self.folder / "labels.txt"
        own = ["cat", "dog", "koala", "zebra", "whale"]
        labels.write_text("".join(f"own {label}\n" for label in own), encoding="utf-8")
        for kind in ("float32", "int8"):
            with self.subTest(kind=kind):
                self.compile(NETS / f"net_{kind}.tflite", "--input-shapes", "image:[1,8,8,3]")
                wanted = self.classes_of(picture, "--scale", "1", "--mean", "127.5", "--std", "63.75")
                plain = self.classes_of(picture)
                self.compile(NETS / f"described_{kind}.tflite", "--input-shapes", "image:[1,8,8,3]")
                self.assertEqual(self.classes_of(picture), [(own[index], index, part) for _, index, part in wanted])
                self.assertNotEqual(wanted, plain)
                for options in (("--scale", str(1 / 255)), ("--mean", "0"), ("--std", "1")):
                    self.assertEqual([row[1:] for row in self.classes_of(picture, *options)], [row[1:] for row in plain])
                self.assertEqual([row[0] for row in self.classes_of(picture, "--labels", labels)], [f"own {own[row[1]]}" for row in wanted])
                said = mill.check_program(self, "show", self.package)
                self.assertIn("(mean 127.5, std 63.75)", said)
                self.assertIn("(5 labels)", said)

    def test_what_a_file_says_is_served(self):
        picture = self.picture()
        self.compile(NETS / "described_int8.tflite", "--input-shapes", "image:[1,8,8,3]")
        wanted, plain = self.classes_of(picture), self.classes_of(picture, "--mean", "0")
        server = serving.make_server(self)
        self.assertEqual(server.upload("animals", (NETS / "described_int8.tflite").read_bytes()).status, 201)
        package = server.compile("animals", {"image": [1, 8, 8, 3]})
        own = [f"own {index}" for index in range(5)]
        named = [(own[index], index, part) for _, index, part in wanted]
        for version, (more, rows) in enumerate((({}, wanted), ({"isolation": "process"}, wanted), ({"preprocess": {"mean": [0]}}, plain),
                                                ({"labels": own}, named)), 1):
            with self.subTest(more=more):
                server.deploy("net", package, output="probabilities", version=str(version), **more)
                answer = server.request("POST", "/v1/deployments/net/classify?top=5", picture.read_bytes(), {"Content-Type": "image/png"})
                self.assertEqual(answer.status, 200, answer.body)
                got = [(row["label"], row["index"], row["probability"]) for row in answer.json()["top"]]
                self.assertEqual([row[:2] for row in got], [row[:2] for row in rows])
                for (*_, part), (*_, other) in zip(got, rows):
                    self.assertAlmostEqual(part, other, places=6)

    def test_real_numbers_for_integers(self):
        """`run --float-io`: inputs and outputs by the scales of the model."""
        self.compile(NETS / "net_int8.tflite", "--input-shapes", "image:[1,8,8,3]")
        metadata = json.loads(mill.check_program(self, "--json", "show", self.package))
        image, classes = (metadata[key][0]["quantization"] for key in ("inputs", "outputs"))
        real = np.random.default_rng(6).uniform(-4, 4, (1, 8, 8, 3)).astype(np.float32)
        feed = np.clip(np.rint(real / np.float32(image["scale"])) + image["zero_point"], -128, 127).astype(np.int8)
        integers = self.run_on({"image": feed})["output_0"]
        np.savez(self.folder / "real.npz", image=real)
        mill.check_program(self, "run", self.package, "-i", self.folder / "real.npz", "-o", self.folder / "made.npz", "--float-io")
        got = mill.load_npz(self.folder / "made.npz")["output_0"]
        self.check("real", got, (classes["scale"] * (integers.astype(np.float64) - classes["zero_point"])).astype(np.float32))
        said = mill.check_program(self, "run", self.package, "-i", self.folder / "real.npz", "--float-io", "--print-top", "1")
        self.assertAlmostEqual(float(said.split()[-1]), float(got.max()), places=5)
        mill.check_program(self, "run", self.package, "-o", self.folder / "made.npz", "--float-io")
        self.assertEqual(mill.load_npz(self.folder / "made.npz")["output_0"].dtype, np.float32)
        np.savez(self.folder / "real.npz", image=feed)
        done = mill.run_program("run", self.package, "-i", self.folder / "real.npz", "--float-io")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("with --float-io it is float32", done.stderr)

    def test_show(self):
        said = mill.check_program(self, "show", NETS / "net_float32.tflite")
        self.assertIn("format tflite (schema 3, 1 subgraph)", said)
        self.assertIn("input image: float32[?,8,8,3]", said)
        said = json.loads(mill.check_program(self, "--json", "show", NETS / "net_float32.tflite"))
        self.assertEqual((said["format"], said["inputs"]),
                         ("tflite", [{"name": "image", "dtype": "float32", "shape": [-1, 8, 8, 3]}]))
        said = mill.check_program(self, "show", "--graph", NETS / "net_float32.tflite")
        self.assertIn("%image: f32[image_0,8,8,3]", said)

    def test_all_that_is_missing_is_told_at_once(self):
        done = mill.run_program("compile", OPS / "missing.tflite", "-o", self.package)
        self.assertEqual(done.returncode, 4, done.stderr)
        for words in ("5 operators are not supported", "op OwnOperator version 1, 1 node", "op OtherOperator version 1, 1 node", "op CONCAT_EMBEDDINGS version 1, 2 nodes", "op SKIP_GRAM version 1, 1 node"):
            self.assertIn(words, done.stderr)
        self.assertIn("not supported: op CONCAT_EMBEDDINGS", mill.check_program(self, "show", OPS / "missing.tflite"))

    def test_signatures(self):
        model = OPS / "signatures.tflite"
        x, one, other = np.ones((2, 3), np.float32), np.arange(4, dtype=np.float32), np.full(4, 3, np.float32)
        self.compile(model)
        self.check("y", self.run_on({"x": x})["y"], 2 * x)
        self.compile(model, "--signature", "product")
        self.check("both", self.run_on({"one": one, "other": other})["both"], one * other)
        said = mill.check_program(self, "show", "--signature", "product", "--graph", model)
        self.assertIn("%one: f32[4], %other: f32[4]", said)
        graph = self.folder / "net.tmg"
        mill.check_program(self, "import", model, "--signature", "product", "-o", graph)
        self.assertIn("input other: float32[4]", mill.check_program(self, "show", graph))
        for command in (("compile", "-o", self.package), ("import", "-o", graph), ("show", "--graph"), ("tune", "--tasks", "list")):
            done = mill.run_program(command[0], model, *command[1:], "--signature", "sum")
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn('no signature "sum"; it has twice, product', done.stderr)
        done = mill.run_program("compile", graph, "--signature", "product", "-o", self.package)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("models of this format have none", done.stderr)

    def test_signatures_over_http(self):
        one, other = np.arange(4, dtype=np.float32), np.full(4, 3, np.float32)
        server = serving.make_server(self)
        self.assertEqual(server.upload("two", (OPS / "signatures.tflite").read_bytes()).status, 201)
        package = server.compile("two", {"one": [4]}, signature="product")
        got = serving.from_npz(server.run(package, {"one": one, "other": other}).body)
        self.check("both", got["both"], one * other)
        answer = server.submit("two", signature="sum")
        self.assertEqual((answer.status, answer.json()["errors"][0]["pointer"]), (422, "/signature"), answer.body)
        self.assertIn("twice", answer.json()["errors"][0]["detail"])

    def test_exact_over_http(self):
        inputs, wanted = arrays_of(OPS / "exact_rows.npz")
        server = serving.make_server(self)
        self.assertEqual(server.upload("rows", (OPS / "exact_rows.tflite").read_bytes()).status, 201)
        package = server.compile("rows", {}, quantized="exact")
        self.check_outputs(serving.from_npz(server.run(package, inputs).body), wanted)
        answer = server.submit("rows", quantized="nearly")
        self.assertEqual((answer.status, answer.json()["errors"][0]["pointer"]), (422, "/quantized"), answer.body)
        self.assertEqual(server.upload("net", (mill.ROOT / "tests/fixtures/keras/net.keras").read_bytes()).status, 201)
        answer = server.submit("net", quantized="exact")
        self.assertEqual((answer.json()["code"], answer.json()["errors"][0]["pointer"]), ("not_supported", "/quantized"), answer.body)

    def test_shapes_that_do_not_fit(self):
        done = mill.run_program("compile", NETS / "net_float32.tflite", "--input-shapes", "image:[1,8,9,3]", "-o", self.package)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("the extent 9 in dim 2, the model has 8", done.stderr)
        done = mill.run_program("compile", NETS / "net_float32.tflite", "--model-format", "onnx", "-o", self.package)
        self.assertEqual(done.returncode, 4, done.stderr)

    def test_graph_file(self):
        image, classes = values_of("float32")
        graph = self.folder / "net.tmg"
        mill.check_program(self, "import", NETS / "net_float32.tflite", "-o", graph)
        self.assertIn("input image: float32[image_0,8,8,3]", mill.check_program(self, "show", graph))
        self.compile(graph, "--input-shapes", "image:[2,8,8,3]")
        self.check("classes", self.run_on({"image": np.repeat(image, 2, 0)})["output_0"], np.repeat(classes, 2, 0))

    def test_graph_by_hand(self):
        graph = self.folder / "net.tmg"
        graph.write_text('graph "scaled" dims(N: 3) (%x: f32[N,4]) {\n  %two = const f32[] {2.0}\n'
                         "  %y: f32[N,4] = mul(%x, %two)\n  return %y\n}\n", encoding="utf-8")
        self.compile(graph)
        x = np.arange(20, dtype=np.float32).reshape(5, 4)
        self.check("y", self.run_on({"x": x})["y"], 2 * x)
        graph.write_text(graph.read_text(encoding="utf-8").replace("mul", "mull"), encoding="utf-8")
        done = mill.run_program("compile", graph, "-o", self.package)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("mull", done.stderr)

    def test_server(self):
        image, classes = values_of("float32")
        server = serving.make_server(self)
        answer = server.upload("net", (NETS / "net_float32.tflite").read_bytes())
        self.assertEqual((answer.status, answer.json()["format"]), (201, "tflite"), answer.body)
        package = server.compile("net", {"image": [1, 8, 8, 3]})
        got = serving.from_npz(server.run(package, {"image": image}).body)
        self.check("classes", got["output_0"], classes)
        answer = server.upload("missing", (OPS / "missing.tflite").read_bytes())
        self.assertEqual((answer.status, answer.json()["code"]), (422, "operator_not_implemented"), answer.body)
        self.assertEqual(len(answer.json()["errors"]), 5)
        self.assertEqual(answer.json()["model"]["operators"]["CONCAT_EMBEDDINGS"], 2)
        cut = (NETS / "net_float32.tflite").read_bytes()[:2000]
        self.assertEqual(server.upload("cut", cut).status, 422)


if __name__ == "__main__":
    unittest.main()
