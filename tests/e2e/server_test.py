"""The whole path through HTTP: upload, compile, run, deploy, infer, classify; and what a stranger may send."""

import hashlib
import random
import threading
import unittest

import numpy as np
from onnx import TensorProto, helper

import mill
import serving
from made_models import archive, external_model, mutated, one_node_model

MUTATIONS = 50
DIGITS = mill.ROOT / "tests/models/digits.onnx"
LABELS = (mill.ROOT / "tests/models/digits.labels.txt").read_text().split()
PICTURES = mill.ROOT / "tests/models/pictures"


class ServerTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = serving.make_server(cls)
        answer = cls.server.upload("digits", DIGITS.read_bytes())
        if answer.status != 201:
            raise AssertionError(answer.body)
        cls.model = answer.json()["id"]
        cls.package = cls.server.compile("digits", {"image": [1, 1, 28, 28]})

    def tearDown(self):
        self.assertIsNone(self.server.process.poll(), self.server.log_tail())
        self.assertEqual(self.server.request("GET", "/readyz").status, 200)

    def problem(self, answer, status, code):
        self.assertEqual((answer.status, answer.json().get("code")), (status, code), answer.body)
        self.assertEqual(answer.headers["Content-Type"], "application/problem+json")
        return answer.json()

    def test_uploading_the_same_again_is_200_and_other_bytes_need_replace(self):
        self.assertEqual(self.server.upload("digits", DIGITS.read_bytes()).status, 200)
        other = one_node_model("Relu", [("x", TensorProto.FLOAT, [2])], ("y", TensorProto.FLOAT, [2]))
        before = serving.blobs(self.server)
        self.problem(self.server.upload("digits", other), 409, "name_taken")
        self.assertEqual(serving.blobs(self.server), before)
        self.assertEqual(self.server.upload("movable", other).status, 201)
        self.assertEqual(self.server.upload("movable", DIGITS.read_bytes(), "&replace=1").status, 201)
        self.assertEqual(self.server.request("GET", "/v1/models/movable").json()["id"], self.model)
        self.assertEqual(self.server.request("DELETE", "/v1/models/movable").status, 204)
        self.problem(self.server.request("DELETE", f"/v1/models/{self.model}"), 409, "in_use")

    def test_a_second_compile_is_answered_from_the_first(self):
        answer = self.server.submit("digits", {"image": [1, 1, 28, 28]})
        self.assertEqual((answer.status, answer.json()["cached"]), (200, True))
        self.assertEqual(answer.json()["result"]["package"], self.package)

    def test_the_archive_is_what_the_command_line_writes(self):
        archive = self.server.request("GET", f"/v1/packages/{self.package}/archive")
        digest = "sha256:" + hashlib.sha256(archive.body).hexdigest()
        self.assertEqual(archive.headers["ETag"], f'"{digest}"')
        path = self.server.folder / "cli.tar"
        mill.check_program(self, "compile", DIGITS, "--input-shapes", "image:[1,1,28,28]", "-o", path)
        self.assertEqual(path.read_bytes(), archive.body)

    def test_the_code_of_every_stage(self):
        path = self.server.folder / "coded.tar"
        mill.check_program(self, "compile", DIGITS, "--input-shapes", "image:[1,1,28,28]", "-o", path,
                           "--dump-code", "relay,te,tir,ll,asm")
        for stage in ("relay", "te", "tir", "ll", "asm"):
            answer = self.server.request("GET", f"/v1/packages/{self.package}/code?stage={stage}")
            self.assertEqual(answer.status, 200, answer.body[:500])
            self.assertEqual(answer.body, (path.parent / f"coded.tar.{stage}").read_bytes(), stage)
        part = self.server.request("GET", f"/v1/packages/{self.package}/code?stage=asm", headers={"Range": "bytes=5-9"})
        self.assertEqual((part.status, part.body), (206, answer.body[5:10]))
        self.problem(self.server.request("GET", f"/v1/packages/{self.package}/code?stage=ptx"), 400, "invalid_request")
        unknown = "sha256:" + "0" * 64
        self.problem(self.server.request("GET", f"/v1/packages/{unknown}/code?stage=ll"), 404, "not_found")

    def test_the_graph_before_and_after_the_passes(self):
        imported = self.server.request("GET", "/v1/models/digits/graph").json()
        self.assertEqual(imported["stage"], "imported")
        optimized = self.server.request("GET", "/v1/models/digits/graph?stage=optimized").json()
        self.assertEqual((optimized["stage"], optimized["opt_level"]), ("optimized", 3))
        self.assertIn("fuse_operators", optimized["passes"])
        self.assertLess(len(optimized["nodes"]), len(imported["nodes"]))
        fused = [node for node in optimized["nodes"] if node["op"] == "fused"]
        self.assertTrue(fused and all(node["region"]["nodes"] for node in fused))
        self.assertEqual([i for i in optimized["inputs"]], imported["inputs"])
        again = self.server.request("GET", "/v1/models/digits/graph?stage=optimized")
        self.assertEqual(again.json(), optimized)
        self.problem(self.server.request("GET", "/v1/models/nothing/graph?stage=optimized"), 404, "not_found")

    def test_a_graph_shows_the_beginning_of_long_attributes(self):
        node = helper.make_node("RegexFullMatch", ["x"], ["y"], pattern="|".join(map(str, range(400))))
        graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", TensorProto.STRING, [6])],
                                  [helper.make_tensor_value_info("y", TensorProto.BOOL, [6])])
        data = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9).SerializeToString()
        self.assertEqual(self.server.upload("pattern", data).status, 201)
        nodes = self.server.request("GET", "/v1/models/pattern/graph").json()["nodes"]
        texts = [text for node in nodes for text in node.get("attributes", {}).values()]
        self.assertTrue(any(text.endswith(" ...") for text in texts), texts)
        self.assertLessEqual(max(map(len, texts)), 504)

    def test_a_removed_package_frees_its_blobs(self):
        data = one_node_model("Exp", [("x", TensorProto.FLOAT, [6])], ("y", TensorProto.FLOAT, [6]))
        before = serving.blobs(self.server)
        self.assertEqual(self.server.upload("freed", data).status, 201)
        model = self.server.request("GET", "/v1/models/freed").json()["id"]
        with_model = serving.blobs(self.server)
        package = self.server.compile("freed")
        log_only = set(serving.blobs(self.server)[0]) - set(with_model[0])
        self.assertGreaterEqual(len(log_only), 9, "members, texts of the stages, log")
        self.assertEqual(self.server.request("DELETE", f"/v1/packages/{package}").status, 204)
        kept = set(serving.blobs(self.server)[0]) - set(with_model[0])
        self.assertLessEqual(len(kept), 1, "the job's log alone")
        self.problem(self.server.request("GET", f"/v1/packages/{package}/archive"), 404, "not_found")
        self.assertEqual(self.server.submit("freed").status, 202, "what is gone is no answer from the cache")
        self.assertEqual(self.server.compile("freed"), package)
        self.assertEqual(self.server.request("GET", f"/v1/packages/{package}/archive").status, 200)
        self.assertEqual(self.server.request("DELETE", f"/v1/packages/{package}").status, 204)
        self.assertEqual(self.server.request("DELETE", "/v1/models/freed").status, 204)
        self.assertEqual(self.server.request("DELETE", f"/v1/models/{model}").status, 204)
        left = set(serving.blobs(self.server)[0]) - set(before[0])
        self.assertTrue(all(name.endswith(".zst") for name in left), left)

    def test_models_and_texts_are_packed_at_rest(self):
        names, _ = serving.blobs(self.server)
        digest = self.model.removeprefix("sha256:")
        stored = [name for name in names if digest in name]
        self.assertEqual([name.rsplit("/", 1)[1] for name in stored], [digest + ".zst"])

    def test_a_deployment_that_cannot_be_loaded_leaves_the_old_one_serving(self):
        self.assertIn(self.server.deploy("steady", self.package).status, (200, 201))
        error = self.problem(self.server.deploy("steady", self.package, max_batch=4, version="2"), 422, "invalid_argument")
        self.assertEqual(error["errors"][0]["pointer"], "/max_batch")
        now = self.server.request("GET", "/v1/deployments/steady").json()
        self.assertEqual((list(now["versions"]), now["default_version"]), (["1"], "1"))
        self.assertEqual(self.server.infer("steady", {"image": np.zeros((1, 1, 28, 28), np.float32)}).status, 200)
        self.problem(self.server.deploy("never", self.package, max_batch=4), 422, "invalid_argument")
        self.problem(self.server.request("GET", "/v1/deployments/never"), 404, "not_found")

    def test_versions_are_kept_as_asked(self):
        image = {"image": np.ones((1, 1, 28, 28), np.float32)}
        self.assertEqual(self.server.deploy("kept", self.package, version="1").status, 201)
        self.assertEqual(self.server.deploy("kept", self.package, version="2", keep_versions=2).status, 200)
        now = self.server.request("GET", "/v1/deployments/kept").json()
        self.assertEqual((sorted(now["versions"]), now["default_version"]), (["1", "2"], "2"))
        self.assertEqual(self.server.infer("kept", image).headers["X-Deployment-Version"], "2")
        self.problem(self.server.request("DELETE", "/v1/deployments/kept/versions/2"), 409, "in_use")
        self.assertEqual(self.server.request("DELETE", "/v1/deployments/kept/versions/1").status, 204)
        self.problem(self.server.request("DELETE", "/v1/deployments/kept/versions/1"), 404, "not_found")
        self.assertEqual(self.server.request("DELETE", "/v1/deployments/kept").status, 204)
        self.problem(self.server.infer("kept", image), 404, "not_found")

    def test_a_deadline_of_one_request(self):
        self.assertIn(self.server.deploy("digits", self.package).status, (200, 201))
        path = "/v1/deployments/digits/infer?fill_mode=ones&repeat=1000&timeout_ms=1"
        self.problem(self.server.request("POST", path), 504, "deadline_exceeded")
        self.problem(self.server.request("POST", "/v1/deployments/digits/infer?timeout_ms=0"), 400, "invalid_request")

    def test_run_infer_and_classify_agree(self):
        image = np.random.default_rng(1).random((1, 1, 28, 28), dtype=np.float32)
        run = self.server.run(self.package, {"image": image})
        self.assertEqual(run.status, 200, run.body)
        put = self.server.deploy("digits", self.package, labels=LABELS, preprocess={"resize": 28, "crop": 28, "color": "gray"})
        self.assertIn(put.status, (200, 201), put.body)
        infer = self.server.infer("digits", {"image": image})
        np.testing.assert_array_equal(serving.from_npz(run.body)["logits"], serving.from_npz(infer.body)["logits"])
        for picture in sorted(PICTURES.glob("*.png")):
            answer = self.server.request("POST", "/v1/deployments/digits/classify?top=3", picture.read_bytes(),
                                         {"Content-Type": "image/png"})
            self.assertEqual(answer.json()["top"][0]["label"], picture.stem)
        broken = self.server.request("POST", "/v1/deployments/digits/classify", b"\x89PNG\r\n\x1a\nno",
                                     {"Content-Type": "image/png"})
        self.problem(broken, 422, "invalid_image")

    def test_unknown_names(self):
        unknown = "sha256:" + "0" * 64
        for path in ("/v1/models/nothing", f"/v1/packages/{unknown}", "/v1/packages/nothing", "/v1/deployments/nothing",
                     "/v1/jobs/01890a5d-ac96-774b-bcce-b302099a8057"):
            self.problem(self.server.request("GET", path), 404, "not_found")
        error = self.problem(self.server.submit("nothing"), 422, "invalid_argument")
        self.assertEqual(error["errors"][0]["pointer"], "/model")
        error = self.problem(self.server.submit("digits", {"picture": [1]}), 422, "invalid_argument")
        self.assertEqual(error["errors"][0]["pointer"], "/input_shapes/picture")
        self.problem(self.server.submit("digits", target="llvm -mcpu=z80"), 422, "invalid_target")
        self.problem(self.server.deploy("x", unknown), 422, "invalid_argument")

    def test_a_string_for_a_number(self):
        self.problem(self.server.submit("digits", {}, opt_level="3"), 422, "invalid_argument")
        self.problem(self.server.send_json("POST", "/v1/jobs", "{"), 400, "invalid_json")

    def test_wrong_tensors(self):
        for inputs in ({"image": np.zeros((1, 1, 28, 27), np.float32)}, {"image": np.zeros((1, 1, 28, 28), np.float64)},
                       {"picture": np.zeros(1, np.float32)}, {}):
            self.problem(self.server.run(self.package, inputs), 422, "invalid_tensor")

    def test_shapes_past_all_memory(self):
        answer = self.server.submit("digits", {"image": [1000000000, 1, 28, 28]})
        self.assertEqual(answer.status, 202, answer.body)
        job = self.server.finished(answer.json()["id"])
        self.assertEqual(job["state"], "failed")
        self.assertIn(job["error"]["code"], ("invalid_model", "invalid_tensor", "memory_budget", "invalid_argument"))

    def test_an_unsupported_model_lists_all_nodes(self):
        nodes = [helper.make_node("Frobnicate", ["x"], ["a"], name="one"), helper.make_node("Twirl", ["a"], ["y"], name="two")]
        graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", 1, [2])],
                                  [helper.make_tensor_value_info("y", 1, [2])])
        data = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]).SerializeToString()
        before = serving.blobs(self.server)
        error = self.problem(self.server.upload("strange", data), 422, "operator_not_implemented")
        self.assertEqual([e["pointer"] for e in error["errors"]], ["one", "two"])
        self.assertEqual(serving.blobs(self.server), before)
        # With the file's graph, in which a reader sees where they are.
        graph = error["model"]["graph"]
        self.assertEqual([(node["op"], node["inputs"], node["outputs"], node["origins"]) for node in graph["nodes"]],
                         [("Frobnicate", ["x"], ["a"], ["one"]), ("Twirl", ["a"], ["y"], ["two"])])
        self.assertEqual((graph["inputs"], graph["outputs"], graph["values"]["x"]), (["x"], ["y"], {"type": "f32[2]", "constant": False}))

    def test_an_unsupported_model_without_end_is_refused_without_its_graph(self):
        nodes = [helper.make_node("Frobnicate", [f"v{i}"], [f"v{i + 1}"]) for i in range(10_001)]
        graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("v0", 1, [2])],
                                  [helper.make_tensor_value_info("v10001", 1, [2])])
        data = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]).SerializeToString()
        error = self.problem(self.server.upload("endless", data), 422, "operator_not_implemented")
        self.assertEqual((len(error["errors"]), "graph" in error["model"]), (10_001, False))

    def check_hostile(self, name, model, inputs):
        answer = self.server.upload(name, model)
        self.assertIn(answer.status, (200, 201), answer.body)
        package = self.server.compile(name)
        answer = self.server.deploy(name, package)
        self.assertIn(answer.status, (200, 201), answer.body)
        run, infer = self.server.run(package, inputs), self.server.infer(name, inputs)
        self.assertEqual(run.status, infer.status)
        if run.status == 200:
            in_child, in_server = serving.from_npz(run.body), serving.from_npz(infer.body)
            for key, value in in_child.items():
                np.testing.assert_array_equal(value, in_server[key])
        return infer

    def test_an_index_out_of_range(self):
        data = ("d", TensorProto.FLOAT, [4, 3])
        model = one_node_model("Gather", [data, ("i", TensorProto.INT64, [2])], ("y", TensorProto.FLOAT, [2, 3]), axis=0)
        inputs = {"d": np.arange(12, dtype=np.float32).reshape(4, 3), "i": np.array([1, 1 << 40])}
        self.problem(self.check_hostile("gather", model, inputs), 422, "tensor_data")

    def test_division_by_zero_and_the_smallest_integer(self):
        shape = [3]
        model = one_node_model("Div", [("a", TensorProto.INT32, shape), ("b", TensorProto.INT32, shape)],
                               ("y", TensorProto.INT32, shape))
        low = np.iinfo(np.int32).min
        answer = self.check_hostile("div", model, {"a": np.array([1, low, 7], np.int32), "b": np.array([0, -1, 2], np.int32)})
        if answer.status == 200:
            self.assertEqual(serving.from_npz(answer.body)["y"][2], 3)
        else:
            self.problem(answer, 422, "tensor_data")

    def test_nan_to_integer(self):
        model = one_node_model("Cast", [("x", TensorProto.FLOAT, [3])], ("y", TensorProto.INT32, [3]), to=TensorProto.INT32)
        answer = self.check_hostile("cast", model, {"x": np.array([np.nan, np.inf, 5], np.float32)})
        self.assertEqual(answer.status, 200, answer.body)
        self.assertEqual(serving.from_npz(answer.body)["y"][2], 5)

    def test_integers_that_trap_elsewhere(self):
        """Division by zero, the smallest integer by -1 and shifts past the width: the same defined value in a child
        and in the server, whatever the width."""
        for op, name, dtype, attributes in (("Div", "INT64", np.int64, {}), ("Mod", "INT32", np.int32, {}),
                                            ("Mod", "INT64", np.int64, {}), ("BitShift", "UINT32", np.uint32, {"direction": "LEFT"}),
                                            ("BitShift", "UINT64", np.uint64, {"direction": "RIGHT"})):
            with self.subTest(op=op, dtype=name):
                kind, info = getattr(TensorProto, name), np.iinfo(dtype)
                model = one_node_model(op, [("a", kind, [4]), ("b", kind, [4])], ("y", kind, [4]), **attributes)
                low = info.min or info.max
                last = 1000 if op == "BitShift" else -1
                inputs = {"a": np.array([low, 7, low, 9], dtype), "b": np.array([last, 0, 0, 2], dtype)}
                answer = self.check_hostile(f"{op}-{name}".lower(), model, inputs)
                self.assertEqual(answer.status, 200, answer.body)
                expected = {"Div": 4, "Mod": 1, "BitShift": 36 if attributes.get("direction") == "LEFT" else 2}[op]
                self.assertEqual(serving.from_npz(answer.body)["y"][3], expected)

    def test_floats_that_no_integer_holds(self):
        for name, dtype in (("INT8", np.int8), ("INT64", np.int64), ("UINT8", np.uint8)):
            with self.subTest(dtype=name):
                kind, info = getattr(TensorProto, name), np.iinfo(dtype)
                model = one_node_model("Cast", [("x", TensorProto.FLOAT, [5])], ("y", kind, [5]), to=kind)
                values = np.array([np.nan, np.inf, -np.inf, 1e30, 5.9], np.float32)
                answer = self.check_hostile(f"cast-{name}".lower(), model, {"x": values})
                self.assertEqual(answer.status, 200, answer.body)
                self.assertEqual(serving.from_npz(answer.body)["y"].tolist(), [0, info.max, info.min, info.max, 5])

    def test_indices_of_every_kind_out_of_range(self):
        data, index = ("d", TensorProto.FLOAT, [4, 3]), ("i", TensorProto.INT64, [2, 3])
        gather = one_node_model("Gather", [data, index], ("y", TensorProto.FLOAT, [2, 3, 3]), axis=0)
        elements = one_node_model("GatherElements", [data, index], ("y", TensorProto.FLOAT, [2, 3]), axis=0)
        d = np.arange(12, dtype=np.float32).reshape(4, 3)
        for name, model in (("gathers", gather), ("elements", elements)):
            for bad in (4, -5, np.iinfo(np.int64).max, np.iinfo(np.int64).min, 1 << 33):
                with self.subTest(op=name, index=bad):
                    i = np.array([[0, 1, 2], [3, -4, bad]])
                    self.problem(self.check_hostile(name, model, {"d": d, "i": i}), 422, "tensor_data")
            good = self.check_hostile(name, model, {"d": d, "i": np.array([[0, 1, 2], [3, -4, -1]])})
            self.assertEqual(good.status, 200, good.body)

    def test_mutated_archives(self):
        rng = random.Random(9)
        model, weights = external_model("w.bin")
        data = archive([("m.onnx", model), ("w.bin", weights)])
        before = serving.blobs(self.server)
        for i in range(MUTATIONS):
            answer = self.server.upload(f"bent{i}", mutated(data, rng), "&format=onnx-archive")
            self.assertIn(answer.status, (200, 201, 422), answer.body)
            if answer.status != 422:
                self.assertEqual(self.server.request("DELETE", f"/v1/models/bent{i}").status, 204)
                self.assertIn(self.server.request("DELETE", f"/v1/models/{answer.json()['id']}").status, (204, 404, 409))
        self.assertEqual(serving.blobs(self.server)[1], before[1])

    def test_mutated_models(self):
        rng, data = random.Random(7), DIGITS.read_bytes()
        before = serving.blobs(self.server)
        refused = 0
        for i in range(MUTATIONS):
            answer = self.server.upload(f"mutant{i}", mutated(data, rng))
            self.assertIn(answer.status, (200, 201, 422), answer.body)
            if answer.status == 422:
                refused += 1
                self.assertIn(answer.json()["code"], ("invalid_model", "operator_not_implemented",
                                                      "operator_attribute_not_implemented"), answer.body)
            else:
                self.assertEqual(self.server.request("DELETE", f"/v1/models/mutant{i}").status, 204)
                gone = self.server.request("DELETE", f"/v1/models/{answer.json()['id']}").status
                self.assertEqual(gone, 409 if answer.json()["id"] == self.model else 204)
        self.assertGreater(refused, MUTATIONS // 3)
        self.assertEqual(serving.blobs(self.server), before)

    def test_mutated_tensors(self):
        self.server.deploy("digits", self.package)
        rng = random.Random(8)
        data = serving.npz({"image": np.ones((1, 1, 28, 28), np.float32)})
        for _ in range(MUTATIONS):
            answer = self.server.request("POST", "/v1/deployments/digits/infer", mutated(data, rng),
                                         {"Content-Type": "application/x-npz"})
            self.assertIn(answer.status, (200, 400, 413, 422), answer.body)

    def test_weights_beside_the_model(self):
        model, weights = external_model("w.bin")
        answer = self.server.upload("outside", archive([("m.onnx", model), ("w.bin", weights)]), "&format=onnx-archive")
        self.assertEqual((answer.status, answer.json()["format"]), (201, "onnx-archive"), answer.body)
        package = self.server.compile("outside")
        run = self.server.run(package, {"x": np.ones(4, np.float32)})
        np.testing.assert_array_equal(serving.from_npz(run.body)["y"], [1, 2, 3, 4])

    def test_archives_that_reach_outside(self):
        plain, weights = external_model("w.bin")
        up, _ = external_model("../w.bin")
        absolute, _ = external_model("/etc/passwd")
        before = serving.blobs(self.server)
        for data in (archive([("m.onnx", plain)]), archive([("m.onnx", plain)], [("w.bin", "/etc/passwd")]),
                     archive([("m.onnx", up), ("w.bin", weights)]), archive([("m.onnx", absolute)]),
                     archive([("m.onnx", plain), ("../w.bin", weights)]), archive([("m.onnx", plain), ("w.bin", b"1234")]),
                     archive([("w.bin", weights)])):
            self.problem(self.server.upload("reaching", data), 422, "invalid_model")
        self.problem(self.server.upload("reaching", plain), 422, "invalid_model")
        self.assertEqual(serving.blobs(self.server), before)

    def test_the_same_upload_many_times_at_once(self):
        data = one_node_model("Abs", [("x", TensorProto.FLOAT, [5])], ("y", TensorProto.FLOAT, [5]))
        answers = []
        threads = [threading.Thread(target=lambda i=i: answers.append(self.server.upload(f"twin{i % 3}", data)))
                   for i in range(9)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual({a.status for a in answers} - {200, 201}, set())
        self.assertEqual(len({a.json()["id"] for a in answers}), 1)
        self.assertIsNotNone(self.server.compile("twin0"))

    def test_many_requests_at_once_get_their_own_answers(self):
        self.server.deploy("digits", self.package)
        images = [np.full((1, 1, 28, 28), i / 16, np.float32) for i in range(16)]
        expected = [serving.from_npz(self.server.infer("digits", {"image": i}).body)["logits"] for i in images]
        actual = [None] * len(images)

        def infer(index):
            actual[index] = serving.from_npz(self.server.infer("digits", {"image": images[index]}).body)["logits"]
        threads = [threading.Thread(target=infer, args=(i,)) for i in range(len(images))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        np.testing.assert_array_equal(actual, expected)

    def test_a_cancelled_job_leaves_no_process_and_can_be_retried(self):
        answer = self.server.upload("cancelled", mill.generated("resnet18").read_bytes())
        self.assertEqual(answer.status, 201, answer.body)
        name = answer.json()["inputs"][0]["name"]
        job = self.server.submit("cancelled", {name: [1, 3, 224, 224]}).json()["id"]
        serving.wait_for(self.server.children, "the compile's child")
        self.server.request("POST", f"/v1/jobs/{job}/cancel")
        self.assertEqual(self.server.finished(job)["state"], "cancelled")
        serving.wait_for(lambda: not self.server.children(), "the end of the child")
        self.assertEqual(self.server.request("POST", f"/v1/jobs/{job}/retry").status, 202)
        self.assertEqual(self.server.finished(job)["state"], "succeeded")

    def test_a_busy_port_and_a_public_address_are_refused(self):
        for address in (f"127.0.0.1:{self.server.port}", "0.0.0.0:0"):
            done = mill.run_program("serve", "--listen", address, "--data", self.server.folder / "other")
            self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(mill.run_program("serve", "--set", "no.such=1").returncode, 2)


class RestartTest(unittest.TestCase):
    def test_deployments_come_back(self):
        server = serving.make_server(self)
        server.upload("digits", DIGITS.read_bytes())
        package = server.compile("digits", {"image": [1, 1, 28, 28]})
        self.assertEqual(server.deploy("digits", package).status, 201)
        self.assertEqual(server.request("DELETE", f"/v1/packages/{package}").status, 409)
        self.assertEqual(server.stop(), 0)
        server.start()
        answer = server.infer("digits", {"image": np.zeros((1, 1, 28, 28), np.float32)})
        self.assertEqual(answer.status, 200, answer.body)
        self.assertEqual(server.request("DELETE", "/v1/deployments/digits").status, 204)
        self.assertEqual(server.request("DELETE", f"/v1/packages/{package}").status, 204)


if __name__ == "__main__":
    unittest.main()
