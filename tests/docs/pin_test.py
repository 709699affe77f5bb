"""docker/pin.py: what it asks docker, what it writes, and that compose builds and runs that."""

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
# Stands for docker: it answers what the folder beside it has for the image, and fails like docker for any other.
DOCKER = """#!/bin/sh
for last; do :; done
case "$1 $2 $3" in
  'buildx imagetools inspect') folder=registry ;;
  'image inspect --format') folder=pulled ;;
  *) echo "unknown: $*" >&2; exit 125 ;;
esac
cat "$(dirname "$0")/$folder/$(echo "$last" | tr /: __)" 2>/dev/null || { echo "ERROR: $last: $folder does not answer" >&2; exit 1; }
"""


def digest(name):
    return "sha256:" + hashlib.sha256(name.encode()).hexdigest()


class PinTest(unittest.TestCase):
    IMAGES = {"BASE_IMAGE": "debian:12-slim", "NGINX_IMAGE": "nginx:1.30", "POSTGRES_IMAGE": "postgres:15",
              "S3_IMAGE": "versity/versitygw:v1.8.0"}

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder, self.bin = Path(folder.name) / "docker", Path(folder.name) / "bin"
        for made in (self.folder, self.bin / "registry", self.bin / "pulled"):
            made.mkdir(parents=True)
        for path in [ROOT / "docker/pin.py", *(ROOT / "docker").glob("compose*.yaml")]:
            shutil.copy(path, self.folder)
        (self.bin / "docker").write_text(DOCKER)
        (self.bin / "docker").chmod(0o755)
        for name in self.IMAGES.values():
            # A list of images has digests of its own in it.
            self.answer("registry", name, {"schemaVersion": 2, "digest": digest(name), "manifests": [{"digest": digest("one of " + name)}]})

    def answer(self, where, name, value):
        (self.bin / where / name.replace("/", "_").replace(":", "_")).write_text(json.dumps(value))

    def pin(self):
        return subprocess.run(["python3", str(self.folder / "pin.py")], capture_output=True, text=True, check=False,
                              env={**os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}"})

    def written(self):
        return (self.folder / ".env").read_text().splitlines()

    def expected(self):
        return {f"{variable}={name}@{digest(name)}" for variable, name in self.IMAGES.items()}

    def test_every_image_gets_the_digest_of_its_registry(self):
        (self.folder / ".env").write_text("MILL_HOST=mill.test\nNGINX_IMAGE=nginx:1.28\n")
        # Twice: the second time renews what the first one wrote.
        for _ in range(2):
            done = self.pin()
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(self.written()[0], "MILL_HOST=mill.test")
            self.assertEqual(set(self.written()[1:]), self.expected())
            self.assertEqual(len(self.written()), 1 + len(self.IMAGES))

    def test_without_a_registry_it_is_what_was_pulled(self):
        name = self.IMAGES["S3_IMAGE"]
        (self.bin / "registry/versity_versitygw_v1.8.0").unlink()
        self.answer("pulled", name, ["mirror.example/versitygw@" + digest("other"), "versity/versitygw@" + digest(name)])
        done = self.pin()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(set(self.written()), self.expected())

    def test_an_image_without_a_digest_changes_nothing(self):
        (self.folder / ".env").write_text("NGINX_IMAGE=nginx:1.28\n")
        for wrong in ({"digest": "sha256:12"}, [], "no list"):
            self.answer("registry", "postgres:15", wrong)
            done = self.pin()
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, r"^error: postgres:15 has no digest .*: ERROR: postgres:15: pulled does not answer\n$")
            self.assertEqual(self.written(), ["NGINX_IMAGE=nginx:1.28"])

    def test_compose_takes_what_is_written(self):
        self.assertEqual(self.pin().returncode, 0)
        clean = {key: value for key, value in os.environ.items() if key not in self.IMAGES}
        taken = set()
        for path in self.folder.glob("compose*.yaml"):
            done = subprocess.run(["docker-compose", "-f", str(path), "config"], capture_output=True, text=True, env=clean, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            for service in yaml.safe_load(done.stdout)["services"].values():
                if service["image"].startswith("tensormill:"):
                    taken |= {service["build"]["args"]["BASE"]} if "build" in service else set()
                else:
                    taken.add(service["image"])
        self.assertEqual(taken, {line.split("=", 1)[1] for line in self.expected()})


if __name__ == "__main__":
    unittest.main()
