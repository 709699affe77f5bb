"""Replicas under chaos: three servers on one PostgreSQL database and one S3 bucket, and two workers that ask any of them, while
clients upload, compile, deploy, infer and bring tuning records. Again and again one of the processes is killed, or one of the
links between them is cut, reset or frozen. Nothing that was acknowledged may be lost, no job may fail, no answer be wrong;
what is refused is refused with 502, 503 or 504, or has no answer, between the begin of a fault and the recovery from it.

    replicas_chaos.py [--seconds 60] [--every 10] [--seed 1] [--recovery-s 4]

Prints a JSON line; exits with 1 and says what is wrong otherwise."""

import argparse
import contextlib
import http.client
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

import mill
import s3_server
import serving
import workers

sys.path.insert(0, str(mill.ROOT / "tests/tools"))

import link_proxy  # noqa: E402
import postgres_server  # noqa: E402

DIGITS = mill.ROOT / "tests/models/digits.onnx"
SHAPES = {"image": [1, 1, 28, 28]}
PICTURE = {"image": np.linspace(0, 1, 784, dtype=np.float32).reshape(1, 1, 28, 28)}
REFUSED = (502, 503, 504)
GONE = (ConnectionError, http.client.HTTPException, TimeoutError)
PATIENCE = 300
LEASE_S = 2
LAB = "room=lab"  # what the servers' own threads do not do
# Of the records: nothing else is compiled for it, so that no compile depends on which of them there are, and equal requests are
# equal work.
OTHER_TARGET = "llvm -mcpu=x86-64-v3"
PASSWORD = "password-of-the-test"


def another_model(number):
    """The digits model as other bytes: an unknown field of four bytes behind it."""
    return DIGITS.read_bytes() + b"\x12\x04" + f"{number:04d}".encode()


class Fault:
    """What happens to a process or a link, and what undoes it."""

    def __init__(self, name, begin, end):
        self.name, self.begin, self.end = name, begin, end


class Chaos:
    def __init__(self, folder, seed):
        self.folder, self.random = Path(folder), random.Random(seed)
        self.wrong, self.lock, self.ending = [], threading.Lock(), threading.Event()
        self.models, self.jobs, self.records, self.deployed = {}, {}, {}, 0
        self.counts = {"inferences": 0, "refused": 0, "uploads": 0, "jobs": 0, "deployments": 0, "records": 0}
        self.faults, self.windows, self.refusals, self.probes, self.longest = {}, [], [], 0, (0, "")
        self.servers, self.workers = [], []
        self.ends = contextlib.ExitStack()
        try:
            self.build()
        except BaseException:
            self.close()
            raise

    def build(self):
        self.database = postgres_server.PostgresServer(durable=True, password=PASSWORD)
        self.addCleanup(self.database.close)
        self.s3 = s3_server.S3Server()
        self.addCleanup(self.s3.close)
        os.environ.update(AWS_ACCESS_KEY_ID=s3_server.KEY, AWS_SECRET_ACCESS_KEY=s3_server.SECRET, PGPASSWORD=PASSWORD)
        self.key = self.folder / "worker.pem"
        workers.make_key(self.key)
        self.links = {}
        for name in ("one", "two", "three"):
            (self.folder / name).mkdir()
            options = self.options(self.link(f"{name} to the database", lambda: self.database.port),
                                   self.link(f"{name} to S3", lambda: self.s3.port))
            self.servers.append(serving.Server(self.folder / name, *options))
            self.addCleanup(self.servers[-1].stop, signal.SIGKILL)
        for name in ("four", "five"):
            (self.folder / name).mkdir()
            self.workers.append(self.worker(name, self.link(f"{name} to a server", self.any_server)))

    # As of a test, for what belongs to one.
    def addCleanup(self, *what):
        self.ends.callback(*what)

    def close(self):
        self.ends.close()

    def options(self, database_port, s3_port):
        url = self.database.tcp_url().replace(f":{self.database.port}/", f":{database_port}/")
        return ["--catalog", url, "--blobs", f"s3://{s3_server.BUCKET}/chaos",
                "--set", f"s3.endpoint=http://127.0.0.1:{s3_port}", "--set", f"jobs.lease={LEASE_S}s",
                "--set", "s3.stall_timeout=2s", "--set", f"packages.trusted_keys={self.key}.pub",
                "--set", f"packages.signing_key={self.key}"]

    def link(self, name, target):
        """Its port."""
        self.links[name] = link_proxy.LinkProxy(target)
        self.addCleanup(self.links[name].close)
        return self.links[name].port

    def any_server(self):
        up = [server.port for server in self.servers if server.process is not None]
        return random.choice(up) if up else None

    def worker(self, name, port):
        return workers.Worker(self, f"http://127.0.0.1:{port}", "--signing-key", self.key, "--name", name, "--labels", LAB,
                              folder=self.folder / name)

    def blame(self, what):
        with self.lock:
            self.wrong.append(what)

    def count(self, what):
        with self.lock:
            self.counts[what] += 1

    def ask(self, what, call):
        """The answer of any server, or None where it is refused as it may be."""
        server, begun = random.choice(self.servers), time.monotonic()
        try:
            answer = call(server)
        except GONE as error:
            answer, told = None, repr(error)
        except AssertionError as error:  # not what /openapi.json says
            self.blame(str(error)[:300])
            return None
        if answer is None or answer.status in REFUSED:
            self.count("refused")
            told = told if answer is None else f"{answer.status} {answer.body[:200]}"
            with self.lock:
                self.refusals.append((begun, time.monotonic(), f"{what}: {told}"))
            return None
        if answer.status >= 500:
            self.blame(f"{what}: {answer.status}: {answer.body[:300]}")
            return None
        return answer

    # What clients do, each on a thread, until the end.

    def uploads(self):
        number = 0
        while not self.ending.wait(0.5):
            number += 1
            data = another_model(number)
            answer = self.ask("upload", lambda server: server.upload(f"m{number}", data))
            if answer is None:
                continue
            if answer.status not in (200, 201):
                self.blame(f"upload: {answer.status} {answer.body[:300]}")
                continue
            self.models[f"m{number}"] = answer.json()["id"]
            self.count("uploads")

    def submissions(self):
        while not self.ending.wait(0.7):
            if not self.models:
                continue
            model = random.choice(sorted(self.models))
            # Some only workers do.
            where = {"on": LAB} if random.random() < 0.5 else {}
            answer = self.ask("job", lambda server: server.submit(model, SHAPES, opt_level=0, **where))
            if answer is None:
                continue
            if answer.status not in (200, 202):
                self.blame(f"job: {answer.status} {answer.body[:300]}")
                continue
            self.jobs[answer.json()["id"]] = model
            self.count("jobs")

    def deployments(self, package):
        version = 1
        while not self.ending.wait(2):
            version += 1
            answer = self.ask("deployment", lambda server: server.deploy("digits", package, version=str(version), keep_versions=2))
            if answer is None or answer.status == 409:
                continue
            if answer.status not in (200, 201, 202):
                self.blame(f"deployment: {answer.status} {answer.body[:300]}")
                continue
            self.deployed = version
            self.count("deployments")

    def inferences(self, expected):
        while not self.ending.wait(0.05):
            answer = self.ask("inference", lambda server: server.infer("digits", PICTURE))
            if answer is None:
                continue
            if answer.status != 200 or not np.array_equal(serving.from_npz(answer.body)["logits"], expected):
                self.blame(f"inference: {answer.status} {answer.body[:300]}")
            self.count("inferences")

    def bringers_of_records(self, record):
        number = 0
        while not self.ending.wait(1):
            number += 1
            record["result"][0] = [number * 1e-6]
            line = json.dumps(record).encode() + b"\n"
            answer = self.ask("records", lambda server: server.request("POST", "/v1/tuning-records", line,
                                                                       {"Content-Type": "application/x-ndjson"}))
            if answer is None:
                continue
            if answer.status not in (200, 201):
                self.blame(f"records: {answer.status} {answer.body[:300]}")
                continue
            self.records[answer.json()["id"]] = number * 1e-6
            self.count("records")

    # What happens to processes and links.

    def kinds_of_faults(self):
        """Functions that give a fault of each kind."""
        def pick(kind):
            return self.links[self.random.choice([name for name in self.links if name.endswith(kind)])]

        def server():
            one = self.random.choice(self.servers)
            return Fault("a server is killed", lambda: one.stop(signal.SIGKILL), one.start)

        def worker():
            place = self.random.randrange(len(self.workers))
            name = self.workers[place].folder.name

            def again():
                self.workers[place] = self.worker(name, self.links[f"{name} to a server"].port)
            return Fault("a worker is killed", self.workers[place].end, again)

        def database():
            return Fault("the database is restarted", self.database.stop, self.database.start)

        def bucket():
            return Fault("S3 is restarted", self.s3.kill, self.s3.start)

        def cut(kind):
            link = pick(kind)
            return Fault(f"a link {kind} is cut", link.cut, link.cut)

        def reset(kind):
            link = pick(kind)
            return Fault(f"a link {kind} is reset", link.reset, link.reset)

        def freeze(kind):
            link = pick(kind)
            return Fault(f"a link {kind} is frozen", link.freeze, link.thaw)

        def stay_half_open(kind):
            link = pick(kind)

            def end():
                link.reset()
                link.thaw()
            return Fault(f"a link {kind} is frozen and then reset", link.freeze, end)

        kinds = [server, worker, database, bucket]
        for to in ("to the database", "to S3", "to a server"):
            kinds += [lambda what=what, to=to: what(to) for what in (cut, reset, freeze, stay_half_open)]
        # A kill each other time: processes are hurt more than links are.
        return [kind for link in kinds[4:] for kind in (self.random.choice(kinds[:4]), link)]

    def hurt(self, fault):
        begun = time.monotonic()
        fault.begin()
        # Longer than a lease, too.
        self.ending.wait(self.random.uniform(0, 2.5 * LEASE_S))
        fault.end()
        ended = time.monotonic()
        while not self.is_well():
            if time.monotonic() - ended > PATIENCE:
                raise AssertionError(f"no recovery in {PATIENCE} s after {fault.name}")
            threading.Event().wait(0.05)
        well = time.monotonic()
        self.windows.append((begun, well))
        self.longest = max(self.longest, (well - ended, fault.name))
        self.faults[fault.name] = self.faults.get(fault.name, 0) + 1

    def is_well(self):
        """Whether each server answers all that clients want, each worker is heard, and no job is held by who is lost."""
        self.probes += 1
        try:
            for server in self.servers:
                for answer in (server.request("GET", "/readyz"), server.request("GET", "/v1/jobs?limit=1"),
                               server.upload("probe", another_model(5000 + self.probes % 2)), server.infer("digits", PICTURE)):
                    if answer.status >= 300:
                        return False
            listed = self.servers[0].request("GET", "/v1/workers").json()["items"]
        except GONE:
            return False
        lost = self.database.sql("SELECT COUNT(*) FROM jobs WHERE state = 'running' AND "
                                 "lease_until_ms < EXTRACT(EPOCH FROM statement_timestamp()) * 1000")
        return [one["connected"] for one in listed] == [True] * len(self.workers) and lost == "0"

    def run(self, seconds, every):
        first = self.servers[0]
        first.upload("digits", DIGITS.read_bytes())
        package = first.compile("digits", SHAPES, opt_level=1)
        put = first.deploy("digits", package)
        if put.status != 201:
            raise AssertionError(put.body)
        self.deployed = 1
        expected = serving.from_npz(first.infer("digits", PICTURE).body)["logits"]
        record = self.a_record(first)
        serving.wait_for(self.is_well, "all are there")
        clients = [threading.Thread(target=target, args=arguments) for target, arguments in (
            (self.uploads, ()), (self.submissions, ()), (self.deployments, (package,)), (self.inferences, (expected,)),
            (self.bringers_of_records, (record,)))]
        for client in clients:
            client.start()
        try:
            end, planned = time.monotonic() + seconds, []
            while time.monotonic() < end:
                self.ending.wait(every)
                if not planned:
                    planned = self.kinds_of_faults()
                    self.random.shuffle(planned)
                self.hurt(planned.pop()())
        finally:
            self.ending.set()
            for client in clients:
                client.join()
        self.check(expected)

    def a_record(self, server):
        job = server.send_json("POST", "/v1/jobs", {"kind": "tune", "model": "digits", "target": OTHER_TARGET, "trials": 1,
                                                    "tuner": "random", "min_repeat_ms": 1, "threads": 1, "input_shapes": SHAPES})
        done = server.finished(job.json()["id"])
        if done["state"] != "succeeded":
            raise AssertionError(done["error"])
        return json.loads(server.request("GET", f"/v1/tuning-records/{done['result']['records']}").body.splitlines()[0])

    def check(self, expected):
        """Now that all are well again."""
        server = self.servers[-1]
        for begun, ended, what in self.refusals:
            if not any(begun <= until and ended >= since for since, until in self.windows):
                self.blame(f"refused while all was well: {what}")
        for job, model in self.jobs.items():
            state = server.finished(job, PATIENCE)
            if state["state"] != "succeeded":
                self.blame(f"job {job} of {model} {state['state']}: {state.get('error')}")
        for name, digest in self.models.items():
            answer = server.request("GET", f"/v1/models/{name}")
            if answer.status != 200 or answer.json()["id"] != digest:
                self.blame(f"model {name} is lost: {answer.status}")
        for name, seconds in self.records.items():
            answer = server.request("GET", f"/v1/tuning-records/{name}")
            if answer.status != 200 or json.loads(answer.body)["result"][0] != [seconds]:
                self.blame(f"records {name} are lost: {answer.status}")
        leased = sum(worker.log().count(": leased") for worker in self.workers)
        if leased == 0:
            self.blame("no worker had anything to do")
        for one in self.servers:
            serving.wait_for(lambda: one.request("GET", "/v1/deployments/digits").json()["default_version"] is not None and
                             int(one.request("GET", "/v1/deployments/digits").json()["default_version"]) >= self.deployed,
                             f"version {self.deployed}", PATIENCE)
            if not np.array_equal(serving.from_npz(one.infer("digits", PICTURE).body)["logits"], expected):
                self.blame("a wrong inference at the end")
        twice = self.database.sql("SELECT STRING_AGG(id, ' ') FROM jobs WHERE state = 'succeeded' GROUP BY action_key HAVING COUNT(*) > 1")
        if twice:
            self.blame(f"jobs that are the same were run twice to two results: {twice}")
        if server.request("POST", "/v1/gc").status != 200:
            self.blame("the store cannot be collected")
        for one in self.servers:
            if one.stop() != 0:
                self.blame("a server did not end well: " + one.log_tail())
        checked = mill.run_program("fsck", "--data", self.servers[0].folder / "data", *self.servers[0].options, "--json")
        if checked.returncode != 0:
            self.blame(f"fsck: {checked.stdout} {checked.stderr}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--every", type=float, default=10, help="seconds between faults")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--recovery-s", type=float, help="a recovery that takes longer is wrong")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        chaos = Chaos(folder, arguments.seed)
        try:
            chaos.run(arguments.seconds, arguments.every)
        finally:
            chaos.close()
    longest, fault = chaos.longest
    if arguments.recovery_s is not None and longest > arguments.recovery_s:
        chaos.blame(f"the recovery after {fault} took {longest:.1f} s")
    print(json.dumps({**chaos.counts, "faults": chaos.faults, "longest_recovery_s": round(longest, 2), "of": fault,
                      "wrong": chaos.wrong}))
    return 1 if chaos.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
