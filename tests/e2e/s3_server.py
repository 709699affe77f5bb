"""A real S3 server (versitygw) on a free port of this machine, and a proxy of our own in front of it that cuts, resets,
freezes or refuses what goes through."""

import os
import shutil
import socket
import subprocess
import tempfile
import threading
from pathlib import Path

VERSION = "v1.8.0"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
PROGRAM = CACHE / f"tensormill/versitygw-{VERSION}/versitygw"
BUCKET = "mill-blobs"
KEY, SECRET = "key-of-the-test", "secret-of-the-test"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class S3Server:
    """Its objects are files below `data`."""

    def __init__(self):
        if not PROGRAM.exists():
            raise AssertionError(f"there is no {PROGRAM}; tests/tools/install_go_programs installs it")
        self.folder = Path(tempfile.mkdtemp(prefix="s3-"))
        self.data = self.folder / "data" / BUCKET
        self.data.mkdir(parents=True)
        (self.folder / "metadata").mkdir()
        self.port = free_port()
        self.process = None
        self.start()

    def start(self):
        command = [str(PROGRAM), "--access", KEY, "--secret", SECRET, "--port", f"127.0.0.1:{self.port}", "--quiet",
                   "--keep-alive", "posix", "--sidecar", str(self.folder / "metadata"), str(self.folder / "data")]
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        for _ in range(3000):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            try:
                self.process.wait(timeout=0.01)
            except subprocess.TimeoutExpired:
                continue
            break
        raise AssertionError("the S3 server did not start: " + (self.folder / "log").read_text())

    def kill(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None

    def close(self):
        self.kill()
        shutil.rmtree(self.folder)

    def objects(self, folder):
        """Keys below the folder, sorted."""
        return sorted(str(path.relative_to(self.data)) for path in (self.data / folder).rglob("*") if path.is_file())


class Proxy:
    """Forwards to the S3 server. `faults` is a list of what happens to the next requests, each of: "cut" in the
    middle of the answer, "reset" once the request has come, "freeze" for as long as the test runs, "busy" (503),
    "broken" (500), "late" (the answer comes after all others' faults are used up). None: nothing happens."""

    def __init__(self, port):
        self.target = port
        self.faults, self.lock = [], threading.Lock()
        self.used, self.calm = 0, threading.Event()
        self.closing = threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self.accept, daemon=True)
        self.thread.start()

    def close(self):
        self.closing.set()
        self.calm.set()
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join()

    def plan(self, faults):
        with self.lock:
            self.faults, self.used = list(faults), 0
        self.calm.clear()

    def next_fault(self):
        with self.lock:
            if not self.faults:
                self.calm.set()
                return None
            self.used += 1
            return self.faults.pop(0)

    def accept(self):
        while not self.closing.is_set():
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        with client:
            request = self.read_request(client)
            while request:
                fault = self.next_fault()
                if not self.answer(client, request, fault):
                    return
                request = self.read_request(client)

    @staticmethod
    def read_message(stream, has_body):
        """Head and body of one HTTP message; b"" at the end."""
        data = b""
        while b"\r\n\r\n" not in data:
            more = stream.recv(65536)
            if not more:
                return b""
            data += more
        head, _, body = data.partition(b"\r\n\r\n")
        fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:] if b": " in line)
        if not has_body(head):
            return data
        if fields.get(b"transfer-encoding") == b"chunked":
            while not body.endswith(b"0\r\n\r\n"):
                body += stream.recv(65536)
            return head + b"\r\n\r\n" + body
        length = int(fields.get(b"content-length", b"0"))
        parts, size = [body], len(body)
        while size < length:
            more = stream.recv(1 << 20)
            if not more:
                return b""
            parts.append(more)
            size += len(more)
        return head + b"\r\n\r\n" + b"".join(parts)

    def read_request(self, client):
        try:
            return self.read_message(client, lambda head: True)
        except OSError:
            return b""

    def answer(self, client, request, fault):
        """False when the connection is over."""
        try:
            if fault == "freeze":
                self.closing.wait()
                return False
            if fault in ("busy", "broken"):
                status = b"503 Slow Down" if fault == "busy" else b"500 Internal Server Error"
                client.sendall(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\n\r\n")
                return True
            with socket.create_connection(("127.0.0.1", self.target)) as upstream:
                upstream.sendall(request)
                method = request.split(b" ", 1)[0]
                answer = self.read_message(upstream, lambda head: method != b"HEAD" and b" 204" not in head.split(b"\r\n")[0])
            if fault == "late":
                self.calm.wait()
            if fault == "reset":
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                return False
            client.sendall(answer[:len(answer) // 2] if fault == "cut" else answer)
            return fault != "cut"
        except OSError:
            return False
