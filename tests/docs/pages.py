"""The pages of the documents: their code blocks, and a shell in which those of a page run as a reader would type them."""

import os
import random
import re
import socket
import subprocess
from pathlib import Path

import mill

ROOT = mill.ROOT
PAGES = ROOT / "api/docs/pages"
BLOCK = re.compile(r"^(?:<!-- file (\S+) -->\n)?```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Ports of the pages, which a test has of its own.
PORTS = ("8080", "9090")


class Block:
    """A fenced block: its language, its text, and the file that it is said to be, if any."""

    def __init__(self, file, language, text):
        self.file, self.language, self.text = file, language, text


def pages():
    return sorted(PAGES.rglob("*.md"))


def blocks(path):
    return [Block(*found) for found in BLOCK.findall((ROOT / path).read_text(encoding="utf-8"))]


def shell_blocks(path):
    return [block.text for block in blocks(path) if block.language == "sh"]


def free_port():
    """One below those that the system gives to who asks for any."""
    chosen = random.SystemRandom()
    for _ in range(200):
        port = chosen.randrange(12000, 30000)
        with socket.socket() as tried:
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
    raise AssertionError("no free port")


def run_script(text, folder, environment=None):
    """Runs commands as they stand in `folder`, where `tensormill` is the program of the build; what they leave running ends."""
    for port in PORTS:
        if f"127.0.0.1:{port}" in text:
            text = text.replace(f"127.0.0.1:{port}", f"127.0.0.1:{free_port()}")
    programs = Path(folder) / ".programs"
    programs.mkdir(exist_ok=True)
    if not (programs / "tensormill").exists():
        (programs / "tensormill").symlink_to(mill.PROGRAM)
        # Debian's, which has numpy, whatever Python comes first here.
        (programs / "python3").symlink_to("/usr/bin/python3")
    script = "trap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT\n" + text
    with open(Path(folder) / ".out", "w+", encoding="utf-8") as out:
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=folder, stdout=out, stderr=subprocess.STDOUT,
                              stdin=subprocess.DEVNULL, timeout=mill.PROGRAM_LIMIT_S, check=False,
                              env={**os.environ, "no_proxy": "*", "PATH": f"{programs}:{os.environ['PATH']}",
                                   "SOURCES": str(ROOT), **(environment or {})})
        out.seek(0)
        said = out.read()
    if done.returncode != 0:
        raise AssertionError(f"exit {done.returncode} of\n{text}\n{said[-6000:]}")
    return said
