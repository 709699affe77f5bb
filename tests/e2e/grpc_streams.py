#!/usr/bin/python3
"""Streams of inferences that are opened and cut in every way there is leave nothing behind: memory, descriptors, threads, places.
grpc_streams.py [--streams N]: says what the server had before and after; exit code 1 where something is left."""

import argparse
import queue
import random
import sys
import tempfile
from pathlib import Path

import grpc_peer
import numpy as np

import mill
import serving

METHOD = "/inference.GRPCInferenceService/ModelStreamInfer"
WARM_UP = 1000
# What the allocator may keep of its own, however many there were.
SLACK_KB = 16 * 1024


def state(server):
    """Resident kB, descriptors, threads."""
    proc = Path(f"/proc/{server.process.pid}")
    fields = dict(line.split(":", 1) for line in (proc / "status").read_text(encoding="ascii").splitlines())
    return int(fields["VmRSS"].split()[0]), len(list((proc / "fd").iterdir())), int(fields["Threads"])


def cut(stub, request, how):
    """One stream: cut before a message, within one, before its answer, after it, by a deadline, or ended as it should be."""
    asked = queue.SimpleQueue()
    calls = stub(iter(asked.get, None), timeout=0.01 if how == "deadline" else None)
    try:
        if how in ("answered", "ended"):
            asked.put(request)
            next(calls)
        elif how in ("asked", "deadline"):
            asked.put(request)
        elif how == "broken":
            asked.put(b"\xff")
            next(calls)
        if how in ("ended", "broken"):
            asked.put(None)
            for _ in calls:
                pass
    except grpc_peer.grpc.RpcError as error:
        if error.code() not in (grpc_peer.grpc.StatusCode.DEADLINE_EXCEEDED, grpc_peer.grpc.StatusCode.UNAVAILABLE):
            raise
    calls.cancel()
    asked.put(None)


def streams(address, request, count, chance):
    """`count` streams, fifty on each connection, which is then closed with a few still open."""
    ways = ("opened", "asked", "answered", "deadline", "broken", "ended")
    for first in range(0, count, 50):
        with grpc_peer.grpc.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
            stub = channel.stream_stream(METHOD)
            for _ in range(min(50, count - first)):
                cut(stub, request, chance.choice(ways))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=10_000)
    count = parser.parse_args().streams
    chance = random.Random(1)
    with tempfile.TemporaryDirectory() as folder:
        server = serving.Server(folder, *grpc_peer.LISTEN)
        try:
            server.upload("digits", (mill.ROOT / "tests/models/digits.onnx").read_bytes())
            package = server.compile("digits", {"image": [1, 1, 28, 28]}, opt_level=0)
            if server.deploy("digits", package).status != 201:
                raise SystemExit("digits cannot be deployed")
            request = grpc_peer.raw_request("digits", np.zeros((1, 1, 28, 28), np.float32)).SerializeToString()
            address = grpc_peer.address(server.settings)
            streams(address, request, WARM_UP, chance)
            before = state(server)
            streams(address, request, count, chance)
            # Connections go a moment after their clients.
            serving.wait_for(lambda: state(server)[1] <= before[1], "the descriptors of the streams")
            after = state(server)
            print(f"before: {before[0]} kB, {before[1]} descriptors, {before[2]} threads; "
                  f"after {count} streams: {after[0]} kB, {after[1]} descriptors, {after[2]} threads")
            # No place is taken: as many streams as there may be at once are answered.
            with grpc_peer.grpc.insecure_channel(address) as channel:
                held = []
                for _ in range(64):
                    asked = queue.SimpleQueue()
                    held.append((asked, channel.stream_stream(METHOD)(iter(asked.get, None))))
                    asked.put(request)
                for asked, calls in held:
                    next(calls)
                    asked.put(None)
        finally:
            code = server.stop()
    if code != 0 or after[0] > before[0] + SLACK_KB or after[1] > before[1] or after[2] > before[2] + 4:
        sys.exit("the streams have left something behind")


if __name__ == "__main__":
    main()
