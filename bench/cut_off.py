#!/usr/bin/python3
"""Inferences by a replica while PostgreSQL and S3 are there and while both are gone, in turns: one connection, digits.
cut_off.py [--rounds N] [--seconds S]: median, 99th percentile and the largest in ms of each, and the ratios of the rounds' 99th
percentiles, away ÷ there. Every answer is compared with the first."""

import argparse
import contextlib
import http.client
import io
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
for folder in ("tests/e2e", "tests/tools"):
    sys.path.insert(0, str(ROOT / folder))

import postgres_server  # noqa: E402
import s3_server  # noqa: E402
import serving  # noqa: E402

INPUT = {"image": np.linspace(0, 1, 784, dtype=np.float32).reshape(1, 1, 28, 28)}
WARM = 100


def replica(ends):
    database = postgres_server.PostgresServer()
    ends.callback(database.close)
    s3 = s3_server.S3Server()
    ends.callback(s3.close)
    os.environ.update(AWS_ACCESS_KEY_ID=s3_server.KEY, AWS_SECRET_ACCESS_KEY=s3_server.SECRET)
    folder = ends.enter_context(tempfile.TemporaryDirectory())
    server = serving.Server(folder, "--catalog", database.url(), "--blobs", f"s3://{s3_server.BUCKET}/cut", "--set",
                            f"s3.endpoint=http://127.0.0.1:{s3.port}", "--set", "packages.require_signature=false", "--set", "log_level=error")
    ends.callback(server.stop)
    server.upload("digits", (ROOT / "tests/models/digits.onnx").read_bytes())
    answer = server.deploy("digits", server.compile("digits", {"image": [1, 1, 28, 28]}))
    if answer.status != 201:
        raise SystemExit(answer.body)
    return server, database, s3


def measure(link, body, seconds, expected):
    """Milliseconds of each."""
    taken, end = [], time.perf_counter() + seconds
    while (begun := time.perf_counter()) < end:
        link.request("POST", "/v1/deployments/digits/infer", body, {"Content-Type": "application/x-npz"})
        answer = link.getresponse()
        data = answer.read()
        taken.append((time.perf_counter() - begun) * 1e3)
        if answer.status != 200 or serving.from_npz(data)["logits"].tobytes() != expected:
            raise SystemExit(f"{answer.status} {data[:300]}")
    return sorted(taken)


def p99(taken):
    return taken[int(len(taken) * 0.99)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=5)
    options = parser.parse_args()
    found = {"there": [], "away": []}
    with contextlib.ExitStack() as ends:
        server, database, s3 = replica(ends)
        buffer = io.BytesIO()
        np.savez(buffer, **INPUT)
        body, expected = buffer.getvalue(), serving.from_npz(server.infer("digits", INPUT).body)["logits"].tobytes()
        link = http.client.HTTPConnection("127.0.0.1", server.port, timeout=serving.DEADLINE)
        for _ in range(WARM):
            measure(link, body, 0.001, expected)
        for number in range(options.rounds):
            # Neither is always the first of a pair.
            for which in (("there", "away"), ("away", "there"))[number % 2]:
                if which == "away":
                    database.stop()
                    s3.kill()
                try:
                    found[which].append(measure(link, body, options.seconds, expected))
                finally:
                    if which == "away":
                        s3.start()
                        database.start()
                        server.wait_until_ready()
                        # It finds its stores again, and what it had to do meanwhile it does now.
                        serving.wait_for(lambda: server.request("GET", "/v1/jobs?limit=1").status == 200, "its catalog")
    print(f"load {os.getloadavg()[0]:.1f}")
    for which, rounds in found.items():
        print(f"{which}: median {statistics.median(map(statistics.median, rounds)):.3f} ms, p99 {statistics.median(map(p99, rounds)):.3f} ms, "
              f"largest {max(taken[-1] for taken in rounds):.3f} ms, {sum(map(len, rounds))} inferences")
    ratios = [p99(away) / p99(there) for away, there in zip(found["away"], found["there"])]
    print(f"p99 away ÷ there: median {statistics.median(ratios):.3f}, {min(ratios):.3f} to {max(ratios):.3f}")


if __name__ == "__main__":
    main()
