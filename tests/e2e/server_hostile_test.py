"""Models, archives, tensors and requests that mean harm: each is refused with its code and leaves nothing behind."""

import io
import struct
import tarfile
import threading
import unittest
import zipfile

import numpy as np
from onnx import TensorProto, helper

import mill
import serving
from made_models import archive, external_model, model_of, one_node_model

FLOAT = TensorProto.FLOAT
DIGITS = mill.ROOT / "tests/models/digits.onnx"


def zipped(members, links=()):
    """A zip of (name, bytes) and of symbolic links (name, target)."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in members:
            packed.writestr(name, data)
        for name, target in links:
            info = zipfile.ZipInfo(name)
            info.create_system, info.external_attr = 3, 0o120777 << 16
            packed.writestr(info, target)
    return buffer.getvalue()


def sparse_tar(size):
    """An old GNU tar whose only member is a hole of `size` bytes."""
    info = tarfile.TarInfo("m.onnx")
    info.type = tarfile.GNUTYPE_SPARSE
    block = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    number = b"\x80" + struct.pack(">xxxQ", size)
    block[386:398], block[398:410] = number, b"00000000000\0"
    block[483:495] = number
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block) + bytes(1024)


def npz_of_header(descr, shape, data):
    """An NPZ whose one member "image" claims a shape."""
    head = repr({"descr": descr, "fortran_order": False, "shape": shape}).encode()
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("image.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + data)
    return buffer.getvalue()


class Hostile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = serving.make_server(cls)
        cls.server.upload("digits", DIGITS.read_bytes())
        cls.package = cls.server.compile("digits", {"image": [1, 1, 28, 28]})

    def setUp(self):
        self.before = serving.blobs(self.server)

    def tearDown(self):
        self.assertIsNone(self.server.process.poll(), self.server.log_tail())
        self.assertEqual(self.server.request("GET", "/readyz").status, 200)

    def problem(self, answer, status, code):
        self.assertEqual((answer.status, answer.json().get("code")), (status, code), answer.body)
        return answer.json()

    def refused(self, data, query=""):
        """Uploads what is no model: 422 `invalid_model`, and the store is as it was."""
        error = self.problem(self.server.upload("harm", data, query), 422, "invalid_model")
        self.assertEqual(serving.blobs(self.server), self.before)
        self.assertEqual(self.server.request("GET", "/v1/models/harm").status, 404)
        return error["detail"]

    def test_members_that_are_no_regular_files(self):
        model, weights = external_model("w.bin")
        for kind in (tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, tarfile.LNKTYPE, tarfile.SYMTYPE):
            for target in ("/dev/zero", "m.onnx", "../../catalog.db"):
                with self.subTest(kind=kind, target=target):
                    self.refused(archive([("m.onnx", model)], others=[("w.bin", kind, target)]))
        self.refused(zipped([("m.onnx", model)], links=[("w.bin", "/etc/passwd")]))
        through = archive([("m.onnx", external_model("d/w.bin")[0])], links=[("d", "/etc")])
        self.refused(through)
        self.refused(archive([("w.bin", weights)], links=[("m.onnx", "w.bin")]))

    def test_names_outside_the_archives_folder(self):
        model, weights = external_model("w.bin")
        for name in ("../w.bin", "/tmp/w.bin", "a/../../w.bin", "..", "a/..", "a//b", "a/./b", "\\\\host\\w.bin/.."):
            with self.subTest(name=name):
                self.refused(archive([("m.onnx", model), (name, weights)]))
                self.refused(zipped([("m.onnx", model), (name, weights)]))
                self.refused(archive([("m.onnx", external_model(name)[0]), ("w.bin", weights)]))

    def test_members_that_stand_twice(self):
        model, weights = external_model("w.bin")
        self.refused(archive([("m.onnx", model), ("w.bin", weights), ("w.bin", weights)]))
        self.refused(archive([("m.onnx", model), ("n.onnx", model), ("w.bin", weights)]))

    def test_bombs(self):
        model, _ = external_model("w.bin")
        zeros = bytes(64 << 20)
        inflated = zipped([("m.onnx", model), ("w.bin", zeros)])
        self.assertLess(len(inflated), 1 << 20)
        self.assertIn("unpacks", self.refused(inflated))
        self.assertIn("unpacks", self.refused(zipped([("m.onnx", model)] + [(f"{i}.bin", zeros[:8 << 20]) for i in range(8)])))
        self.refused(sparse_tar(1 << 40))
        # An archive in an archive stays packed: it is no model.
        self.refused(zipped([("inner.zip", inflated)]))

    def test_graphs_with_cycles(self):
        x, y = ("x", FLOAT, [2]), ("y", FLOAT, [2])
        add = lambda a, b, out: helper.make_node("Add", [a, b], [out], name=f"make_{out}")
        for nodes in ([add("x", "b", "a"), add("a", "x", "b"), add("a", "b", "y")], [add("x", "y", "y")],
                      [add("x", "x", "a"), add("a", "x", "a"), add("a", "a", "y")]):
            self.refused(model_of(nodes, [x], [y]))

    def test_models_with_more_bytes_than_there_are(self):
        huge = helper.make_tensor("w", FLOAT, [1], [0.0])
        for dims in ([1_000_000_000], [1_000_000_000] * 3, [1 << 62, 4], [-1], [0, 1 << 62]):
            with self.subTest(dims=dims):
                del huge.dims[:]
                huge.dims.extend(dims)
                self.refused(model_of([helper.make_node("Add", ["x", "w"], ["y"])], [("x", FLOAT, [1])],
                                      [("y", FLOAT, None)], [huge]))
        for key, value in (("offset", "8"), ("length", "17"), ("offset", "-1"), ("length", "99999999999999999999")):
            model, weights = external_model("w.bin")
            bent = mill.alive.onnx.load_from_string(model)
            for entry in bent.graph.initializer[0].external_data:
                if entry.key == key:
                    entry.value = value
            with self.subTest(key=key, value=value):
                self.refused(archive([("m.onnx", bent.SerializeToString()), ("w.bin", weights)]))

    def test_operators_that_ask_for_all_memory(self):
        shape = np.array([1_000_000_000, 1_000_000_000], np.int64)
        models = {"filled": one_node_model("ConstantOfShape", [], ("y", FLOAT, None), [("s", shape)]),
                  "expanded": one_node_model("Expand", [("x", FLOAT, [1])], ("y", FLOAT, None), [("s", shape)]),
                  "tiled": one_node_model("Tile", [("x", FLOAT, [1, 1])], ("y", FLOAT, None), [("s", shape)])}
        for name, model in models.items():
            with self.subTest(model=name):
                answer = self.server.upload(name, model)
                if answer.status == 201:
                    job = self.server.finished(self.server.submit(name).json()["id"])
                    self.assertEqual(job["state"], "failed")
                    self.assertIn(job["error"]["code"], ("invalid_model", "invalid_tensor", "memory_budget"))
                else:
                    self.assertIn(self.problem(answer, 422, answer.json()["code"])["code"],
                                  ("invalid_model", "memory_budget", "invalid_tensor"))

    def test_tensors_that_claim_more_than_they_have(self):
        self.server.deploy("digits", self.package)
        for descr, shape in (("<f4", (1_000_000_000, 1, 28, 28)), ("<f4", (1 << 40, 1 << 40)), ("<f8", (1_000_000_000,)),
                             ("<f4", (1, 1, 28, -28)), ("|O", (1,)), ("<U9999999", (1,)), ("<f4", (1, 1, 28, 28))):
            with self.subTest(descr=descr, shape=shape):
                body = npz_of_header(descr, shape, b"few")
                for path in ("/v1/deployments/digits/infer", f"/v1/packages/{self.package}/run"):
                    answer = self.server.request("POST", path, body, {"Content-Type": "application/x-npz"})
                    self.assertIn(answer.json()["code"], ("invalid_npz", "invalid_tensor", "too_large"), answer.body)
                    self.assertIn(answer.status, (400, 413, 422))

    def test_words_for_numbers(self):
        job = {"kind": "compile", "model": "digits", "target": "llvm -mcpu=native", "input_shapes": {"image": [1, 1, 28, 28]}}
        wrong = {"opt_level": ["3", 3.5, None, 1 << 70, -1, 5, True], "input_shapes": ["x", {"image": "1,1,28,28"}, {"image": [1, "x", {}, 28]}],
                 "disabled_pass": ["all", [1]], "force": ["yes", 1], "outputs": ["y", [7]], "target": [7, []], "model": [7, None],
                 "kind": [7, "bake"], "input_shape": [{}]}
        for member, values in wrong.items():
            for value in values:
                with self.subTest(member=member, value=value):
                    answer = self.server.send_json("POST", "/v1/jobs", {**job, member: value})
                    self.assertEqual(answer.status, 422, answer.body)
                    self.assertTrue(answer.json()["errors"][0]["pointer"].startswith(f"/{member}"), answer.body)
        for member, value in (("instances", "1"), ("keep_versions", 0.5), ("labels", [1]), ("preprocess", {"resize": "28"})):
            with self.subTest(member=member):
                answer = self.server.deploy("words", self.package, **{member: value})
                self.assertEqual(answer.status, 422, answer.body)
                self.assertEqual(self.server.request("GET", "/v1/deployments/words").status, 404)
        for text in ("{", "[]", "7", '{"kind":', '{"kind":"compile","kind":"compile"}', "\xff", "[" * 100_000, ""):
            with self.subTest(text=text[:20]):
                answer = self.server.request("POST", "/v1/jobs", text.encode("latin-1"), {"Content-Type": "application/json"})
                self.assertIn(answer.status, (400, 422), answer.body)

    def test_many_broken_uploads_at_once_leave_nothing(self):
        data = DIGITS.read_bytes()
        answers = []
        threads = [threading.Thread(target=lambda i=i: answers.append(self.server.upload(f"cut{i}", data[:-1 - i])))
                   for i in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual({a.status for a in answers} - {422, 503}, set())
        self.assertEqual(serving.blobs(self.server), self.before)


if __name__ == "__main__":
    unittest.main()
