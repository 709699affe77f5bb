"""A report as a job: its numbers are those of run and of compile jobs, it can be cancelled, what it costs is bounded."""

import hashlib
import json
import unittest

import numpy as np

import mill
import mnist_npz
import serving
from report_test import ELEMENTS, Page

DIGITS = mill.ROOT / "tests/models/digits.onnx"
SHAPES = {"image": [1, 1, 28, 28]}
SAMPLES = 24


class ReportJobs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = serving.make_server(cls)
        cls.uploads = {}
        cls.server.upload("digits", DIGITS.read_bytes())
        pictures, labels = mnist_npz.load("t10k")
        cls.pictures = (pictures[:SAMPLES, None] / 255).astype(np.float32)
        cls.labels = labels[:SAMPLES].astype(np.int64)
        cls.inputs = cls.blob(serving.npz({"image": cls.pictures}))
        cls.truth = cls.blob("\n".join(map(str, cls.labels)).encode())

    @classmethod
    def blob(cls, data):
        """Uploaded and kept, though nothing names it; its id."""
        upload = cls.server.request("POST", "/v1/uploads").headers["Location"]
        cls.server.request("PATCH", upload, data, {"Content-Range": f"0-{len(data) - 1}"})
        digest = "sha256:" + hashlib.sha256(data).hexdigest()
        cls.uploads[digest] = upload
        done = cls.server.request("PUT", f"{upload}?digest={digest}")
        assert done.status == 201, done.body
        return digest

    def submit(self, **more):
        body = {"kind": "report", "models": ["digits"], "input_shapes": SHAPES, "inputs": self.inputs, "repeat": 3, **more}
        return self.server.send_json("POST", "/v1/jobs", body)

    def report(self, **more):
        answer = self.submit(**more)
        self.assertIn(answer.status, (200, 202), answer.body)
        job = self.server.finished(answer.json()["id"])
        self.assertEqual(job["state"], "succeeded", job["error"])
        return job, self.server.request("GET", f"/v1/jobs/{job['id']}/report").json()

    def test_the_numbers_are_those_of_run_and_of_compile_jobs(self):
        job, made = self.report(opt_levels=[0, 3], labels=self.truth, classes=[f"digit {number}" for number in range(10)])
        self.assertEqual(job["result"], {"configurations": 2, "ok": 2})
        self.assertEqual((made["job"], made["state"], made["samples"]), (job["id"], "succeeded", SAMPLES))
        for level, row in zip((0, 3), made["configurations"]):
            self.assertEqual((row["name"], row["state"], row["opt_level"]), (f"digits native O{level}", "ok", level))
            package = self.server.compile("digits", SHAPES, opt_level=level)
            self.assertEqual(row["package"]["id"], package, "a compile job makes the same bytes")
            archive = self.server.request("GET", f"/v1/packages/{package}/archive").body
            self.assertEqual(row["package"]["archive_bytes"], len(archive))
            self.assertEqual(len(row["run"]["times"]["runs_ms"]), 3)
            told = [int(serving.from_npz(self.server.run(package, {"image": one[None]}).body)["logits"].argmax()) for one in self.pictures]
            matrix = np.zeros((10, 10), int)
            np.add.at(matrix, (self.labels, told), 1)
            here = [one["class"] for one in row["quality"]["classes"]]
            self.assertEqual(row["quality"]["confusion"], matrix[np.ix_(here, here)].tolist())
            self.assertEqual(row["quality"]["classes"][0]["name"], f"digit {here[0]}")
            self.assertGreater(row["run"]["max_resident_bytes"], row["package"]["arena_bytes"])
            self.assertGreater(row["compile"]["max_resident_bytes"], 0)
            self.assertTrue(any("takes" in line for line in row["remarks"]))
        listed = self.server.request("GET", "/v1/jobs?kind=report").json()["items"]
        self.assertIn(job["id"], [one["id"] for one in listed])

    def test_what_it_reads_stays_though_its_upload_goes(self):
        inputs, truth = self.blob(serving.npz({"image": self.pictures[:2]})), self.blob(b"7\n2\n\n")
        waits = self.submit(opt_levels=[0, 3], repeat=100_000, number=100_000, time_budget_s=86_400).json()["id"]
        job = self.submit(inputs=inputs, labels=truth, opt_levels=[0]).json()["id"]
        gone = self.blob(b"a blob that nothing names")
        for digest in (inputs, truth, gone):
            self.assertEqual(self.server.request("DELETE", self.uploads[digest]).status, 204)
        there = lambda digest: self.server.request("HEAD", f"/v1/blobs/{digest}").status
        look = lambda: (self.server.request("POST", "/v1/gc").status, there(gone), there(inputs), there(truth))
        # The attempt that runs holds what came since it began, named or not.
        self.assertEqual(look()[2:], (200, 200), "the job is live")
        for one in (job, waits):
            self.server.request("POST", f"/v1/jobs/{one}/cancel")
            self.assertEqual(self.server.finished(one)["state"], "cancelled")
        self.assertEqual(look(), (200, 404, 200, 200), "it may be tried again")
        self.assertEqual(self.server.request("POST", f"/v1/jobs/{job}/retry").status, 202)
        self.assertEqual(self.server.finished(job)["state"], "succeeded")
        self.assertEqual(look(), (200, 404, 200, 200), "its document names them")

    def test_a_row_that_fails_is_no_failure_of_the_others(self):
        wrong = self.blob(serving.npz({"image": self.pictures[:, :, :27]}))
        job, made = self.report(inputs=wrong, opt_levels=[0])
        self.assertEqual(job["result"], {"configurations": 1, "ok": 0})
        row, = made["configurations"]
        self.assertEqual((row["state"], row["error"]["step"], row["error"]["code"]), ("failed", "run", "invalid_tensor"))
        self.assertEqual(self.report(inputs=self.blob(b"no archive"), opt_levels=[0])[1]["configurations"][0]["error"]["code"], "invalid_npz")
        # Code for another kind of machine is compiled, and not run.
        job, made = self.report(targets=["llvm -mcpu=native", "llvm -mcpu=cortex-a72"], opt_levels=[0])
        self.assertEqual([row["state"] for row in made["configurations"]], ["ok", "failed"])
        foreign = made["configurations"][1]
        self.assertEqual((foreign["error"]["step"], foreign["error"]["code"]), ("run", "not_supported"))
        self.assertGreater(foreign["package"]["archive_bytes"], 0)

    def test_layouts_are_configurations(self):
        _, made = self.report(opt_levels=[0], layouts=["NCHW", "NHWC"], labels=self.truth)
        rows = made["configurations"]
        self.assertEqual([(row["name"], row["layout"], row["state"]) for row in rows],
                         [(f"digits native O0 {layout}", layout, "ok") for layout in ("NCHW", "NHWC")])
        self.assertEqual(rows[1]["package"]["id"], self.server.compile("digits", SHAPES, opt_level=0, desired_layout="NHWC"))
        self.assertTrue(any("is not computed in NHWC" in line for line in rows[1]["remarks"]), rows[1]["remarks"])

    def test_the_page_loads_nothing_and_hostile_names_are_text(self):
        names = [f"</td><script>{number}</script>" for number in range(10)]
        job, _ = self.report(opt_levels=[1], labels=self.truth, classes=names)
        answer = self.server.request("GET", f"/v1/jobs/{job['id']}/report?format=html")
        self.assertTrue(answer.headers["Content-Type"].startswith("text/html"))
        self.assertIn("sandbox", answer.headers["Content-Security-Policy"])
        page = Page(answer.body.decode())
        self.assertEqual(page.elements - ELEMENTS, set())
        self.assertIn(names[self.labels[0]], "".join(page.texts))

    def test_it_is_cancelled_and_what_was_made_stays(self):
        job = self.submit(opt_levels=[0, 3, 4], repeat=100_000, number=100_000, time_budget_s=86_400).json()["id"]
        running = lambda: self.server.request("GET", f"/v1/jobs/{job}").json()
        serving.wait_for(lambda: any("child-evaluate" in line for line in self.log(job)) or self.has_child("child-evaluate"), "the first run")
        serving.wait_for(lambda: running()["progress"]["total"] == 3, "the progress of the report, not of its compilation")
        self.server.request("POST", f"/v1/jobs/{job}/cancel")
        ended = self.server.finished(job)
        self.assertEqual(ended["state"], "cancelled")
        self.assertFalse(self.has_child("child-evaluate"), "its process is gone")
        made = self.server.request("GET", f"/v1/jobs/{job}/report").json()
        self.assertEqual((made["state"], made["configurations"]), ("cancelled", []))

    def log(self, job):
        return self.server.request("GET", f"/v1/jobs/{job}/log").body.decode().splitlines()

    def has_child(self, command):
        return any(command in line for line in map(self.command_of, self.server.children()))

    @staticmethod
    def command_of(pid):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                return file.read().decode(errors="replace")
        except OSError:
            return ""  # it ended meanwhile

    def test_what_it_costs_is_bounded(self):
        _, made = self.report(opt_levels=[0, 3], repeat=100_000, number=100_000, time_budget_s=1)
        for row in made["configurations"]:
            self.assertEqual((row["state"], row["error"]["code"]), ("failed", "deadline_exceeded"), row)
        self.assertIn("time_budget_s", made["configurations"][1]["error"]["message"])
        for pointer, wrong in (("", {"models": ["digits"] * 13, "opt_levels": [0, 1, 2, 3, 4]}), ("/inputs", {"inputs": "sha256:" + "0" * 64}),
                               ("/models/1", {"models": ["digits", "nothing"]}), ("/targets/1", {"targets": ["llvm", "llvm -mcpu=z80"]}),
                               ("/layouts/0", {"layouts": ["NCWH"]}), ("/labels", {"labels": "sha256:" + "0" * 64})):
            refused = self.submit(**wrong)
            self.assertEqual((refused.status, refused.json()["errors"][0]["pointer"]), (422, pointer), refused.body)
        other = self.server.submit("digits", SHAPES).json()["id"]
        self.assertEqual(self.server.request("GET", f"/v1/jobs/{other}/report").status, 404)


if __name__ == "__main__":
    unittest.main()
