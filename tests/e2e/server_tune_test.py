"""Tuning as a service over HTTP: jobs with live progress, records that all models share, compiles that use them, a cancel
and kills in the middle, and benchmark jobs."""

import json
import signal
import unittest
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import serving

NATIVE = "llvm -mcpu=native"


def chain(widths, rows_of_x=4):
    """MatMul and Relu from width to width, on four rows, or on a free dim's."""
    rng = np.random.default_rng(5)
    nodes, weights, value = [], [], "x"
    for i, (rows, columns) in enumerate(zip(widths, widths[1:])):
        weights.append(numpy_helper.from_array(rng.standard_normal((rows, columns)).astype(np.float32), f"w{i}"))
        nodes += [helper.make_node("MatMul", [value, f"w{i}"], [f"m{i}"]), helper.make_node("Relu", [f"m{i}"], [f"r{i}"])]
        value = f"r{i}"
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows_of_x, widths[0]])],
                              [helper.make_tensor_value_info(value, TensorProto.FLOAT, [rows_of_x, widths[-1]])], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 8
    return model.SerializeToString()


def measuring_children():
    """Pids of the children, of whichever parent, that tune or measure for this user's servers."""
    pids = []
    for cmdline in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = cmdline.read_bytes().split(b"\0")
        except OSError:
            continue  # it ended meanwhile
        if len(words) > 1 and words[1] in (b"child-tune", b"child-measure"):
            pids.append(int(cmdline.parent.name))
    return pids


class Tuning(unittest.TestCase):
    def setUp(self):
        self.server = serving.make_server(self)

    def submit(self, model, **more):
        body = {"kind": "tune", "model": model, "target": NATIVE, "trials": 12, "tuner": "random", "min_repeat_ms": 1,
                "threads": 1, **more}
        answer = self.server.send_json("POST", "/v1/jobs", body)
        self.assertIn(answer.status, (200, 202), answer.body)
        return answer.json()["id"]

    def tune(self, model, **more):
        job = self.server.finished(self.submit(model, **more))
        self.assertEqual(job["state"], "succeeded", job["error"])
        return job["result"]

    def upload(self, name, widths):
        self.assertEqual(self.server.upload(name, chain(widths)).status, 201)

    def lines(self, query=""):
        answer = self.server.request("GET", f"/v1/tuning-records{query}")
        self.assertEqual(answer.status, 200, answer.body)
        return [json.loads(line) for line in answer.body.splitlines()]

    def events(self, job):
        """(type, data) of all events so far of a job that has ended."""
        text = self.server.request("GET", f"/v1/jobs/{job}/events").body.decode()
        blocks = [dict(line.split(": ", 1) for line in block.split("\n"))
                  for block in text.split("\n\n") if block.startswith("id: ")]
        return [(block["event"], json.loads(block["data"])) for block in blocks]

    def reported(self, job, count):
        """Waits until a job has told of so many trials; how many it told of."""
        def told():
            row = self.server.request("GET", f"/v1/jobs/{job}").json()
            return row["progress"]["done"] >= count and row["progress"]["done"]
        return serving.wait_for(told, f"{count} trials")

    def metadata(self, package):
        return self.server.request("GET", f"/v1/packages/{package}").json()["metadata"]

    def test_a_job_tells_what_it_does_and_compiles_with_what_it_found(self):
        self.upload("a", [32, 48, 16])
        job = self.submit("a")
        self.assertEqual(self.submit("a"), job, "a live duplicate joins")
        result = self.server.finished(job)["result"]
        self.assertEqual(result["trials"], 12)
        self.assertEqual({task["reused"] for task in result["tasks"]}, {False})
        self.assertEqual(sum(task["trials"] for task in result["tasks"]), 12)
        self.assertGreater(min(task["gflops"] for task in result["tasks"]), 0)
        self.assertGreater(min(task["flops"] for task in result["tasks"]), 0)
        # A product of one row reads its weights, at least, and writes what it gives.
        self.assertGreaterEqual(max(task["bytes"] for task in result["tasks"]), 4 * 32 * 48)
        self.assertGreater(min(result["roof"].values()), 0)
        self.assertEqual(set(result["roof"]), {"gflops", "memory_gbytes_per_s", "l2_gbytes_per_s"})
        self.assertGreater(result["before"]["median_ms"], 0)
        self.assertGreater(result["after"]["median_ms"], 0)
        events = self.events(job)
        trials = [data for kind, data in events if kind == "trial" and not data["final"]]
        self.assertEqual([trial["trial"] for trial in trials], list(range(1, 13)))
        progress = [data for kind, data in events if kind == "progress" and data["stage"] == "tune"]
        self.assertEqual([row["done"] for row in progress], sorted(row["done"] for row in progress))
        self.assertEqual(progress[-1]["total"], 12)
        self.assertLessEqual(progress[-1]["best_ms"], progress[-1]["default_ms"])
        self.assertTrue(any(task["failures"] == {} for row in progress for task in row["tasks"]))
        kept = self.lines(f"/{result['records']}")
        self.assertEqual(sum(not line["config"]["final"] for line in kept), 12)
        self.assertEqual(kept, self.lines("?model=a"))
        self.assertEqual(self.lines("?model=b"), [])
        # A compile takes the same records, and is the same package.
        package = self.server.compile("a")
        used = {kernel["task_key"]: kernel["tuning_record"] for kernel in self.metadata(package)["kernels"]}
        self.assertTrue(all(used[task["task"]] for task in result["tasks"]), used)
        self.assertLessEqual({part["key"] for part in result["left_out"]}, set(used))
        if result["tuned"]:
            self.assertEqual(package, result["package"])
        plain = self.server.compile("a", tuning_records=None)
        self.assertNotEqual(plain, package, "the records are part of the package's identity")
        self.assertEqual({kernel["tuning_reason"] for kernel in self.metadata(plain)["kernels"]}, {"no records given"})
        self.assertEqual(self.server.compile("a", tuning_records=result["records"]), package)
        # Children did all of it: who serves loads neither LLVM nor XGBoost.
        self.assertNotRegex(self.server.maps(), "(?i)llvm|xgboost")

    def test_kernels_of_free_dims_are_measured_at_the_extents_that_a_job_names(self):
        self.assertEqual(self.server.upload("a", chain([40, 48], "N")).status, 201)
        first = self.submit("a", trials=4, extents={"N": "24,60"})
        self.assertEqual(self.submit("a", trials=4, extents={"N": [24, 60]}), first, "a live duplicate joins")
        job = self.server.finished(first)
        self.assertEqual(job["state"], "succeeded", job["error"])
        self.assertEqual(job["resolved"]["extents"], {"N": [24, 60]})
        self.assertEqual(job["result"]["extents"], [{"N": 24}, {"N": 60}])
        self.assertGreater(job["result"]["before"]["median_ms"], 0)
        found = self.lines(f"/{job['result']['records']}")
        self.assertTrue(found)
        for line in found:
            self.assertIn("f32[24,48]", line["input"][2])
            self.assertIn("f32[60,48]", line["input"][2])
        kernels = {kernel["task_key"]: kernel["tuning_record"] for kernel in self.metadata(self.server.compile("a"))["kernels"]}
        self.assertTrue(all(kernels[line["task_key"]] for line in found), kernels)
        # What was measured there is known there, and nowhere else.
        self.assertEqual(self.tune("a", trials=4, extents={"N": [24, 60]})["trials"], 0)
        other = self.tune("a", trials=4, extents={"N": [32]})
        self.assertEqual((other["trials"], {task["reused"] for task in other["tasks"]}), (4, {False}))
        self.assertTrue(any("f32[32,48]" in line["input"][2] for line in self.lines(f"/{other['records']}")))
        # Whether a dim is free after all, the job's import tells.
        bound = self.server.finished(self.submit("a", input_shapes={"x": [4, 40]}, extents={"N": [8]}))
        self.assertEqual((bound["state"], bound["error"]["code"]), ("failed", "invalid_argument"))
        self.assertIn("no free dim N", bound["error"]["detail"])

    def test_a_second_model_reuses_what_it_shares(self):
        self.upload("a", [64, 256, 128])
        self.upload("b", [64, 256, 192])
        first = {task["task"] for task in self.tune("a")["tasks"]}
        result = self.tune("b")
        shared = [task for task in result["tasks"] if task["task"] in first]
        self.assertTrue(shared, "no shared kernel")
        self.assertTrue(all(task["reused"] and task["trials"] == 0 for task in shared), shared)
        self.assertEqual(sum(task["trials"] for task in result["tasks"]), 12, "the others got all")
        events = len(self.lines())
        self.assertEqual(self.tune("b")["trials"], 0, "all is known")
        self.assertEqual(len(self.lines()), events)
        self.assertEqual(self.tune("b", force=True, trials=4, autoscheduler=True)["trials"], 4)

    def test_a_cancelled_job_leaves_what_it_found(self):
        self.upload("a", [384, 768, 576, 480])  # with more schedules than are tried before the cancel
        job = self.submit("a", trials=100000)
        count = self.reported(job, 4)
        self.assertIn(self.server.request("POST", f"/v1/jobs/{job}/cancel").status, (200, 202))
        self.assertEqual(self.server.finished(job)["state"], "cancelled")
        self.assertEqual(self.server.children(), [])
        self.assertGreaterEqual(len(self.lines()), count)
        used = [kernel["tuning_record"] for kernel in self.metadata(self.server.compile("a"))["kernels"]]
        self.assertTrue(any(used), used)

    def test_kills_lose_no_trial_that_was_told(self):
        self.upload("a", [384, 768, 576, 480])  # with more schedules than are tried before the last kill
        job, total = self.submit("a", trials=80), 0
        for _ in range(3):
            total = self.reported(job, total + 3)
            children = self.server.children()
            self.server.stop(signal.SIGKILL)
            serving.wait_for(lambda: not set(children) & set(measuring_children()), "the end of the children")
            self.server.start()
            self.assertGreaterEqual(len(self.lines()), total)
        ended = self.server.finished(job)
        self.assertEqual(ended["state"], "succeeded", ended["error"])
        searched = [(line["task_key"], tuple(line["schedule"])) for line in self.lines() if not line["config"]["final"]]
        self.assertEqual(len(searched), len(set(searched)), "a trial was made twice")
        self.assertEqual(ended["result"]["trials"], len(searched))
        self.assertEqual(self.server.children(), [])

    def test_records_go_in_and_out(self):
        self.upload("a", [32, 48, 16])
        records = self.tune("a")["records"]
        exported = self.server.request("GET", f"/v1/tuning-records/{records}").body
        self.assertEqual(self.server.request("DELETE", f"/v1/tuning-records/{records}").status, 204)
        self.assertEqual(self.lines(), [])
        post = lambda body, query="": self.server.request(
            "POST", f"/v1/tuning-records{query}", body, {"Content-Type": "application/x-ndjson"})
        done = post(exported)
        self.assertEqual(done.status, 201, done.body)
        self.assertEqual(done.json()["records"], len(exported.splitlines()))
        self.assertEqual(post(exported).status, 200)
        imported = done.json()["id"]
        plain = self.server.compile("a")
        self.assertEqual({kernel["tuning_record"] for kernel in self.metadata(plain)["kernels"]}, {""},
                         "imported records are not taken by themselves")
        named = self.metadata(self.server.compile("a", tuning_records=imported))["kernels"]
        self.assertTrue(all(kernel["tuning_record"] for kernel in named), named)
        foreign = exported.replace(json.loads(exported.splitlines()[0])["device"]["cpu"].encode(), b"another cpu")
        refused = post(b"\n" + foreign)
        self.assertEqual((refused.status, refused.json()["code"]), (422, "invalid_records"))
        self.assertIn("line 2", refused.json()["detail"])
        self.assertEqual(post(foreign, "?foreign=1").status, 201)
        garbage = post(exported + b"{")
        self.assertEqual(garbage.status, 422)
        self.assertIn(f"line {len(exported.splitlines()) + 1}", garbage.json()["detail"])
        unknown = "sha256:" + "0" * 64
        self.assertEqual(self.server.request("GET", f"/v1/tuning-records/{unknown}").status, 404)
        self.assertEqual(self.server.submit("a", tuning_records=unknown).status, 422)

    def test_a_benchmark_measures_a_package(self):
        self.upload("a", [32, 48, 16])
        package = self.server.compile("a")
        body = {"kind": "benchmark", "package": package, "repeat": 4, "number": 2, "threads": 1}
        answer = self.server.send_json("POST", "/v1/jobs", body)
        self.assertEqual(answer.status, 202, answer.body)
        job = self.server.finished(answer.json()["id"])
        self.assertEqual(job["state"], "succeeded", job["error"])
        result = job["result"]
        self.assertEqual((len(result["runs_ms"]), result["package"]), (4, package))
        self.assertLessEqual(result["min_ms"], result["median_ms"])
        self.assertLessEqual(result["median_ms"], result["max_ms"])
        # What the machine can do at most, with as many threads.
        self.assertEqual(sorted(result["roof"]), ["gflops", "l2_gbytes_per_s", "memory_gbytes_per_s"])
        self.assertGreater(min(result["roof"].values()), 0)
        self.assertEqual(self.server.send_json("POST", "/v1/jobs", {**body, "package": "x"}).status, 422)

    def test_what_cannot_be_tuned_is_refused(self):
        self.upload("a", [32, 48, 16])
        base = {"kind": "tune", "model": "a", "target": NATIVE}
        for wrong, pointer in [({"model": "b"}, "/model"), ({"target": "llvm -mcpu=power9"}, "/target"),
                               ({"prior_records": "sha256:" + "0" * 64}, "/prior_records"), ({"trials": 0}, "/trials"),
                               ({"disabled_pass": ["fuse"]}, "/disabled_pass"), ({"extents": {"N": [1, 8]}}, "/extents/N"),
                               ({"extents": {"N": [8, 1]}}, "/extents/N/1")]:
            answer = self.server.send_json("POST", "/v1/jobs", {**base, **wrong})
            self.assertEqual(answer.status, 422, (wrong, answer.body))
            self.assertIn(pointer, [error["pointer"] for error in answer.json().get("errors", [])], answer.body)


if __name__ == "__main__":
    unittest.main()
