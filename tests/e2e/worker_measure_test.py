"""Tuning on a board: a server searches and builds, a worker with the labels measures, and what it says is held against what the
candidates should compute."""

import json
import os
import signal
import tempfile
import unittest
import urllib.request
from pathlib import Path

import numpy as np

import mill
import serving
import workers
from server_tune_test import chain
from worker_test import children_of

FAST = {"tuner": "random", "min_repeat_ms": 1, "threads": 1, "trials": 12}


class BoardTest(unittest.TestCase):
    def setUp(self):
        self.server = serving.make_server(self, "--set", workers.LEASE, "--ops-listen", "127.0.0.1:0")
        self.assertEqual(self.server.upload("a", chain([32, 48, 16])).status, 201)

    def board(self, *options):
        return workers.Worker(self, f"http://127.0.0.1:{self.server.port}", "--verbs", "measure", "--labels", "board=a", *options)

    def submit(self, **more):
        answer = self.server.send_json("POST", "/v1/jobs", {"kind": "tune", "model": "a", "target": "llvm -mcpu=native",
                                                            "on": "board=a", **FAST, **more})
        self.assertEqual(answer.status, 202, answer.body)
        return answer.json()["id"]

    def get(self, path):
        answer = self.server.request("GET", path)
        self.assertEqual(answer.status, 200, answer.body)
        return answer.json()

    def metrics(self):
        line = next(line for line in self.server.settings if line.startswith("metrics on "))
        with urllib.request.urlopen(f"http://127.0.0.1:{line.rsplit(':', 1)[1].split('/')[0]}/metrics") as answer:
            return dict(line.rsplit(" ", 1) for line in answer.read().decode().splitlines() if not line.startswith("#"))

    def batches(self, job, **of):
        """The measurements of a job."""
        found = self.get("/v1/jobs?kind=measure&limit=500")["items"]
        return [one for one in found if one["resolved"]["job"] == job and of.items() <= one.items()]

    def told(self, job, count):
        def told():
            found = self.get(f"/v1/jobs/{job}")
            self.assertIn(found["state"], ("queued", "running"), found["error"])
            return found["progress"]["done"] >= count
        serving.wait_for(told, f"{count} trials")

    def test_a_board_measures_what_the_server_searches(self):
        job = self.submit()
        self.assertEqual(self.get(f"/v1/jobs/{job}")["resolved"]["on"], "board=a")
        board = self.board("--name", "rpi")
        done = self.server.finished(job)
        self.assertEqual(done["state"], "succeeded", (done["error"], board.log()))
        result = done["result"]
        self.assertEqual((result["trials"], sum(task["trials"] for task in result["tasks"])), (12, 12))
        self.assertEqual([task["failures"] for task in result["tasks"]], [{}] * len(result["tasks"]))
        self.assertGreater(min(result["roof"].values()), 0)
        batches = self.batches(job)
        self.assertEqual({one["state"] for one in batches}, {"succeeded"})
        runs = sum(len(one["resolved"].get("requests", [])) for one in batches)
        self.assertGreater(runs, len([one for one in batches if "requests" in one["resolved"]]), "candidates go in batches")
        # What was measured holds for that kind of machine under that label, and nothing else is compiled with it unasked.
        lines = self.server.request("GET", f"/v1/tuning-records/{result['records']}").body.splitlines()
        self.assertEqual({json.loads(line)["device"]["cpu"].split(" ")[0] for line in lines}, {"board=a"})
        local, used = self.server.compile("a"), self.server.compile("a", tuning_records=result["records"])
        kernels = {kernel["task_key"]: kernel["tuning_record"] for kernel in self.metadata(used)}
        self.assertTrue(any(kernels.values()), kernels)
        self.assertFalse(any(kernel["tuning_record"] for kernel in self.metadata(local)))
        # The winner was built here, and serves here.
        self.assertEqual(self.server.deploy("d", result["package"]).status, 201)
        self.assertEqual(self.server.infer("d", {"x": np.ones((4, 32), np.float32)}).status, 200)

    def metadata(self, package):
        return self.get(f"/v1/packages/{package}")["metadata"]["kernels"]

    def test_the_command_line_names_extents_of_free_dims(self):
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        (folder / "free.onnx").write_bytes(chain([40, 48], "N"))
        self.board("--name", "rpi")

        def tune(extents):
            return mill.run_program("tune", folder / "free.onnx", "--target", "llvm -mcpu=x86-64-v2", "--extents", extents, "--trials", 3,
                                    "--tuner", "random", "--min-repeat-ms", 1, "--threads", 1, "--on", "board=a",
                                    "--server", f"http://127.0.0.1:{self.server.port}", "-o", folder / "records.json")
        done = tune("N=24,60")
        self.assertEqual(done.returncode, 0, done.stderr)
        records = [json.loads(line)["input"][2] for line in (folder / "records.json").read_text().splitlines()]
        self.assertTrue(records)
        self.assertTrue(all("f32[24,48]" in args and "f32[60,48]" in args for args in records), records)
        refused = tune("M=4")
        self.assertEqual(refused.returncode, 3, refused.stderr)
        self.assertIn("no free dim M", refused.stderr)

    def test_a_job_that_is_refused_for_many_reasons_is_refused_with_them(self):
        shapes = " ".join(f"a{i}:[{1 << 41}]" for i in range(80))
        refused = mill.run_program("tune", mill.ROOT / "tests/models/digits.onnx", "--target", "llvm -mcpu=x86-64-v2", "--input-shapes",
                                   shapes, "--on", "board=a", "--server", f"http://127.0.0.1:{self.server.port}",
                                   "-o", self.server.folder / "records.json", "--json")
        self.assertEqual(refused.returncode, 3, refused.stderr)
        error = json.loads(refused.stdout)["error"]
        self.assertEqual(len(error["errors"]), 80, error)
        self.assertIn("/input_shapes/a7/0", {one["pointer"] for one in error["errors"]})
        self.assertNotIn("status 422", error["detail"])

    def test_a_board_that_dies_is_waited_for_and_a_cancel_ends_what_it_does(self):
        job = self.submit(trials=4000)
        first = self.board("--name", "first")
        self.told(job, 1)
        first.end()
        second = self.board("--name", "second")
        before = self.get(f"/v1/jobs/{job}")["progress"]["done"]
        self.told(job, before + 16)
        self.assertEqual(self.get(f"/v1/jobs/{job}")["attempt"], 1)
        # A candidate that takes the child that runs it with it costs no more than that child.
        child = serving.wait_for(lambda: children_of(second.process.pid, "child-measure"), "the child that measures")
        os.kill(child[0], signal.SIGSEGV)
        before = self.get(f"/v1/jobs/{job}")["progress"]["done"]
        self.told(job, before + 16)
        self.assertEqual(self.server.request("POST", f"/v1/jobs/{job}/cancel").status, 202)
        self.assertEqual(self.server.finished(job)["state"], "cancelled")
        serving.wait_for(lambda: not self.batches(job, state="running") and not self.batches(job, state="queued"),
                         "nothing of it is measured any more")
        self.assertEqual(second.end(signal.SIGTERM), 0)


class HostileBoardTest(BoardTest):
    test_a_board_measures_what_the_server_searches = None
    test_the_command_line_names_extents_of_free_dims = None
    test_a_board_that_dies_is_waited_for_and_a_cancel_ends_what_it_does = None

    def lease(self, puppet):
        found = serving.wait_for(lambda: puppet.lease(verbs=["measure"], labels=["board=a"], compiler="none").json()["lease"],
                                 "a batch")
        self.assertEqual(found["verb"], "measure")
        return found

    def test_numbers_and_outputs_that_are_none(self):
        job = self.submit(trials=3)
        puppet = workers.Puppet(self.server, "liar")
        lease = self.lease(puppet)
        # It waits for the same board beside the first one, on a thread of its own.
        waits = self.submit(trials=3, seed=1)
        serving.wait_for(lambda: self.batches(waits, state="queued"), "a batch of the other one")
        now = self.metrics()
        self.assertEqual({name: now.get(name) for name in (
            'jobs_running{kind="measure",place="elsewhere"}', 'jobs_running{kind="tune",place="here"}',
            'jobs_queued{kind="measure",place="elsewhere"}', "workers_connected", "workers_busy", "job_queue_depth")}, {
                'jobs_running{kind="measure",place="elsewhere"}': "1", 'jobs_running{kind="tune",place="here"}': "2",
                'jobs_queued{kind="measure",place="elsewhere"}': "1", "workers_connected": "1", "workers_busy": "1",
                "job_queue_depth": "1"})
        self.assertGreaterEqual(float(now["run_cores"]), float(now["run_cores_busy"]))
        self.assertEqual(self.server.request("POST", f"/v1/jobs/{waits}/cancel").status, 202)
        self.assertEqual(self.server.finished(waits)["state"], "cancelled")
        serving.wait_for(lambda: not self.batches(waits, state="queued"), "no batch of the other one waits any more")
        roof = {"gflops": 1, "memory_gbytes_per_s": 2, "l2_gbytes_per_s": 3}
        me = {"cpu": "c", "cores": 1}
        self.assertEqual(puppet.send("GET", f"/v1/workers/leases/{lease['id']}/blobs/{lease['inputs']['tensors']['digest']}").status,
                         200)
        for result in (None, [], {}, {**me}, {**me, "answers": []}, {**me, "answers": [roof, roof]}, {**me, "answers": [3]},
                       {**me, "answers": [{**roof, "gflops": -1}]}, {**me, "answers": [{**roof, "gflops": "x"}]},
                       {**me, "answers": [{"error": 0}]}, {**me, "answers": [{"error": 99, "message": ""}]},
                       {**me, "answers": [{"error": 4, "message": 4}]}, {"cpu": "c", "cores": -1, "answers": [roof]},
                       {"cpu": "c" * 3000, "cores": 1, "answers": [roof]}, {"cpu": 3, "cores": 1, "answers": [roof]},
                       {**me, "answers": [{"code": 0, "overrun": False, "seconds": [1]}]},
                       {**me, "answers": [{"code": 0, "overrun": 0, "seconds": [1], "outputs": 0}]},
                       {**me, "answers": [{"code": 1 << 40, "overrun": False, "seconds": [1], "outputs": 0}]},
                       {**me, "answers": [{"code": 0, "overrun": False, "seconds": ["1"], "outputs": 0}]},
                       {**me, "answers": [{"code": 0, "overrun": False, "seconds": [1], "outputs": -1}]}):
            answer = puppet.finish(lease["id"], "succeeded", result=result)
            self.assertEqual((answer.status, answer.json()["code"]), (400, "invalid_request"), (result, answer.body))
        self.assertEqual(puppet.finish(lease["id"], "succeeded", result={**me, "answers": [roof]}).status, 204)
        # Candidates: what they should have computed is not zeros.
        lease = self.lease(puppet)
        requests = lease["resolved"]["requests"]
        size = sum(size for _, size, is_output in requests[0]["buffers"] if is_output)
        lie = {"code": 0, "overrun": False, "seconds": [1e-9], "outputs": 0}
        self.assertEqual(puppet.finish(lease["id"], "succeeded", archive=bytes(size),
                                       result={**me, "answers": [lie] * len(requests)}).status, 204)
        # Outputs that it did not bring, or another machine: the job says so.
        lease = self.lease(puppet)
        requests = lease["resolved"].get("requests", [])
        self.assertTrue(requests, "the other kernel")
        self.assertEqual(puppet.finish(lease["id"], "succeeded", archive=b"x",
                                       result={**me, "answers": [lie] * len(requests)}).status, 204)
        done = self.server.finished(job)
        self.assertEqual((done["state"], done["error"]["code"]), ("failed", "wrong_answer"), done)
        trials = [data for kind, data in self.events(job) if kind == "trial"]
        self.assertEqual({trial["error"] for trial in trials}, {"wrong answer"}, trials)
        job = self.submit(trials=3, force=True)
        lease = self.lease(puppet)
        self.assertEqual(puppet.finish(lease["id"], "succeeded", result={**me, "answers": [roof]}).status, 204)
        lease = self.lease(puppet)
        self.assertEqual(puppet.finish(lease["id"], "succeeded", archive=bytes(size), result={
            "cpu": "d", "cores": 1, "answers": [lie] * len(lease["resolved"]["requests"])}).status, 204)
        done = self.server.finished(job)
        self.assertEqual((done["state"], done["error"]["code"]), ("failed", "conflict"), done)
        self.assertIn("different kinds", done["error"]["detail"])
        self.assertEqual(self.metrics()['job_total{kind="measure",state="succeeded"}'], "5", "what workers ended is counted")

    def events(self, job):
        text = self.server.request("GET", f"/v1/jobs/{job}/events").body.decode()
        blocks = [dict(line.split(": ", 1) for line in block.split("\n"))
                  for block in text.split("\n\n") if block.startswith("id: ")]
        return [(block["event"], json.loads(block["data"])) for block in blocks]


if __name__ == "__main__":
    unittest.main()
