"""kill -9 of the server in the middle of uploads, compiles, publishes, failing jobs, cancels and collections: what was
acknowledged is there and sound after the restart, what was removed is gone, jobs are taken up again, what failed or was
cancelled stays so, and nothing else stays, no process either.

Each round starts work in a thread and kills at a point that a seeded generator chooses: after so many bytes of an upload,
or once a job has come so far.
"""

import hashlib
import json
import os
import random
import signal
import socket
import threading
import time
import unittest
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import mill
import serving

ROUNDS = 20
KINDS = ["partial upload", "upload", "stage", "collect", "mixed", "upload", "publish"]
# Where the test itself was held up, a kill comes after what it was meant to hit: so many rounds more are tried.
FURTHER_ROUNDS = 60
STAGES = ["queued", "import", "passes", "kernels", "link", "plan", "publish"]


def layered_model(seed, layers=40):
    """A model whose bytes depend on the seed, with a kernel of its own for each layer, so that a compile takes a while."""
    rng = np.random.default_rng(seed)
    nodes, weights, value = [], [], "x"
    for i in range(layers):
        shape = (32 + i, 33 + i)
        weights.append(numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32), f"w{i}"))
        nodes.append(helper.make_node("MatMul", [value, f"w{i}"], [f"m{i}"]))
        nodes.append(helper.make_node("Relu", [f"m{i}"], [f"r{i}"]))
        value = f"r{i}"
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 32])],
                              [helper.make_tensor_value_info(value, TensorProto.FLOAT, [2, 32 + layers])], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 8
    return model.SerializeToString()


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def strays(folder):
    """Processes of the program that belong to the store and are no server's children: what a kill left behind."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if Path(os.readlink(process / "exe")) != mill.PROGRAM or not is_alive(process.name):
                continue
            links = [os.readlink(process / "cwd")] + [os.readlink(fd) for fd in (process / "fd").iterdir()]
        except OSError:
            continue  # it ended meanwhile
        if any(link.startswith(str(folder)) for link in links):
            found.append(int(process.name))
    return found


class Kill(unittest.TestCase):
    def setUp(self):
        self.server = serving.make_server(self)
        self.rng = random.Random(20)
        self.models = {}    # name -> id of the acknowledged
        self.removed = set()  # names whose removal was acknowledged
        self.jobs = {}      # acknowledged jobs: id -> known package, or None while it was not seen finished
        self.publishing = None  # the job that is being published when the kill comes
        self.archives = {}  # package -> digest of its archive
        self.uploads = {}   # path of the blob of a finished upload -> its bytes
        self.given_up = {}  # jobs -> the only states that may be seen: failing ones, and those that were cancelled
        self.mixed = 0      # things acknowledged in mixed rounds
        self.repeated = set()  # jobs that a second attempt finished
        self.hit_publishing = set()  # of these, the ones that were killed while their blobs were written

    def partial_upload(self, name, data):
        """Sends a part of an upload and leaves the connection open."""
        link = socket.create_connection(("127.0.0.1", self.server.port), timeout=serving.DEADLINE)
        self.addCleanup(link.close)
        head = (f"POST /v1/models?name={name} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/octet-stream\r\n"
                f"Content-Length: {len(data)}\r\n\r\n").encode()
        link.sendall(head + data[:self.rng.randrange(1, len(data))])
        serving.wait_for(lambda: os.listdir(self.server.folder / "data/tmp"), "the upload's temporary file")

    def upload_in_thread(self, name, data):
        """An upload that may or may not be acknowledged before the kill."""
        def upload():
            try:
                answer = self.server.upload(name, data)
            except (OSError, serving.http.client.HTTPException):
                return
            if answer.status == 201:
                self.models[name] = answer.json()["id"]
        thread = threading.Thread(target=upload)
        thread.start()
        return thread

    def wait_for_upload(self, thread, point):
        """Until the upload has a temporary file, then a child at its import, or is answered; it may be past it already."""
        data = self.server.folder / "data"
        reached = [lambda: os.listdir(data / "tmp"), lambda: os.listdir(data / "children"), lambda: False][point]
        serving.wait_for(lambda: reached() or not thread.is_alive(), "the upload's progress")

    def start_job(self, name):
        answer = self.server.submit(name)
        self.assertEqual(answer.status, 202, answer.body)
        job = answer.json()["id"]
        self.jobs[job] = None
        return job

    def wait_for_stage(self, job, stage):
        wanted = STAGES.index(stage)

        def reached():
            found = self.server.request("GET", f"/v1/jobs/{job}").json()
            at = found["progress"]["stage"]
            return found["state"] == "succeeded" or (at in STAGES and STAGES.index(at) >= wanted)
        if wanted:
            serving.wait_for(reached, f"job {job} at {stage}")

    def stored(self):
        """How many blobs there are, written or being written."""
        data = self.server.folder / "data"
        return len(os.listdir(data / "tmp")) + sum(len(files) for _, _, files in os.walk(data / "blobs"))

    def wait_for_publishing(self, job):
        """Until the first blobs of the job's package are being stored: nothing else writes any meanwhile."""
        before, end = self.stored(), time.monotonic() + 1
        self.publishing = job
        while self.stored() <= before:
            if time.monotonic() > end:
                state = self.server.request("GET", f"/v1/jobs/{job}").json()["state"]
                if state not in ("queued", "running"):
                    self.assertEqual(state, "succeeded")
                    return  # it was over before this looked
                end += 1

    def kill_and_restart(self, threads):
        children = self.server.children()
        self.server.stop(signal.SIGKILL)
        for thread in threads:
            thread.join(serving.DEADLINE)
        serving.wait_for(lambda: not any(map(is_alive, children)), "the end of the children")
        serving.wait_for(lambda: not strays(self.server.folder), "the end of all processes of the store")
        self.check_store()
        self.server.start()

    def check_store(self):
        """What lies there after the kill is sound, before any start has cleaned it up."""
        done = mill.run_program("fsck", "--data", self.server.folder / "data", "--json")
        self.assertEqual((done.returncode, json.loads(done.stdout)["problems"]), (0, []), done.stdout + done.stderr)

    def check_everything(self):
        for name, model in self.models.items():
            self.assertEqual(self.server.request("GET", f"/v1/models/{name}").json()["id"], model)
        self.check_mixed()
        for name in self.removed:
            self.assertEqual(self.server.request("GET", f"/v1/models/{name}").status, 404, name)
        for job in self.jobs:
            final = self.server.finished(job)
            self.assertEqual(final["state"], "succeeded", final["error"])
            if final["attempt"] > 1:
                self.repeated.add(job)
                if job == self.publishing:
                    self.hit_publishing.add(job)
            package = final["result"]["package"]
            self.assertIn(self.jobs[job], (None, package))
            self.jobs[job] = package
            archive = self.server.request("GET", f"/v1/packages/{package}/archive")
            digest = hashlib.sha256(archive.body).hexdigest()
            self.assertEqual(archive.headers["ETag"], f'"sha256:{digest}"')
            self.assertEqual(self.archives.setdefault(package, digest), digest)
        data = self.server.folder / "data"
        self.assertEqual(os.listdir(data / "tmp"), [])
        self.assertEqual(os.listdir(data / "children"), [])
        serving.wait_for(lambda: not os.listdir(data / "jobs"), "the end of the attempts' folders")
        self.assertEqual(self.server.children(), [])

    def remove_in_threads(self, number):
        """Models that go, by name and by id, with collections beside: each may or may not be acknowledged."""
        removable = []
        for i in range(3):
            answer = self.server.upload(f"removed{number}.{i}", layered_model(1000 * (number + 1) + i, 3))
            self.assertEqual(answer.status, 201, answer.body)
            removable.append((f"removed{number}.{i}", answer.json()["id"]))

        def remove():
            for name, model in removable:
                for one in (name, model):
                    try:
                        answer = self.server.request("DELETE", f"/v1/models/{one}")
                    except (OSError, serving.http.client.HTTPException):
                        return
                    if answer.status == 204:
                        self.removed.add(one)

        def collect():
            try:
                while self.server.request("POST", "/v1/gc").status == 200:
                    pass
            except (OSError, serving.http.client.HTTPException):
                return
        threads = [threading.Thread(target=target) for target in (remove, collect)]
        reached, before = self.rng.randrange(len(removable) * 2), len(self.removed)
        for thread in threads:
            thread.start()
        serving.wait_for(lambda: len(self.removed) >= before + reached, "the removals")
        return threads

    def while_it_answers(self, step):
        """A thread that repeats the step until the server is gone."""
        def work():
            try:
                while True:
                    step()
            except (OSError, serving.http.client.HTTPException):
                return
        return threading.Thread(target=work)

    def finish_upload(self, number):
        """A resumable upload from its beginning to its blob; what was finished is remembered, and one before it given up."""
        data = f"upload {number} {self.rng.random()}".encode() * self.rng.randrange(1, 2000)
        upload = self.server.request("POST", "/v1/uploads").headers["Location"]
        half = len(data) // 2
        for first, last in ((0, half), (half, len(data))):
            self.server.request("PATCH", upload, data[first:last], {"Content-Range": f"{first}-{last - 1}"})
        done = self.server.request("PUT", f"{upload}?digest=sha256:{hashlib.sha256(data).hexdigest()}")
        if done.status == 201:
            self.uploads[done.headers["Location"]] = data
            self.mixed += 1
        stray = self.server.request("POST", "/v1/uploads").headers["Location"]
        self.server.request("DELETE", stray)

    def fail_job(self, number):
        answer = self.server.submit(f"model{number}", {"x": [2, 31]}, force=True)
        if answer.status != 202:
            raise AssertionError(answer.body)
        self.given_up[answer.json()["id"]] = ("failed",)
        self.mixed += 1
        self.server.finished(answer.json()["id"])

    def cancel_job(self, number):
        job = self.server.submit(f"model{number}", force=True).json()["id"]
        self.given_up[job] = ("succeeded", "failed", "cancelled")
        if self.rng.random() < 0.5:
            serving.wait_for(lambda: self.server.request("GET", f"/v1/jobs/{job}").json()["state"] != "queued", "its start")
        answer = self.server.request("POST", f"/v1/jobs/{job}/cancel", headers={"Idempotency-Key": job})
        # 409: it was over before.
        if answer.status in (200, 202):
            self.given_up[job] = ("cancelled",)
            self.mixed += 1

    def mixed_in_threads(self, number):
        """Finished uploads, failing jobs, cancels and collections side by side."""
        answer = self.server.upload(f"model{number}", layered_model(number))
        self.models[f"model{number}"] = answer.json()["id"]
        steps = [lambda: self.finish_upload(number), lambda: self.fail_job(number), lambda: self.cancel_job(number),
                 lambda: self.server.request("POST", "/v1/gc")]
        threads, reached = [self.while_it_answers(step) for step in steps], self.mixed + self.rng.randrange(1, 40)
        for thread in threads:
            thread.start()
        serving.wait_for(lambda: self.mixed >= reached, "the mixed work")
        return threads

    def check_mixed(self):
        for path, data in self.uploads.items():
            answer = self.server.request("GET", path)
            self.assertEqual((answer.status, answer.body), (200, data), f"{path}, a finished upload, is lost")
        for job, states in self.given_up.items():
            self.assertIn(self.server.finished(job)["state"], states, job)

    def one_round(self, number, kind):
        name, data, threads = f"model{number}", layered_model(number), []
        if kind == "partial upload":
            self.partial_upload(name, data)
        elif kind == "upload":
            threads.append(self.upload_in_thread(name, data))
            self.wait_for_upload(threads[0], self.rng.randrange(3))
        elif kind == "collect":
            threads = self.remove_in_threads(number)
        elif kind == "mixed":
            threads = self.mixed_in_threads(number)
        else:
            answer = self.server.upload(name, data)
            self.models[name] = answer.json()["id"]
            job = self.start_job(name)
            if kind == "publish":
                self.wait_for_publishing(job)
            else:
                self.wait_for_stage(job, self.rng.choice(STAGES))
        self.kill_and_restart(threads)
        self.check_everything()

    def test_rounds(self):
        number = 0
        while number < ROUNDS or (not self.hit_publishing and number < ROUNDS + FURTHER_ROUNDS):
            kind = KINDS[number % len(KINDS)] if number < ROUNDS else "publish"
            with self.subTest(round=number):
                self.one_round(number, kind)
            number += 1
        self.assertGreaterEqual(len(self.jobs), ROUNDS // 5)
        self.assertGreaterEqual(len(self.uploads), ROUNDS // len(KINDS))
        self.assertGreaterEqual(len(self.removed), ROUNDS // len(KINDS))
        self.assertGreaterEqual(len(self.repeated), 1, "no kill hit a running job")
        self.assertGreaterEqual(len(self.hit_publishing), 1, "no kill hit a publication")
        print(f"kills inside a publication: {len(self.hit_publishing)} of {len(self.jobs)} jobs", flush=True)

    def test_what_was_not_acknowledged_leaves_no_blob(self):
        before = serving.blobs(self.server)
        self.partial_upload("unfinished", layered_model(99))
        self.kill_and_restart([])
        self.assertEqual(serving.blobs(self.server), before)


if __name__ == "__main__":
    unittest.main()
