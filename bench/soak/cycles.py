"""Load, infer, unload, again and again: the memory of a deployment comes back."""

import tempfile

import numpy as np

from soak import memory
from soak.common import mill, serving

# The first loads fill what stays: the catalog's pages, and stacks and arenas of all the threads, of which each request
# meets one.
WARM_UP = 40
GROWTH_BAR = 0.03
MODEL = "squeezenet11"


class Cycles:
    """The outcome: KiB after the warm-up and at the end, each with nothing loaded and trimmed."""

    def __init__(self, before, after, wrong):
        self.before, self.after, self.wrong = before, after, wrong

    @property
    def growth(self):
        return self.after / self.before - 1


def run(count):
    with tempfile.TemporaryDirectory() as folder:
        server = serving.Server(folder, "--set", "log_level=warn")
        try:
            return _run(server, count)
        finally:
            server.stop()


def _run(server, count):
    path = mill.generated(MODEL)
    inputs = mill.alive.random_inputs(mill.alive.onnx.load(str(path)), seed=1)
    for answer in [server.upload("net", path.read_bytes())]:
        if answer.status not in (200, 201):
            raise RuntimeError(f"upload: {answer.body[:200]}")
    package = server.compile("net", {name: list(value.shape) for name, value in inputs.items()})
    expected = serving.from_npz(server.run(package, inputs).body)
    wrong, before = [], None
    for number in range(WARM_UP + count):
        if number == WARM_UP:
            before = memory.trimmed_kib(server)
        made = server.deploy("net", package, version=str(number + 1))
        answer = server.infer("net", inputs)
        gone = server.request("DELETE", "/v1/deployments/net")
        if (made.status, answer.status, gone.status) != (201, 200, 204):
            wrong.append(f"cycle {number}: {made.status}, {answer.status}, {gone.status}: {answer.body[:200]}")
            break
        outputs = serving.from_npz(answer.body)
        if not all(np.array_equal(outputs[name], expected[name]) for name in expected):
            wrong.append(f"cycle {number}: another answer")
    return Cycles(before, memory.trimmed_kib(server), wrong)
