"""A private PostgreSQL for tests and measurements: a folder of its own, a socket in it, no port unless one is asked for.

As a program: starts one, prints a line of JSON with its folder, port and URL, and stops it when its input ends, so that it
never outlives who started it. PostgreSQL refuses to run as root: where the tests do, it gets the rights of the user that its
Debian package makes.
"""

import argparse
import ctypes
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

PROGRAMS = Path("/usr/lib/postgresql/15/bin")
USER = "tensormill"
PR_SET_PDEATHSIG = 1


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def lesser_rights():
    """Arguments of subprocess for the rights that PostgreSQL runs with."""
    if os.getuid() != 0:
        return {}
    user = pwd.getpwnam("postgres")
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGQUIT)


class PostgresServer:
    """A running server. `durable`: syncs what it commits, as a real one does. `password`: listens on a port, where the user
    has this password. `settings`: further lines of its configuration, by name."""

    def __init__(self, durable=False, password=None, settings=None):
        if not (PROGRAMS / "postgres").exists():
            raise FileNotFoundError(f"{PROGRAMS}/postgres: install the Debian package postgresql")
        self.folder = Path(tempfile.mkdtemp(prefix="tm-pg-"))
        self.rights = lesser_rights()
        if self.rights:
            os.chown(self.folder, self.rights["user"], self.rights["group"])
        self.data = self.folder / "data"
        self.port = free_port() if password else 5432
        self.password = password
        self.settings = {"fsync": "on" if durable else "off", "unix_socket_directories": str(self.folder),
                         "listen_addresses": "127.0.0.1" if password else "", "port": str(self.port),
                         "unix_socket_permissions": "0777", "timezone": "UTC", **(settings or {})}
        self.process = None
        command = ["initdb", "-D", str(self.data), "-U", USER, "-E", "UTF8", "--locale=C.UTF-8", "--no-sync",
                   "--auth-local=trust", "--auth-host=scram-sha-256"]
        if password:
            secret = self.folder / "secret"
            secret.write_text(password)
            secret.chmod(0o644)
            command.append(f"--pwfile={secret}")
        self.run(*command)
        self.start()

    def run(self, program, *arguments):
        done = subprocess.run([str(PROGRAMS / program), *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, cwd=self.folder, **self.rights)
        if done.returncode != 0:
            raise RuntimeError(f"{program}: {done.stdout}")

    def start(self):
        command = [str(PROGRAMS / "postgres"), "-D", str(self.data)]
        for name, value in self.settings.items():
            command += ["-c", f"{name}={value}"]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                        text=True, cwd=self.folder, preexec_fn=die_with_parent, **self.rights)
        self.said = []
        for line in self.process.stderr:
            self.said.append(line)
            if "database system is ready to accept connections" in line:
                break
        else:
            raise RuntimeError("postgres: " + "".join(self.said))
        # It must not wait for someone to read what it says.
        threading.Thread(target=self.said.extend, args=(self.process.stderr,), daemon=True).start()

    def stop(self, how=signal.SIGQUIT):
        """Stops it as a crash would; SIGINT closes it in good order."""
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait()
            self.process = None

    def close(self):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, options=""):
        """Through the socket, where nobody is asked for a password."""
        return f"postgresql://{USER}@/postgres?host={self.folder}&port={self.port}{options}"

    def tcp_url(self, options=""):
        return f"postgresql://{USER}@127.0.0.1:{self.port}/postgres{options}"

    def sql(self, text):
        """What psql answers, without headings."""
        done = subprocess.run([str(PROGRAMS / "psql"), "-X", "-q", "-t", "-A", "-v", "ON_ERROR_STOP=1", "-h",
                               str(self.folder), "-p", str(self.port), "-U", USER, "postgres"], input=text,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"psql: {done.stdout}")
        return done.stdout.strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--durable", action="store_true", help="sync what is committed")
    arguments = parser.parse_args()
    with PostgresServer(durable=arguments.durable) as server:
        print(json.dumps({"folder": str(server.folder), "port": server.port, "url": server.url()}), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
