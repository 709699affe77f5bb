"""engine.py serve SOCKET FOLDER | engine.py client SOCKET ARGS...: as much of Docker as README.md uses, over buildah and crun.

The server runs as root, as Docker's does; the client as any user, and only sends its words. What is not known here is an
error, so that a step of README.md is never half done. Containers share the network of ENGINE_NET, or the server's. New volumes get what
the image has at their place, with its owner, as Docker's do."""

import argparse
import json
import os
import shutil
import socket
import socketserver
import subprocess
import sys
import threading
import time
from pathlib import Path

# crun refuses machines with both versions of control groups, though it is to use none: it sees an empty folder.
NETWORK = ["nsenter", "--net=" + os.environ["ENGINE_NET"]] if "ENGINE_NET" in os.environ else []
CRUN = NETWORK + ["unshare", "--mount", "bash", "-c", 'mount -t tmpfs none /sys/fs/cgroup && exec crun --cgroup-manager=disabled "$@"',
        "crun"]
SYSTEM_MOUNTS = [("/proc", "proc", "proc", []),
                 ("/dev", "tmpfs", "tmpfs", ["nosuid", "strictatime", "mode=755", "size=65536k"]),
                 ("/dev/shm", "tmpfs", "shm", ["nosuid", "noexec", "nodev", "mode=1777"])]


class Wrong(Exception):
    """What the client is told."""


class Words(argparse.ArgumentParser):
    def error(self, message):
        raise Wrong(message)


def run_words():
    words = Words(prog="docker run", add_help=False)
    for flag in ("--rm", "-d", "--read-only"):
        words.add_argument(flag, action="store_true")
    for option in ("--name", "--entrypoint"):
        words.add_argument(option)
    for option in ("-v", "-p", "--tmpfs", "--cap-drop", "--security-opt"):
        words.add_argument(option, action="append", default=[])
    words.add_argument("image")
    words.add_argument("arguments", nargs=argparse.REMAINDER)
    return words


class Engine:
    def __init__(self, folder):
        self.folder = Path(folder)
        self.count = 0
        self.containers = {}
        self.begun = time.monotonic()
        self.store = ["--root", str(self.folder / "storage"), "--runroot", str(self.folder / "run"), "--storage-driver", "vfs"]

    def buildah(self, *arguments):
        done = subprocess.run(["buildah", *self.store, *arguments], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Wrong(done.stderr[-3000:] + done.stdout[-1000:])
        return done.stdout.strip()

    def build(self, arguments, folder):
        words = Words(prog="docker build", add_help=False)
        words.add_argument("-f", required=True)
        words.add_argument("-t", required=True)
        words.add_argument("context")
        asked = words.parse_args(arguments)
        file, context = Path(folder, asked.f), Path(folder, asked.context)
        # The prover may have a program already, which stands for the first stage, or a cache for it.
        more = json.loads(os.environ.get("ENGINE_BUILD", "{}"))
        file, context = Path(more.get("file", file)), Path(more.get("context", context))
        self.watched("bud", "--isolation", "chroot", "--pull-never", "--format", "docker", *more.get("options", []),
                     "-f", str(file), "-t", f"localhost/{asked.t}", str(context))
        return 0, "", ""

    def watched(self, *arguments):
        """A command of buildah's that takes minutes: who waits sees which step it is at, and when that began."""
        lines = []
        with subprocess.Popen(["buildah", *self.store, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as done:
            for line in done.stdout:
                lines.append(line)
                if line.startswith(("[", "STEP ")):
                    print(f"   {time.monotonic() - self.begun:4.0f} s  {' '.join(line.split())[:100]}", file=sys.stderr, flush=True)
        if done.returncode != 0:
            raise Wrong("".join(lines)[-4000:])

    def volume(self, arguments, _folder):
        if len(arguments) != 2 or arguments[0] != "create" or "/" in arguments[1]:
            raise Wrong(f"docker volume {arguments}: only create NAME is known")
        (self.folder / "volumes" / arguments[1]).mkdir(parents=True, exist_ok=True)
        return 0, arguments[1] + "\n", ""

    def bind(self, text, root):
        name, place, *options = text.split(":")
        volume = self.folder / "volumes" / name
        if not volume.is_dir():
            raise Wrong(f"-v {text}: there is no volume {name}")
        image = Path(root + place)
        if image.is_dir() and not any(volume.iterdir()):
            shutil.copytree(image, volume, dirs_exist_ok=True)
            status = image.stat()
            os.chown(volume, status.st_uid, status.st_gid)
            volume.chmod(status.st_mode & 0o7777)
        if any(option not in ("ro", "rw") for option in options):
            raise Wrong(f"-v {text}: only ro and rw are known")
        return {"destination": place, "type": "bind", "source": str(volume),
                "options": ["bind", "ro" if "ro" in options else "rw"]}

    def configuration(self, asked, config, root):
        if any(cap != "ALL" for cap in asked.cap_drop) or any(one != "no-new-privileges" for one in asked.security_opt):
            raise Wrong("--cap-drop ALL and --security-opt no-new-privileges alone are known")
        for port in asked.p:
            if port.split(":")[-1] != port.split(":")[-2]:
                raise Wrong(f"-p {port}: both ports must be the same here")
        user, group = (int(part) for part in config["User"].split(":"))
        mounts = [{"destination": to, "type": kind, "source": source, "options": options}
                  for to, kind, source, options in SYSTEM_MOUNTS]
        mounts += [{"destination": place, "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "nodev", "mode=1777"]}
                   for place in asked.tmpfs]
        mounts += [self.bind(text, root) for text in asked.v]
        command = [asked.entrypoint] if asked.entrypoint else config["Entrypoint"]
        tail = asked.arguments or ([] if asked.entrypoint else config["Cmd"])
        return {
            "ociVersion": "1.0.0",
            # A user other than root has no capabilities, dropped or not.
            "process": {"user": {"uid": user, "gid": group}, "args": command + tail, "env": config["Env"],
                        "cwd": config.get("WorkingDir") or "/", "capabilities": {},
                        "noNewPrivileges": bool(asked.security_opt)},
            "root": {"path": root, "readonly": asked.read_only},
            "hostname": "tensormill",
            "mounts": mounts,
            "linux": {"namespaces": [{"type": kind} for kind in ("pid", "ipc", "uts", "mount")],
                      "maskedPaths": ["/proc/kcore", "/proc/keys", "/proc/timer_list"],
                      "readonlyPaths": ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"]},
        }

    def run(self, arguments, _folder):
        asked = run_words().parse_args(arguments)
        self.count += 1
        name = asked.name or f"container-{self.count}"
        identity = f"{self.folder.name}-{name}"
        image = json.loads(self.buildah("inspect", "--type", "image", f"localhost/{asked.image}"))
        container = self.buildah("from", "--pull-never", f"localhost/{asked.image}")
        root = self.buildah("mount", container)
        bundle = self.folder / "bundles" / name
        bundle.mkdir(parents=True)
        (bundle / "config.json").write_text(json.dumps(self.configuration(asked, image["Docker"]["config"], root)))
        (bundle / "image.json").write_text(json.dumps(image))
        command = CRUN + ["run", "--bundle", str(bundle)]
        if asked.d:
            with open(bundle / "log", "wb") as log:
                done = subprocess.run(command + ["--detach", "--pid-file", str(bundle / "pid"), identity], stdin=subprocess.DEVNULL,
                                      stdout=log, stderr=log, check=False)
            self.containers[name] = identity
            return done.returncode, name + "\n", "" if done.returncode == 0 else (bundle / "log").read_text()
        done = subprocess.run(command + [identity], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        self.buildah("rm", container)
        return done.returncode, done.stdout, done.stderr

    def exec(self, arguments, _folder):
        if len(arguments) < 2 or arguments[0] not in self.containers:
            raise Wrong(f"docker exec {arguments}: NAME COMMAND... of a container that runs")
        done = subprocess.run(CRUN + ["exec", self.containers[arguments[0]], *arguments[1:]], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    def kill(self, arguments, _folder):
        signal, name = arguments
        done = subprocess.run(CRUN + ["kill", self.containers[name], signal], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    def remove_all(self):
        for identity in self.containers.values():
            subprocess.run(CRUN + ["delete", "--force", identity], capture_output=True, check=False)
        self.buildah("umount", "--all")
        self.buildah("rm", "--all")

    def answer(self, asked):
        verbs = {"build": self.build, "volume": self.volume, "run": self.run, "exec": self.exec, "kill": self.kill}
        arguments = asked["arguments"]
        try:
            if not arguments or arguments[0] not in verbs:
                raise Wrong(f"docker {' '.join(arguments)}: known are {', '.join(verbs)}")
            return verbs[arguments[0]](arguments[1:], asked["folder"])
        except Wrong as error:
            return 125, "", f"docker: {error}\n"


def serve(socket_path, folder):
    engine = Engine(folder)

    class Handler(socketserver.StreamRequestHandler):
        def handle(self):
            asked = json.loads(self.rfile.readline())
            if asked["arguments"] == ["stop-engine"]:
                engine.remove_all()
                self.wfile.write(json.dumps([0, "", ""]).encode() + b"\n")
                threading.Thread(target=server.shutdown).start()
                return
            self.wfile.write(json.dumps(engine.answer(asked)).encode() + b"\n")

    with socketserver.UnixStreamServer(socket_path, Handler) as server:
        os.chmod(socket_path, 0o666)
        print("ready", flush=True)
        server.serve_forever(poll_interval=0.1)


def client(socket_path, arguments):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(socket_path)
        with connection.makefile("rwb") as stream:
            stream.write(json.dumps({"arguments": arguments, "folder": os.getcwd()}).encode() + b"\n")
            stream.flush()
            code, out, error = json.loads(stream.readline())
    sys.stdout.write(out)
    sys.stderr.write(error)
    return code


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(*sys.argv[2:])
    else:
        sys.exit(client(sys.argv[2], sys.argv[3:]))
