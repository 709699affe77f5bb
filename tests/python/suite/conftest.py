"""A compiled model and a server that the tests share."""

import signal
import subprocess
from pathlib import Path

import pytest

import tensormill as tm

ROOT = Path(__file__).resolve().parents[3]
DIGITS = ROOT / "tests/models/digits.onnx"


@pytest.fixture(scope="session")
def work(tmp_path_factory):
    return tmp_path_factory.mktemp("packages")


@pytest.fixture(scope="session")
def fixed(work):
    """The digits net for one picture."""
    return tm.compile(DIGITS, input_shapes={"image": [1, 1, 28, 28]}, package_path=work / "fixed.tar")


@pytest.fixture(scope="session")
def free(work):
    """The digits net for any number of pictures."""
    return tm.compile(DIGITS, opt_level=1, package_path=work / "free.tar")


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """The address of a server, which has gRPC as well."""
    folder = tmp_path_factory.mktemp("server")
    command = [str(tm.program_path()), "serve", "--listen", "127.0.0.1:0", "--data", str(folder / "data"),
               "--set", "grpc.listen=127.0.0.1:0"]
    with open(folder / "server.log", "wb") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, stdin=subprocess.DEVNULL, text=True)
    try:
        for line in process.stdout:
            if line.startswith("listening on "):
                break
        else:
            raise AssertionError((folder / "server.log").read_text())
        yield line.split()[-1]
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=600) == 0
        process.stdout.close()
