"""The manifests fit Kubernetes' schemas, the compose file that of Compose, the SBOM CycloneDX's form; and the program starts in the
environment that a pod gives it."""

import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
import unittest
from pathlib import Path
from unittest import mock

import jsonschema
import yaml

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
import mill  # noqa: E402
import openapi  # noqa: E402
import serving  # noqa: E402

DOCKER = ROOT / "docker"
VERSIONS = ("1.27", "1.37")


def schemas():
    """The folder of Kubernetes' schemas, by version; None when ./dev test has not installed them."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return next((cache / "tensormill/checkers").glob("lib/python3*/site-packages/kubernetes_validate/kubernetes-json-schema"), None)


def documents():
    return list(yaml.safe_load_all((DOCKER / "kubernetes/tensormill.yaml").read_text()))


def problems_of(document, folder):
    """What is wrong with an object, by the strict schemas, which know every member."""
    group, _, version = document["apiVersion"].rpartition("/")
    name = "-".join(filter(None, (document["kind"].lower(), group.split(".")[0], version)))
    schema = json.loads((folder / f"{name}.json").read_text())

    def read(address):
        """What a schema refers to stands beside it, whatever its name says of where it is published."""
        return json.loads((folder / address.rsplit("/", 1)[1]).read_text())
    resolver = jsonschema.RefResolver(schema.get("$id", ""), schema, handlers={"https": read, "file": read, "": read})
    return [f"{document['kind']} {list(error.absolute_path)}: {error.message[:200]}"
            for error in jsonschema.Draft7Validator(schema, resolver=resolver).iter_errors(document)]


@unittest.skipIf(schemas() is None, "the schemas of Kubernetes are not there; ./dev test installs them")
class KubernetesTest(unittest.TestCase):
    def folder(self, version):
        found = sorted(schemas().glob(f"v{version}.*-local-strict"))
        self.assertTrue(found, version)
        return found[-1]

    def test_the_manifests_fit_the_schemas(self):
        for version in VERSIONS:
            for document in documents():
                self.assertEqual(problems_of(document, self.folder(version)), [], version)

    def test_a_manifest_that_is_wrong_is_found(self):
        for path, value in ((("spec", "replica"), 1), (("spec", "replicas"), "one"),
                            (("spec", "template", "spec", "containers", 0, "imagePullPolice"), "Never"),
                            (("spec", "template", "spec", "enableServiceLink"), False)):
            broken = next(document for document in documents() if document["kind"] == "Deployment")
            place = broken
            for step in path[:-1]:
                place = place[step]
            place[path[-1]] = value
            self.assertNotEqual(problems_of(broken, self.folder(VERSIONS[-1])), [], path)


def image_environment():
    """The variables of the image."""
    image = re.search(r"^ENV ((?:.*\\\n)*.*)", (DOCKER / "Dockerfile").read_text(), re.MULTILINE).group(1)
    return dict(re.findall(r"(TENSORMILL_\w+)=(\S+)", image))


def program_settings(environment):
    """What holds in a container of the image with this environment, by setting, as the program reads it; an AssertionError with its
    words where it refuses."""
    with mock.patch.dict(os.environ, {**image_environment(), **environment}):
        done = mill.run_program("config", "check")
    if done.returncode != 0:
        raise AssertionError(f"{done.returncode}: {done.stderr}")

    def flat(table, prefix=""):
        for name, value in table.items():
            if isinstance(value, dict):
                yield from flat(value, f"{prefix}{name}.")
            else:
                yield prefix + name, value
    return dict(flat(tomllib.loads(done.stdout)))


class ComposeTest(unittest.TestCase):
    def config(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "compose.yaml"
            path.write_text(text)
            return subprocess.run(["docker-compose", "-f", str(path), "config"], capture_output=True, text=True, check=False)

    def test_the_file_fits_the_schema(self):
        text = (DOCKER / "compose.yaml").read_text()
        done = self.config(text)
        self.assertEqual(done.returncode, 0, done.stderr)
        services = yaml.safe_load(done.stdout)["services"]
        self.assertEqual(services["nginx"]["depends_on"], {"tensormill": {"condition": "service_healthy"}})
        self.assertEqual(services["tensormill"]["healthcheck"]["test"][1:], ["/usr/bin/tensormill", "health", "--ready"])
        self.assertNotEqual(self.config(text.replace("read_only:", "read_onely:")).returncode, 0)
        held = program_settings(services["tensormill"]["environment"])
        self.assertEqual((held["http.allowed_hosts"], held["jobs.require_confinement"]), (["mill.example"], True))
        # Whom the server believes about its clients is who stands in the network, and nobody else.
        self.assertEqual(services["tensormill"]["environment"]["TENSORMILL_HTTP_TRUSTED_PROXIES"],
                         yaml.safe_load(done.stdout)["networks"]["mill"]["ipam"]["config"][0]["subnet"])


class BillOfMaterialsTest(unittest.TestCase):
    STATUS = ("Package: zlib1g\nStatus: install ok installed\nMaintainer: M <m@x>\nArchitecture: amd64\nSource: zlib\n"
              "Version: 1:1.2.13.dfsg-1+b1\nDescription: x\n two lines\n\nPackage: gone\nStatus: deinstall ok config-files\n"
              "Architecture: all\nVersion: 1\n")

    def make(self, status):
        return subprocess.run([sys.executable, str(DOCKER / "sbom.py"), "tensormill", "0.1.0"], input=status, capture_output=True,
                              text=True, check=False)

    def test_it_has_what_is_installed(self):
        done = self.make(self.STATUS)
        found = json.loads(done.stdout)
        self.assertEqual((found["bomFormat"], found["specVersion"]), ("CycloneDX", "1.5"))
        self.assertRegex(found["serialNumber"], r"^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")
        self.assertEqual([one["purl"] for one in found["components"]],
                         ["pkg:deb/debian/zlib1g@1%3A1.2.13.dfsg-1%2Bb1?arch=amd64"])
        refs = [one["bom-ref"] for one in found["components"]]
        self.assertEqual(found["dependencies"][0]["dependsOn"], refs)
        self.assertEqual(self.make(self.STATUS).stdout, done.stdout)
        self.assertNotEqual(self.make("").returncode, 0)


class PodTest(unittest.TestCase):
    def environment(self, namespace):
        """As kubelet makes it: the image's, the manifest's, and, had they not been turned off, the services'."""
        found = image_environment()
        pod = next(one for one in documents() if one["kind"] == "Deployment")["spec"]["template"]["spec"]
        for one in pod["containers"][0]["env"]:
            value = one["value"] if "value" in one else namespace
            found[one["name"]] = value.replace("$(POD_NAMESPACE)", namespace)
        for service in ("TENSORMILL", "TENSORMILL_CANARY"):
            found.update({f"{service}_SERVICE_HOST": "10.96.12.7", f"{service}_SERVICE_PORT": "8080",
                          f"{service}_SERVICE_PORT_HTTP": "8080", f"{service}_PORT": "tcp://10.96.12.7:8080",
                          f"{service}_PORT_8080_TCP": "tcp://10.96.12.7:8080", f"{service}_PORT_8080_TCP_PROTO": "tcp",
                          f"{service}_PORT_8080_TCP_PORT": "8080", f"{service}_PORT_8080_TCP_ADDR": "10.96.12.7"})
        return found

    def test_the_program_starts_as_in_a_pod(self):
        openapi.document()  # from a server of its own, which is in no pod
        with tempfile.TemporaryDirectory() as folder:
            keys = Path(folder) / "keys"
            made = mill.run_program("keys", "--keys-file", keys, "add", "me", "--scopes", "admin")
            fields = {"Authorization": f"Bearer {made.stdout.strip()}"}
            with mock.patch.dict(os.environ, self.environment("lab")):
                # Listening and the places of files are the test's own; all else is the pod's.
                server = serving.make_server(self, "--keys-file", str(keys), "--ops-listen", "127.0.0.1:0")

                def status(host):
                    return server.request("GET", "/v1/info", headers={**fields, "Host": host}).status
                service = ["tensormill", "tensormill.lab", "tensormill.lab.svc", "tensormill.lab.svc.cluster.local", "mill.example"]
                self.assertEqual([status(host) for host in service], [200] * 5)
                self.assertEqual(status("tensormill.other.svc"), 421)
                self.assertIn("jobs.memory = 4294967296", server.settings)
                # Children without walls do not begin: the image says so, and no manifest has to.
                self.assertIn("jobs.require_confinement = true", server.settings)
                wrong = {"TENSORMILL_HTTP_WORKER": "3"}
                with mock.patch.dict(os.environ, wrong):
                    self.assertEqual(mill.run_program("config", "check").returncode, 2)


if __name__ == "__main__":
    unittest.main()
