"""The server against its own executor and against a Node server around ONNX Runtime: bench server [--quick]."""

import argparse
import contextlib
import io
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from models_bench import variants
from models_bench.measure import mill
from models_bench.sessions import ROOT, Session

sys.path.insert(0, str(ROOT / "tests/e2e"))
import serving  # noqa: E402  (found through the line above)

LOAD = ROOT / "build/bin/bench_load"
PEER = ROOT / "bench/peer/ort_server.js"
RESULTS = ROOT / "bench/results"
OVERHEAD_BAR_MS, THROUGHPUT_BAR, CPU_BAR = 1.0, 2.0, 1.05
CPU_BATCH = 8


def parse(argv):
    parser = argparse.ArgumentParser(prog="bench server", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="shorter rounds: for a first look")
    parser.add_argument("--only", choices=("overhead", "throughput", "cpu"), help="one of the three figures")
    return parser.parse_args(argv)


def load(port, path, body, clients, seconds, tail, *headers):
    command = [str(LOAD), str(port), path, str(body), str(clients), str(seconds), str(tail), *headers]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"bench_load: {done.stdout}{done.stderr}")
    return json.loads(done.stdout)


def v2_body(folder, name, tensor):
    """A binary v2 request in a file, and its header field."""
    text = json.dumps({"inputs": [{"name": name, "shape": list(tensor.shape), "datatype": "FP32",
                                   "parameters": {"binary_data_size": tensor.nbytes}}],
                       "parameters": {"binary_data_output": True}}).encode()
    path = Path(folder) / f"{name}.{tensor.shape[0]}.v2"
    path.write_bytes(text + tensor.tobytes())
    return path, f"Inference-Header-Content-Length: {len(text)}"


@contextlib.contextmanager
def peer_server(model, threads):
    """Its port."""
    with subprocess.Popen(["node", str(PEER), str(mill.generated(model)), str(threads)], stdout=subprocess.PIPE,
                          text=True) as peer:
        try:
            yield json.loads(peer.stdout.readline())["port"]
        finally:
            peer.kill()


# One thread a run where the executor alone is the measure.
SETTINGS = {"overhead": ("--set", "run.threads=1"), "throughput": (), "cpu": ("--set", "run.threads=1")}


class Bench:
    def __init__(self, folder, quick, *settings):
        self.folder = Path(folder)
        self.seconds, self.rounds = (1.0, 3) if quick else (2.0, 5)
        self.server = serving.Server(folder, "--set", "log_level=warn", *settings)

    def deployed(self, model, batch, name, buckets=None, **more):
        """The model under a name; its inputs for one row and their name. `buckets`: the first dim stays free, with kernels
        for these numbers of rows."""
        loaded = mill.alive.onnx.load(str(mill.generated(model)))
        if batch > 1:
            loaded = variants.with_batch(loaded, batch)
        inputs = mill.alive.random_inputs(loaded, seed=1, batch=batch)
        self.server.upload(name, loaded.SerializeToString())
        rows = ["N"] if buckets else [batch]
        free = {"shape_buckets": {"N": buckets}} if buckets else {}
        package = self.server.compile(name, {key: rows + list(value.shape[1:]) for key, value in inputs.items()}, **free)
        answer = self.server.deploy(name, package, **more)
        if answer.status != 201:
            raise RuntimeError(answer.body)
        input_name, tensor = next(iter(inputs.items()))
        return package, input_name, np.ascontiguousarray(tensor[:1])

    def overhead(self):
        """What one client waits for beyond the run itself, NPZ in and out, 600 KB in."""
        _, name, tensor = self.deployed("squeezenet11", 1, "picture")
        buffer = io.BytesIO()
        np.savez(buffer, **{name: tensor})
        body = self.folder / "picture.npz"
        body.write_bytes(buffer.getvalue())
        rounds = [load(self.server.port, "/v1/deployments/picture/infer", body, 1, self.seconds, 100,
                       "Content-Type: application/x-npz") for _ in range(self.rounds)]
        each = [r["around_compute_ms"]["p50"] for r in rounds]
        return {"overhead_p50_ms": statistics.median(each), "rounds": each, "compute_p50_ms": statistics.median(
            r["latency_ms"]["p50"] - r["around_compute_ms"]["p50"] for r in rounds), "bar": OVERHEAD_BAR_MS,
            "passes": statistics.median(each) <= OVERHEAD_BAR_MS}

    def throughput(self):
        """mlp, 8 keep-alive clients, binary v2, in turn: this server, which runs what comes at one moment as one batch, the
        same with a run for each request, the peer whose runs have a thread and the one whose runs have all cores. The
        first counts, against the faster peer."""
        rows = (1, 2, 4, 8)
        _, name, tensor = self.deployed("mlp", 1, "mlp", buckets=rows, instances=2, max_batch=rows[-1], max_delay_us=0)
        self.deployed("mlp", 1, "alone", instances=2)
        body, header = v2_body(self.folder, name, tensor)
        rates = {"ours": [], "ours_alone": [], "peer_1": [], "peer_all": []}
        with peer_server("mlp", 1) as one, peer_server("mlp", os.cpu_count()) as many:
            asked = {"ours": (self.server.port, "mlp"), "ours_alone": (self.server.port, "alone"), "peer_1": (one, "mlp"),
                     "peer_all": (many, "mlp")}
            for _ in range(self.rounds):
                for who, (port, model) in asked.items():
                    done = load(port, f"/v2/models/{model}/infer", body, 8, self.seconds, 16, header)
                    rates[who].append(done["requests"] / done["seconds"])
        medians = {who: statistics.median(each) for who, each in rates.items()}

        def ratio(who):
            return statistics.median(ours / max(peers) for ours, *peers in zip(rates[who], rates["peer_1"], rates["peer_all"]))

        return {**{f"{who}_rps": rate for who, rate in medians.items()}, "ratio_alone": ratio("ours_alone"),
                "ratio": ratio("ours"), "bar": THROUGHPUT_BAR, "passes": ratio("ours") >= THROUGHPUT_BAR}

    def cpu(self):
        """CPU seconds a request of the server over those of the executor alone, whose runs have as many rows. What the machine
        gives moves by a tenth within seconds: a block of the executor before and after each window, and the median of
        many."""
        package, name, tensor = self.deployed("squeezenet11", CPU_BATCH, "batched", max_batch=CPU_BATCH, max_delay_us=20000)
        archive, inputs = self.folder / "batched.tar", self.folder / "batched.npz"
        archive.write_bytes(self.server.request("GET", f"/v1/packages/{package}/archive").body)
        np.savez(inputs, **{name: np.repeat(tensor, CPU_BATCH, axis=0)})
        body, header = v2_body(self.folder, name, tensor)
        pid, ratios, floors, filled, beside = self.server.process.pid, [], [], [], []
        with Session.ours(archive, inputs, 1) as executor:
            executor.ask("run 4 0 2000")
            before, known = executor_cpu(executor), self.counted("batched")
            for _ in range(3 * self.rounds):
                threads = threads_cpu(pid)
                done = load(self.server.port, "/v2/models/batched/infer", body, CPU_BATCH, self.seconds, 16, header,
                            f"--cpu-of={pid}")
                spent = [now - threads.get(thread, 0) for thread, now in threads_cpu(pid).items()]
                beside.append(1 - max(spent) / sum(spent))
                after, rows_and_runs = executor_cpu(executor), self.counted("batched")
                # Less the first request, a run of its own that bench_load does not count.
                rows, runs = (new - old - 1 for new, old in zip(rows_and_runs, known))
                alone = (before + after) / 2 * runs / rows
                ratios.append(done["cpu_seconds"] / done["requests"] / alone)
                floors.append(1 + socket_cpu(body.stat().st_size, 4300) / alone)
                filled.append(rows / runs)
                before, known = after, rows_and_runs
        ratio = statistics.median(ratios)
        return {"ratio": ratio, "rounds": ratios, "floor": statistics.median(floors), "rows_a_run": statistics.mean(filled),
                "beside_the_runs_thread": statistics.median(beside), "bar": CPU_BAR, "passes": ratio <= CPU_BAR}

    def counted(self, name):
        """Rows that were inferred and runs that they took, so far."""
        stats = self.server.request("GET", f"/v2/models/{name}/stats").json()["model_stats"][0]
        return stats["inference_count"], stats["execution_count"]


def executor_cpu(executor, runs=16):
    """CPU seconds of one run of a session with one thread, in nanoseconds of the scheduler's where os.times() counts ticks."""
    def spent():
        return int(Path(f"/proc/{executor.process.pid}/schedstat").read_text().split()[0]) / 1e9

    before = spent()
    executor.ask(f"run {runs} 0 60000")
    return (spent() - before) / runs


def threads_cpu(pid):
    """CPU seconds of each thread of a process that lives, so far."""
    seconds = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            seconds[task.name] = int((task / "schedstat").read_text().split()[0]) / 1e9
    return seconds


def socket_cpu(size_in, size_out, rounds=300):
    """CPU seconds of a thread that only takes so many bytes from a socket and answers with so many: the floor."""
    listener = socket.create_server(("127.0.0.1", 0))
    client = os.fork()
    if client == 0:
        with socket.create_connection(listener.getsockname()) as peer:
            for _ in range(rounds):
                peer.sendall(bytes(size_in))
                peer.recv(size_out, socket.MSG_WAITALL)
        os._exit(0)
    into, answer = bytearray(size_in), bytes(size_out)
    with listener.accept()[0] as peer:
        before = time.thread_time()
        for _ in range(rounds):
            peer.recv_into(into, size_in, socket.MSG_WAITALL)
            peer.sendall(answer)
        spent = time.thread_time() - before
    os.waitpid(client, 0)
    listener.close()
    return spent / rounds


def main(argv):
    args = parse(argv)
    figures = {}
    for name in (args.only,) if args.only else SETTINGS:
        with tempfile.TemporaryDirectory() as folder:
            bench = Bench(folder, args.quick, *SETTINGS[name])
            try:
                figures[name] = getattr(bench, name)()
            finally:
                bench.server.stop()
        print(f"{name}: {json.dumps(figures[name])}", flush=True)
    RESULTS.mkdir(parents=True, exist_ok=True)
    part = "part." if args.quick or args.only else ""
    (RESULTS / f"server.{part}json").write_text(json.dumps(figures, indent=1) + "\n")
    missed = [name for name, figure in figures.items() if not figure["passes"]]
    print(f"{len(figures) - len(missed)} of {len(figures)} bars pass" + (f"; missed: {', '.join(missed)}" if missed else ""))
    return 1 if missed else 0
