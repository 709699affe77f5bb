"""The command `tensormill` of a wheel: the program itself, and `tensormill demo`, which is written here."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import List, Optional

from ._errors import TensorMillError
from ._program import HERE, program_path

DEMO = HERE / "_bundle" / "demo"


def main(arguments: Optional[List[str]] = None) -> int:
    """Runs the command line; the program takes the place of this process."""
    words = sys.argv[1:] if arguments is None else arguments
    try:
        if words[:1] == ["demo"]:
            return demo(words[1:])
        program = str(program_path())
    except TensorMillError as error:
        print(f"error: {error.detail}", file=sys.stderr)
        return getattr(error, "exit_code", 5)
    os.execv(program, [program, *words])


def demo(options: List[str]) -> int:
    """From a model to a classified picture, by a server of its own; up until Ctrl-C unless ``--once``."""
    if options not in ([], ["--once"]):
        print("usage: tensormill demo [--once]", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="tensormill-demo-") as folder:
        command = [str(program_path()), "serve", "--listen", "127.0.0.1:0", "--data", str(Path(folder) / "data")]
        with open(Path(folder) / "server.log", "wb") as log:
            server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, stdin=subprocess.DEVNULL, text=True)
        try:
            url = _address(server, Path(folder) / "server.log")
            _classify(url, DEMO)
            if not options:
                print("== the server is up until Ctrl-C; try it:")
                print(f"   curl --data-binary @{DEMO / '7.png'} -H 'Content-Type: image/png' \\")
                print(f"     '{url}/v1/deployments/digits/classify?top=5'", flush=True)
                server.wait()
        except KeyboardInterrupt:
            pass
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait()
    return 0


def _address(server: "subprocess.Popen[str]", log: Path) -> str:
    assert server.stdout is not None
    for line in server.stdout:
        if line.startswith("listening on "):
            return line.split()[-1]
    server.wait()
    raise TensorMillError("unavailable", f"the server did not start: {log.read_text(errors='replace')[-500:].strip()}")


def _classify(url: str, files: Path) -> None:
    from .client import Client

    start = time.perf_counter()

    def say(what: str) -> None:
        print(f"== {time.perf_counter() - start:5.1f} s  {what}", flush=True)

    with Client(url) as client:
        say(f"the server listens on {url}; uploading a model that reads handwritten digits")
        client.upload_model("digits", files / "digits.onnx", replace=True)
        say("compiling it for this machine")
        built = client.compile("digits", input_shapes={"image": [1, 1, 28, 28]}).result()
        say(f"serving package {built['package'][:19]}...")
        labels = (files / "labels.txt").read_text().split()
        preprocess = {"resize": 28, "crop": 28, "scale": 1 / 255, "mean": [0], "std": [1], "layout": "NCHW", "color": "gray"}
        client.deploy("digits", built, labels=labels, output="logits", preprocess=preprocess)
        picture = (files / "7.png").read_bytes()
        top = client.classify("digits", picture)
        began = time.perf_counter()
        client.classify("digits", picture)
        say(f"a picture is classified in {1e3 * (time.perf_counter() - began):.2f} ms, from request to answer:")
        for row in top:
            print(f"   {row['label']:4} {float(row['probability']):.4f}")


if __name__ == "__main__":
    sys.exit(main())
