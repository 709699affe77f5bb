"""tensormill report: the numbers are those of compile and run, one page that loads nothing, hostile names as text."""

import html.parser
import json
import shutil
import tarfile
import tempfile
import unittest
from pathlib import Path

import numpy as np

import mill
import mnist_npz

DIGITS = mill.ROOT / "tests/models/digits.onnx"
SHAPES = ["--input-shapes", "image:[1,1,28,28]"]
SAMPLES = 60
ELEMENTS = {"html", "head", "meta", "title", "style", "body", "h1", "h2", "h3", "p", "code", "a", "div", "table", "tr", "th", "td",
            "ul", "li", "small", "svg", "text", "rect"}


class Page(html.parser.HTMLParser):
    """Elements, attributes and texts of a page."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.attributes, self.texts = set(), set(), []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.add(tag)
        self.attributes |= {(name, value) for name, value in attrs}

    def handle_data(self, data):
        self.texts.append(data)


class Report(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        pictures, labels = mnist_npz.load("t10k")
        cls.pictures = (pictures[:SAMPLES, None] / 255).astype(np.float32)
        cls.labels = labels[:SAMPLES].astype(np.int64)
        cls.set, cls.truth = cls.folder / "set.npz", cls.folder / "labels.npy"
        np.savez(cls.set, image=cls.pictures)
        np.save(cls.truth, cls.labels)

    def report(self, *args):
        return json.loads(mill.check_program(self, "report", "--json", *args))

    def answers(self, package):
        """What run says of each sample."""
        feed, told = self.folder / "one.npz", []
        for picture in self.pictures[:12]:
            np.savez(feed, image=picture[None])
            told.append(int(mill.run_package(self, package, feed, self.folder / "out.npz")["logits"].argmax()))
        return told

    def test_the_numbers_are_those_of_compile_and_run(self):
        packages, out = self.folder / "packages", self.folder / "report.json"
        made = self.report(DIGITS, *SHAPES, "--inputs", self.set, "--labels", self.truth, "--targets", "llvm -mcpu=native;llvm",
                           "--opt-levels", "0,3", "--packages", packages, "--repeat", 5, "--samples", 12, "-o", out)
        self.assertEqual(json.loads(out.read_text()), made)
        rows = made["configurations"]
        self.assertEqual([row["name"] for row in rows], ["digits native O0", "digits native O3", "digits llvm O0", "digits llvm O3"])
        told = self.answers(packages / "1.tar")
        for number, row in enumerate(rows):
            package = packages / f"{number}.tar"
            shown = json.loads(mill.check_program(self, "show", package, "--json"))
            self.assertEqual((row["state"], row["package"]["id"], row["target"]), ("ok", shown["id"], shown["target"]))
            with tarfile.open(package) as archive:
                self.assertEqual(row["package"]["parts"], {member.name: member.size for member in archive})
            self.assertEqual(row["package"]["archive_bytes"], package.stat().st_size)
            times = row["run"]["times"]
            self.assertEqual((len(times["runs_ms"]), times["median_ms"]), (5, sorted(times["runs_ms"])[2]))
            self.assertAlmostEqual(times["mean_ms"], sum(times["runs_ms"]) / 5)
            self.assertEqual(set(json.loads(mill.check_program(self, "run", package, "--json"))) | {"p95_ms"}, set(times))
            self.assertEqual((row["run"]["samples"], row["run"]["batch"]), (12, 1))
            matrix = np.zeros((10, 10), int)
            np.add.at(matrix, (self.labels[:12], told), 1)
            here = [one["class"] for one in row["quality"]["classes"]]
            self.assertEqual(row["quality"]["confusion"], matrix[np.ix_(here, here)].tolist())
            self.assertEqual(row["quality"]["right"], int((self.labels[:12] == told).sum()))
            self.assertGreater(row["run"]["max_resident_bytes"], row["package"]["arena_bytes"])
        self.assertTrue(any("default schedule" in line for line in rows[1]["remarks"]))
        self.assertTrue(any("takes" in line for line in rows[1]["remarks"]))

    def test_layouts_are_configurations(self):
        made = self.report(DIGITS, *SHAPES, "--inputs", self.set, "--labels", self.truth, "--opt-levels", "0", "--layouts", "NCHW,NHWC",
                           "--repeat", 1, "--samples", 12)
        rows = made["configurations"]
        self.assertEqual([(row["name"], row["layout"], row["state"]) for row in rows],
                         [(f"digits native O0 {layout}", layout, "ok") for layout in ("NCHW", "NHWC")])
        self.assertEqual(rows[0]["quality"]["confusion"], rows[1]["quality"]["confusion"])
        self.assertNotEqual(rows[0]["package"]["id"], rows[1]["package"]["id"])
        self.assertTrue(any("is not computed in NHWC" in line for line in rows[1]["remarks"]), rows[1]["remarks"])

    def test_batches_and_sets_that_do_not_fit(self):
        row, = self.report(DIGITS, "--input-shapes", "image:[20,1,28,28]", "--opt-levels", 0, "--inputs", self.set, "--labels", self.truth,
                           "--repeat", 1)["configurations"]
        self.assertEqual((row["run"]["batch"], row["run"]["samples"], row["quality"]["samples"]), (20, 60, 60))
        self.assertGreater(row["quality"]["accuracy"], 0.9)
        wrong = self.folder / "wrong.npz"
        np.savez(wrong, image=self.pictures[:, :, :27])
        for words, args in (("[1,1,27,28]", ["--inputs", wrong]), ("multiple", ["--inputs", self.set, "--input-shapes", "image:[7,1,28,28]"]),
                            ("class number", ["--inputs", self.set, "--labels", DIGITS]), ("0 to 4", ["--inputs", self.set, "--opt-levels", "3-1"]),
                            ("z80", ["--inputs", self.set, "--targets", "llvm -mcpu=z80"])):
            shapes = [] if "--input-shapes" in args else SHAPES
            levels = [] if "--opt-levels" in args else ["--opt-levels", 0]
            done = mill.run_program("report", DIGITS, *shapes, *levels, *args)
            self.assertIn(done.returncode, (2, 3), done.stderr)
            self.assertIn(words, done.stdout + done.stderr)

    def test_hostile_names_are_text_on_a_page_that_loads_nothing(self):
        evil = '<img src=x onerror="alert(1)">'
        model, classes, page = self.folder / f"{evil.replace('/', '')}.onnx", self.folder / "classes.txt", self.folder / "report.html"
        shutil.copy(DIGITS, model)
        names = [f"</td><script>{number}</script>" for number in range(9)] + ['"><svg onload=alert(1)> \u202e']
        classes.write_text("\n".join(names))
        done = mill.run_program("report", model, *SHAPES, "--inputs", self.set, "--labels", self.truth, "--classes", classes,
                                "--opt-levels", "1", "--layouts", "NCWH", "--repeat", 1, "-o", page)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("NCWH", done.stderr)
        mill.check_program(self, "report", model, *SHAPES, "--inputs", self.set, "--labels", self.truth, "--classes", classes,
                           "--opt-levels", "1", "--repeat", 1, "-o", page)
        text = page.read_text()
        found = Page(text)
        self.assertEqual(found.elements - ELEMENTS, set())
        self.assertEqual({name for name, _ in found.attributes if name.startswith("on") or name in ("src", "srcset", "xlink:href")}, set())
        self.assertEqual({value[0] for name, value in found.attributes if name == "href"}, {"#"})
        self.assertNotIn("\u202e", text)
        self.assertIn("default-src 'none'", text)
        shown = "".join(found.texts)
        here = [names[number] for number in set(self.labels.tolist()) if "\u202e" not in names[number]]
        self.assertGreater(len(here), 5)
        for name in (evil, *here):
            self.assertIn(name, shown)


if __name__ == "__main__":
    unittest.main()
