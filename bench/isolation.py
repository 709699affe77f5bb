#!/usr/bin/python3
"""What `isolation: process` costs: the same requests, in turns, to a package in the server's own process and in a process of
its own. isolation.py [--rounds N]: median milliseconds of each, for a small and a large input."""

import argparse
import http.client
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/e2e"))
import serving  # noqa: E402 (after its folder is known)


def relu(elements):
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, [elements])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [elements])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 8
    return model.SerializeToString()


def measured(server, names, body, rounds):
    """Seconds of each request, by deployment."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    seconds = {name: [] for name in names}
    for turn in range(rounds + 20):
        for name in names:
            begun = time.perf_counter()
            connection.request("POST", f"/v1/deployments/{name}/infer", body, {"Content-Type": "application/x-npz"})
            answer = connection.getresponse()
            data = answer.read()
            if answer.status != 200:
                raise SystemExit(data)
            if turn >= 20:
                seconds[name].append(time.perf_counter() - begun)
    connection.close()
    return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=300)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        server = serving.Server(folder)
        try:
            for elements in (1_000, 150_528):
                server.upload(f"relu{elements}", relu(elements))
                package = server.compile(f"relu{elements}")
                for name, isolation in (("here", "none"), ("apart", "process")):
                    answer = server.deploy(f"{name}{elements}", package, isolation=isolation)
                    if answer.status != 201:
                        raise SystemExit(answer.body)
                body = serving.npz({"x": np.ones(elements, np.float32)})
                seconds = measured(server, (f"here{elements}", f"apart{elements}"), body, rounds)
                here, apart = (statistics.median(times) * 1e3 for times in seconds.values())
                print(f"{4 * elements} bytes in and out: {here:.3f} ms here, {apart:.3f} ms apart, {apart - here:+.3f} ms")
                # A process of its own takes its share of children.memory as long as it is deployed.
                for name in seconds:
                    server.request("DELETE", f"/v1/deployments/{name}")
        finally:
            server.stop()


if __name__ == "__main__":
    main()
