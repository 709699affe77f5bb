"""TensorFlow's frozen graphs and SavedModels against what TensorFlow makes of them: by the command line, with a free batch, over HTTP,
and by way of the project's own graph files.

The models and their answers are made by tests/fixtures/tensorflow_nets and tests/fixtures/tensorflow_ops (`./dev fixtures`).
"""

import json
import shutil
import unittest
import zipfile
from pathlib import Path

import mill
import numpy as np
import serving
from fixture_case import FixtureCase, arrays_of

FIXTURES = mill.ROOT / "tests/fixtures"
NETS = FIXTURES / "tensorflow_nets"


def rows_of(name):
    """What goes in, and what comes out."""
    arrays = mill.load_npz(NETS / f"{name}.npz")
    return arrays["in.0"], arrays["out.0"]


class Tensorflow(FixtureCase):
    TOLERANCE = 1e-4

    def check_result(self, got, want):
        self.assertEqual(len(got), 1)
        self.check("result", next(iter(got.values())), want)

    def saved_model(self):
        """The SavedModel as a folder."""
        with zipfile.ZipFile(NETS / "mobile.zip") as archive:
            archive.extractall(self.folder / "saved")
        return self.folder / "saved/mobile"

    def test_one_network_in_every_form_with_a_free_batch(self):
        image, want = rows_of("mobile")
        folder = self.saved_model()
        tar = shutil.make_archive(str(self.folder / "packed"), "tar", folder.parent)
        for model in (folder, NETS / "mobile.zip", tar, NETS / "mobile.pb", NETS / "mobile_fused.pb"):
            with self.subTest(model=Path(model).name):
                said = json.loads(mill.check_program(self, "--json", "show", model))
                self.assertEqual(said["format"], "frozen-graph" if str(model).endswith(".pb") else "saved-model")
                self.compile(model, "-O", 1)
                for rows in ([0, 1], [1], [0, 1, 1]):
                    self.check_result(self.run_on({said["inputs"][0]["name"]: image[rows]}), want[rows])

    def graph_model(self, name="mobile_graph_model"):
        """A graph model of TensorFlow.js as a folder."""
        with zipfile.ZipFile(NETS / f"{name}.zip") as archive:
            archive.extractall(self.folder / name)
        return self.folder / name / "net"

    def test_graph_models_of_tensorflow_js(self):
        image, want = rows_of("mobile")
        folder = self.graph_model()
        tar = shutil.make_archive(str(self.folder / "packed"), "tar", folder.parent)
        for model in (folder, folder / "model.json", NETS / "mobile_graph_model.zip", tar):
            with self.subTest(model=Path(model).name):
                said = json.loads(mill.check_program(self, "--json", "show", model))
                self.assertEqual((said["format"], said["inputs"][0]["name"], said["outputs"][0]["name"]),
                                 ("tfjs-graph", "picture", "classes"))
        self.compile(folder / "model.json", "-O", 1)
        for rows in ([0, 1], [1], [0, 1, 1]):
            self.check_result(self.run_on({"picture": image[rows]}), want[rows])
        server = serving.make_server(self)
        answer = server.upload("net", (NETS / "mobile_graph_model.zip").read_bytes())
        self.assertEqual((answer.status, answer.json()["format"]), (201, "tfjs-graph"), answer.body)
        package = server.compile("net", {"picture": list(image.shape)})
        self.check_result(serving.from_npz(server.run(package, {"picture": image}).body), want)

    def test_graph_models_that_are_broken(self):
        folder = self.graph_model()
        model, shard = folder / "model.json", folder / "group1-shard2of2.bin"
        text, data = model.read_text(encoding="utf-8"), shard.read_bytes()
        shard.write_bytes(data[:-1])
        cases = [("too short for it", text)]
        for what, words, told in (("a path", '"group1-shard1of2.bin"', "no name of a file beside it"), ("a type", '"DT_FLOAT"', ""),
                                  ("a shape", '"shape": [8]', "too short for it")):
            self.assertIn(words, text)
            cases.append((told, text.replace(words, {"a path": '"../weights.bin"', "a type": '"DT_STRANGE"', "a shape": '"shape": [9]'}[what])))
        for told, changed in cases:
            model.write_text(changed, encoding="utf-8")
            done = mill.run_program("compile", folder, "-o", self.package)
            self.assertIn(done.returncode, (3, 4), done.stderr)
            self.assertIn(told, done.stderr)
            shard.write_bytes(data)
        model.write_text(text, encoding="utf-8")
        shard.unlink()
        done = mill.run_program("compile", model, "-o", self.package)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("group1-shard2of2.bin", done.stderr)
        server = serving.make_server(self)
        answer = server.upload("alone", text.encode())
        self.assertEqual(answer.status, 422, answer.body)
        self.assertIn('no file "group1-shard1of2.bin" of weights beside model.json', answer.json()["detail"])

    def check_arrays(self, path, model):
        """Compiles the model, and holds its results against those of the file, which it gives back."""
        inputs, wanted = arrays_of(path)
        self.compile(model, "-O", 1)
        got = self.run_on(inputs)
        self.assertEqual(set(got), set(wanted))
        for name, want in wanted.items():
            with self.subTest(case=name):
                if want.dtype.kind == "U":
                    self.assertEqual(got[name].tolist(), want.tolist())
                    continue
                self.assertEqual((got[name].dtype, got[name].shape), (want.dtype, want.shape))
                np.testing.assert_allclose(got[name], want, rtol=1e-5, atol=1e-5)
        return mill.load_npz(path)

    def test_results_as_long_as_a_run_decides(self):
        for family in ("counted", "of_run", "rows", "mapped_rows", "mapped_tables", "chosen", "text_grams", "sparse_chosen", "searched"):
            self.check_arrays(FIXTURES / f"tensorflow_ops/{family}.npz", FIXTURES / f"tensorflow_ops/{family}.pb")

    def test_integers_of_ranges(self):
        for family in ("quantized_steps", "quantized_graphs"):
            self.check_arrays(FIXTURES / f"tensorflow_ops/{family}.npz", FIXTURES / f"tensorflow_ops/{family}.pb")

    def test_recurrent(self):
        rows, want = rows_of("recurrent")
        self.compile(NETS / "recurrent.pb", "-O", 1, "--input-shapes", "rows:[2,4,3]")
        self.check_result(self.run_on({"rows": rows}), want)

    def test_words_and_sentences(self):
        """Tables out of a file of the model, and sentences that are split into words, of any number."""
        arrays = mill.load_npz(NETS / "text.npz")
        words, sentence = arrays["in.words"], arrays["in.sentence"]
        with zipfile.ZipFile(NETS / "labels.zip") as archive:
            archive.extractall(self.folder)
        for model in (NETS / "labels.zip", self.folder / "labels"):
            self.compile(model, "-O", 1)
            for rows in (slice(None), slice(2, 3)):
                got = self.run_on({"words": words[rows]})
                for name in ("numbers", "known", "marked"):
                    self.assertEqual(got[name].tolist(), arrays[f"out.{name}"][rows].tolist(), name)
        self.compile(NETS / "sentences.zip", "-O", 1)
        for rows in ([0, 1, 2, 3], [2], [3, 1, 0]):
            self.check_result(self.run_on({"sentence": sentence[rows]}), arrays["out.output_0"][rows])
        server = serving.make_server(self)
        answer = server.upload("labels", (NETS / "labels.zip").read_bytes())
        self.assertEqual(answer.status, 201, answer.body)
        package = server.compile("labels", {"words": [2]})
        got = serving.from_npz(server.run(package, {"words": words[:2]}).body)
        self.assertEqual(got["known"].tolist(), ["dog", "cat"])

    def test_tables_of_the_checkpoint(self):
        arrays = mill.load_npz(NETS / "learned.npz")
        model = NETS / "learned.zip"
        self.compile(model, "-O", 1)
        for count in (slice(None), slice(1, 3)):
            got = self.run_on({"word": arrays["in.word"][count], "number": arrays["in.number"][count]})
            for name in ("ids", "dense", "row"):
                self.assertEqual(got[name].tolist(), arrays[f"out.{name}"][count].tolist(), name)
            for name in ("size", "sum"):
                self.assertEqual(got[name].tolist(), arrays[f"out.{name}"].tolist(), name)
        done = mill.run_program("compile", model, "--signature", "learn", "-o", self.package)
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn("op LookupTableInsertV2: it changes a variable or a table, and a package keeps nothing between runs", done.stderr)

    def test_layers_of_words_and_letters(self):
        arrays = self.check_arrays(NETS / "layers.npz", NETS / "layers.zip")
        for rows in ([2, 0], [3]):
            got = self.run_on({"text": arrays["in.text"][rows], "pair": arrays["in.pair"][rows]})
            for name in ("counts", "weights", "letters", "hash", "crossed"):
                np.testing.assert_allclose(got[name], arrays[f"out.{name}"][rows], rtol=1e-6, err_msg=name)

    def test_rows_of_different_lengths_in_a_signature(self):
        arrays = self.check_arrays(NETS / "rows.npz", NETS / "rows.zip")
        for ends, why in ((np.array([0, 3, 2, 8], np.int64), "a row ends before it begins"), (np.array([0, 3], np.int64), "rows do not end where the elements do")):
            np.savez(self.folder / "wrong.npz", words=arrays["in.words"], words_1=ends)
            done = mill.run_program("run", self.package, "-i", self.folder / "wrong.npz", "-o", self.folder / "out.npz")
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(why, done.stderr)

    def test_loops_over_any_number_of_rows(self):
        arrays = self.check_arrays(NETS / "mapped.npz", NETS / "mapped.zip")
        for count in (1, 2, 6):
            got = self.run_on({"x": arrays["in.x"][:count]})
            for name, array in got.items():
                np.testing.assert_allclose(array, arrays[f"out.{name}"][:count], rtol=1e-5, atol=1e-5, err_msg=f"{name} of {count} rows")

    def test_loops_that_read_the_rows_beside_their_own(self):
        x = self.check_arrays(NETS / "neighbours.npz", NETS / "neighbours.zip")["in.x"]
        for count in (2, 4):
            got, decayed = self.run_on({"x": x[:count]}), np.zeros(2, np.float32)
            for row, following in zip(x[:count], x[1:count]):
                decayed = decayed * np.float32(0.5) + following * row
            want = {"ahead": np.diff(x[:count], axis=0), "behind": x[1:count] + x[:count - 1], "of_list": x[1:count] * x[:count - 1], "decayed": decayed}
            for name, array in got.items():
                np.testing.assert_allclose(array, want[name], rtol=1e-5, atol=1e-5, err_msg=f"{name} of {count} rows")

    def test_loops_over_rows_of_different_lengths(self):
        arrays = self.check_arrays(NETS / "uneven_rows.npz", NETS / "uneven_rows.zip")
        for lengths in ([2, 4, 1], [0, 3], [1]):
            x = arrays["in.x"][:sum(lengths)]
            rows = np.split(x, np.cumsum(lengths)[:-1])
            got = self.run_on({"x": x, "x_1": np.cumsum([0, *lengths]).astype(np.int64)})
            want = {"sums": [row.sum() for row in rows], "scaled": np.concatenate([row * 2 + row.sum() for row in rows]), "ends": np.cumsum([0, *lengths]),
                    "positive": x[x > 0], "positive_ends": np.cumsum([0, *((row > 0).sum() for row in rows)])}
            for name, array in got.items():
                np.testing.assert_allclose(array, want[name], rtol=1e-5, atol=1e-5, err_msg=f"{name} of rows of {lengths}")

    def test_loops_of_frames_over_any_number_of_rows(self):
        arrays = self.check_arrays(NETS / "frames.npz", NETS / "frames.pb")
        for count in (1, 2, 4):
            got = self.run_on({"x": arrays["in.x"][:count]})
            state = np.ones(3, np.float32)
            for row in arrays["in.x"][:count]:
                state = state * np.float32(0.5) + row
            for name, array in got.items():
                want = state if name == "state" else arrays[f"out.{name}"][:count]
                np.testing.assert_allclose(array, want, rtol=1e-5, atol=1e-5, err_msg=f"{name} of {count} rows")

    def test_tables_of_a_checkpoint_that_is_cut_off(self):
        with zipfile.ZipFile(NETS / "learned.zip") as archive:
            archive.extractall(self.folder)
        data = self.folder / "learned/variables/variables.data-00000-of-00001"
        whole = data.read_bytes()
        data.write_bytes(whole.replace("öl".encode(), "ol ".encode()))
        done = mill.run_program("compile", self.folder / "learned", "-o", self.package)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("its strings have another checksum than the index says", done.stderr)

    def test_files_of_tables_that_are_not_there(self):
        with zipfile.ZipFile(NETS / "labels.zip") as archive:
            archive.extractall(self.folder)
        (self.folder / "labels/assets/words.txt").unlink()
        done = mill.run_program("compile", self.folder / "labels", "-o", self.package)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn('there is no file "assets/words.txt", which a table is filled from', done.stderr)

    def test_signatures(self):
        net = FIXTURES / "tensorflow/net"
        self.compile(net, "--signature", "serve", "--input-shapes", "image:[1,8,8,3]")
        done = mill.run_program("compile", net, "--signature", "train", "-o", self.package)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn('the model has no signature "train"; it has serve, serving_default', done.stderr)

    def test_all_that_is_missing_is_told_at_once(self):
        model = self.folder / "missing.pb"
        data = (NETS / "mobile.pb").read_bytes()
        model.write_bytes(data.replace(b"\x12\x05Relu6", b"\x12\x05Fancy").replace(b"\x12\x07Softmax", b"\x12\x07Hardmax"))
        done = mill.run_program("compile", model, "-o", self.package)
        self.assertEqual(done.returncode, 4, done.stderr)
        for words in ("2 operators are not supported", "op Fancy, 3 nodes, T float32", "op Hardmax, 1 node"):
            self.assertIn(words, done.stderr)
        self.assertIn("not supported: op Fancy", mill.check_program(self, "show", model))

    def test_variables_that_are_cut_off(self):
        folder = self.saved_model()
        data = folder / "variables/variables.data-00000-of-00001"
        data.write_bytes(data.read_bytes()[:-100])
        done = mill.run_program("compile", folder, "-o", self.package)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("variables", done.stderr)

    def test_graph_file(self):
        image, want = rows_of("mobile")
        graph = self.folder / "net.tmg"
        mill.check_program(self, "import", NETS / "mobile.zip", "-o", graph)
        self.compile(graph, "-O", 1, "--input-shapes", "image:[2,16,16,3]")
        self.check_result(self.run_on({"image": image}), want)

    def test_server(self):
        image, want = rows_of("mobile")
        server = serving.make_server(self)
        for name, model in (("saved", NETS / "mobile.zip"), ("frozen", NETS / "mobile.pb")):
            answer = server.upload(name, model.read_bytes())
            self.assertEqual(answer.status, 201, answer.body)
            package = server.compile(name, {"image": list(image.shape)})
            self.check_result(serving.from_npz(server.run(package, {"image": image}).body), want)
        answer = server.upload("missing", (NETS / "mobile.pb").read_bytes().replace(b"\x12\x05Relu6", b"\x12\x05Fancy"))
        self.assertEqual((answer.status, answer.json()["code"]), (422, "operator_not_implemented"), answer.body)


if __name__ == "__main__":
    unittest.main()
