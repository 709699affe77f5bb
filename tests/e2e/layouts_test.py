"""The layout that a caller asks maps to be computed in: the same answers, by the command line, with free dims and over HTTP;
and the layout that the compiler chooses, which has no transpose between convolutions, whatever layout a model comes in.
"""

import json
import re
import tempfile
import unittest
from pathlib import Path

import mill
import numpy as np
import onnx
import serving
from onnx import helper

FIXTURES = mill.ROOT / "tests/fixtures"
DIGITS = mill.ROOT / "tests/models/digits.onnx"
DIGITS_SHAPES = ("--input-shapes", "image:[1,1,28,28]")
LAYOUTS = ("NCHW", "NHWC")
NODE = re.compile(r"^  ((?:%\S+: \S+(?:, )?)+) = (\w+)\(([^)]*)\)(.*)$")


def with_channels_last(model):
    """The same network as one whose maps have their channels last: operators over maps stand between transposes."""
    nodes, maps = [], {"Conv", "MaxPool", "BatchNormalization", "Flatten"}
    for number, node in enumerate(model.graph.node):
        if node.op_type in maps:
            nodes.append(helper.make_node("Transpose", [node.input[0]], [f"first{number}"], perm=[0, 3, 1, 2]))
            node.input[0] = f"first{number}"
        nodes.append(node)
        if node.op_type in maps - {"Flatten"}:
            nodes.append(helper.make_node("Transpose", [f"made{number}"], [node.output[0]], perm=[0, 2, 3, 1]))
            node.output[0] = f"made{number}"
    nodes = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del model.graph.node[:], model.graph.value_info[:]
    model.graph.node.extend(nodes)
    dims = model.graph.input[0].type.tensor_type.shape.dim
    dims.append(onnx.TensorShapeProto.Dimension.FromString(dims[1].SerializeToString()))
    del dims[1]
    return model


class Graph:
    """One stage of a dump: operators by the values that they make, and what they read."""

    def __init__(self, dump, stage):
        text = dump.split(f"# after {stage}")[1].split("\n# after ")[0]
        self.op, self.reads, self.attributes = {}, {}, {}
        for line in text.splitlines():
            found = NODE.match(line)
            if not found:
                continue
            for value in re.findall(r"%([^\s:]+):", found[1]):
                self.op[value], self.attributes[value] = found[2], found[4]
                self.reads[value] = re.findall(r"%([^\s,)]+)", found[3])

    def count(self, *ops):
        return sum(op in ops for op in self.op.values())

    def behind(self, is_start):
        """Values that depend on one for which `is_start` holds."""
        found = set()
        for value, reads in self.reads.items():
            if is_start(value) or any(read in found for read in reads):
                found.add(value)
        return found

    def between_convolutions(self, *ops):
        """Nodes of these operators behind a convolution, and before one."""
        is_conv = lambda value: self.op[value].startswith("conv")
        behind = self.behind(is_conv)
        return [value for value in behind if self.op[value] in ops
                and any(is_conv(reader) for reader in self.behind(lambda each, value=value: each == value))]


class Layouts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.package = self.folder / "module.tar"

    def compiled(self, model, *options):
        return json.loads(mill.check_program(self, "--json", "compile", model, *options, "-o", self.package))

    def run_on(self, **inputs):
        feed = self.folder / "in.npz"
        np.savez(feed, **inputs)
        return mill.run_package(self, self.package, feed, self.folder / "out.npz")

    def relay(self, model, stage, *options):
        self.compiled(model, "--dump-code", "relay", "--verify", "none", *options)
        return Graph((self.folder / "module.tar.relay").read_text(encoding="utf-8"), stage)

    def expect_close(self, got, want, tolerance=1e-5):
        self.assertEqual(got.shape, want.shape)
        self.assertLessEqual(np.abs(got - want).max(initial=0), tolerance * max(np.abs(want).max(initial=0), 1e-6))

    def test_answers(self):
        image = np.random.default_rng(0).random((1, 1, 28, 28), np.float32)
        self.compiled(DIGITS, *DIGITS_SHAPES, "-O", 0)
        want = self.run_on(image=image)["logits"]
        for layout in LAYOUTS:
            for level in (0, 3):
                with self.subTest(layout=layout, level=level):
                    said = self.compiled(DIGITS, *DIGITS_SHAPES, "-O", level, "--desired-layout", layout)
                    self.assertEqual(said["layout"]["desired"], layout)
                    self.assertGreater(said["layout"]["converted"], 4)
                    self.expect_close(self.run_on(image=image)["logits"], want)
        # The one node that joins channels and pixels is told by its name.
        self.assertEqual([(node["op"], "side by side" in node["reason"]) for node in said["layout"]["stayed"]], [("reshape", True)])
        metadata = json.loads(mill.check_program(self, "show", self.package, "--json"))
        self.assertEqual(metadata["options"]["desired_layout"], "NHWC")

    def test_answers_of_models_with_the_channels_last(self):
        values = json.loads((FIXTURES / "tflite/net_float32.values.json").read_text(encoding="utf-8"))
        image = np.array(values["image"], np.float32).reshape(1, 8, 8, 3)
        want = np.array(values["classes"], np.float32).reshape(1, 5)
        net = FIXTURES / "tflite/net_float32.tflite"
        for layout, level in (("NCHW", 0), ("NHWC", 0), ("NHWC", 3)):
            with self.subTest(layout=layout, level=level):
                self.compiled(net, "--input-shapes", "image:[1,8,8,3]", "-O", level, "--desired-layout", layout)
                self.expect_close(self.run_on(image=image)["output_0"], want)
        graph = self.relay(net, "convert_layout", "--input-shapes", "image:[1,8,8,3]", "--desired-layout", "NHWC")
        self.assertEqual(graph.count("transpose"), 0, "the model's own layout")
        self.assertTrue(all("channels_last: 1" in graph.attributes[value] for value, op in graph.op.items() if op.startswith("conv")))

    def test_integers(self):
        values = json.loads((FIXTURES / "tflite/net_int8.values.json").read_text(encoding="utf-8"))
        image = np.array(values["image"], np.int8).reshape(1, 8, 8, 3)
        want = np.array(values["classes"], np.int8).reshape(1, 5)
        for layout in LAYOUTS:
            self.compiled(FIXTURES / "tflite/net_int8.tflite", "--input-shapes", "image:[1,8,8,3]", "--desired-layout", layout)
            got = self.run_on(image=image)["output_0"]
            self.assertLessEqual(np.abs(got.astype(int) - want.astype(int)).max(), 1)

    def test_free_dims(self):
        """Extents that a run decides: the plan for all of them computes in the layout, too."""
        cases = json.loads((FIXTURES / "tflite/any_size.values.json").read_text(encoding="utf-8"))
        for layout in LAYOUTS:
            said = self.compiled(FIXTURES / "tflite/any_size.tflite", "--desired-layout", layout)
            self.assertEqual(said["generic_plan_refused"], "")
            self.assertGreater(said["layout"]["converted"], 0)
            for case in cases:
                image = np.array(case["image"], np.float32).reshape(case["shape"])
                want = np.array(case["map"], np.float32).reshape(case["map_shape"])
                self.expect_close(self.run_on(image=image)["output_0"], want)

    def test_operators_by_name(self):
        graph = self.relay(DIGITS, "alter_layout", *DIGITS_SHAPES, "--desired-layout", "NCHW", "--desired-layout-ops", "max_pool")
        self.assertGreater(graph.count("conv_blocked"), 0, "what is not asked for is as the compiler chooses")
        graph = self.relay(DIGITS, "alter_layout", *DIGITS_SHAPES, "--desired-layout", "NCHW", "--desired-layout-ops", "conv")
        self.assertEqual(graph.count("conv_blocked", "conv_first"), 0)

    def test_what_would_do_nothing_is_refused(self):
        last = ("--desired-layout", "NHWC")
        for code, words, options in ((3, "the model has no operator lrn; it has", (*last, "--desired-layout-ops", "lrn")),
                                     (2, 'no operator "Conv"', (*last, "--desired-layout-ops", "Conv")),
                                     (2, "matmul is the same in every layout", (*last, "--desired-layout-ops", "conv,matmul")),
                                     (2, "but no layout", ("--desired-layout-ops", "conv")),
                                     (3, "convert_layout", (*last, "--disabled-pass", "convert_layout")),
                                     (2, "NCHW8c", ("--desired-layout", "NCHW8c"))):
            done = mill.run_program("compile", DIGITS, *DIGITS_SHAPES, *options, "-o", self.package)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(words, done.stdout + done.stderr)

    def test_no_transpose_stands_between_convolutions(self):
        """Of the layouts that the compiler chooses: models come with their channels first or last."""
        for model, options in ((DIGITS, DIGITS_SHAPES),
                               (FIXTURES / "tflite/net_float32.tflite", ("--input-shapes", "image:[1,8,8,3]")),
                               (FIXTURES / "keras/net.keras", ())):
            with self.subTest(model=model.name):
                graph = self.relay(model, "choose_algorithms", *options)
                self.assertGreater(graph.count("conv_blocked", "conv_first", "conv_winograd", "conv_depthwise"), 1)
                self.assertEqual(graph.between_convolutions("transpose", "to_blocked", "from_blocked"), [])


    def test_a_model_and_its_twin_have_the_same_kernels(self):
        """Each convolution between transposes, and all else with the channels last, as converters of formats write it."""
        twin = self.folder / "twin.onnx"
        onnx.save(with_channels_last(onnx.load(DIGITS)), twin)
        kernels = []
        for model, shape in ((DIGITS, "[1,1,28,28]"), (twin, "[1,28,28,1]")):
            self.compiled(model, "--input-shapes", f"image:{shape}", "--verify", "none")
            facts = json.loads(mill.check_program(self, "show", self.package, "--json"))
            kernels.append((facts["num_steps"], sorted(kernel["symbol"] for kernel in facts["kernels"])))
        self.assertEqual(kernels[0], kernels[1])

    def test_tuning(self):
        net, keys = FIXTURES / "tflite/net_float32.tflite", []
        for options in ((), ("--desired-layout", "NHWC")):
            listed = mill.check_program(self, "--json", "tune", net, "--input-shapes", "image:[1,8,8,3]", "--tasks", "list", "--repeat", 1,
                                        "--number", 1, "--min-repeat-ms", 0, *options)
            keys.append({task["key"] for task in json.loads(listed)})
        self.compiled(net, "--input-shapes", "image:[1,8,8,3]", "--desired-layout", "NHWC", "--verify", "none")
        facts = json.loads(mill.check_program(self, "show", self.package, "--json"))
        self.assertEqual({kernel["task_key"] for kernel in facts["kernels"]}, keys[1], "the kernels that such a package has")
        self.assertNotEqual(keys[0], keys[1])


class LayoutsOfAServer(unittest.TestCase):
    def test_compile_jobs(self):
        server = serving.make_server(self)
        server.upload("digits", DIGITS.read_bytes())
        body = {"kind": "compile", "model": "digits", "target": "llvm -mcpu=native", "opt_level": 0,
                "input_shapes": {"image": [1, 1, 28, 28]}}
        packages = set()
        for more in ({}, {"desired_layout": "NCHW"}, {"desired_layout": "NHWC"},
                     {"desired_layout": "NHWC", "desired_layout_ops": ["max_pool", "conv"]}):
            answer = server.send_json("POST", "/v1/jobs", {**body, **more})
            job = server.finished(answer.json()["id"])
            self.assertEqual(job["state"], "succeeded", job["error"])
            packages.add(job["result"]["package"])
            self.assertEqual("layout" in job["result"], bool(more))
        self.assertEqual(len(packages), 4, "a layout is part of what a package is")
        self.assertEqual(job["resolved"]["desired_layout_ops"], ["conv", "max_pool"])
        stayed, = job["result"]["layout"]["stayed"] or [None]
        log = server.request("GET", f"/v1/jobs/{job['id']}/log").body.decode()
        self.assertEqual(stayed is not None, "is not computed in NHWC" in log)
        for more, pointer in (({"desired_layout_ops": ["conv"]}, "/desired_layout_ops"),
                              ({"desired_layout": "NHWC", "desired_layout_ops": ["Conv"]}, "/desired_layout_ops"),
                              ({"desired_layout": "NHWC", "disabled_pass": ["convert_layout"]}, "/disabled_pass")):
            answer = server.send_json("POST", "/v1/jobs", {**body, **more})
            self.assertEqual(answer.status, 422, answer.body)
            self.assertEqual(answer.json()["errors"][0]["pointer"], pointer)
        job = server.finished(server.send_json("POST", "/v1/jobs", {**body, "desired_layout": "NHWC", "desired_layout_ops": ["lrn"]}).json()["id"])
        self.assertEqual((job["state"], job["error"]["code"]), ("failed", "invalid_argument"))
        self.assertIn("the model has no operator lrn", job["error"]["detail"])


if __name__ == "__main__":
    unittest.main()
