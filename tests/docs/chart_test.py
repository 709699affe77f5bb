"""The Helm chart, rendered: what comes of it fits Kubernetes' schemas, says settings and metrics that there are, names secrets and has
none; values that cannot be are refused. Compose's replicas are what the chart's are."""

import json
import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

import yaml

import docker_test
import manifests_test

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "docker/helm/tensormill"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tensormill"
HELM = CACHE / "helm-v3.18.4/helm"
# helm built as it is here believes in an old cluster.
VERSION = manifests_test.VERSIONS[0] + ".0"

REPLICAS = {"server": {"replicas": 3}, "tls": {"secret": "mill-tls"},
            "catalog": {"url": "postgresql://mill@db.example/mill?sslmode=verify-full", "passwordSecret": "db", "caSecret": "db-ca"},
            "blobs": {"url": "s3://models/mill", "endpoint": "https://s3.example", "credentialsSecret": "s3", "caSecret": "s3-ca"},
            "packages": {"trustedKeysSecret": "trusted", "signingKeySecret": "signing"},
            "worker": {"enabled": True, "labels": ["zone=a"], "caSecret": "mill-ca", "verbs": ["compile", "benchmark"]},
            "autoscaling": {"server": {"enabled": True}, "worker": {"enabled": True}}, "serviceMonitor": {"enabled": True},
            "ingress": {"enabled": True}, "grpc": {"enabled": True}}


def helm(*words):
    with tempfile.TemporaryDirectory() as home:
        return subprocess.run([HELM, *map(str, words)], capture_output=True, text=True, check=False,
                              env={"PATH": os.environ["PATH"], "HOME": home})


def template(values):
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        yaml.safe_dump(values, file)
        file.flush()
        return helm("template", "mill", CHART, "--namespace", "lab", "--kube-version", VERSION, "--values", file.name)


def rendered(values):
    """Documents by kind and name."""
    done = template(values)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return {(one["kind"], one["metadata"]["name"]): one for one in yaml.safe_load_all(done.stdout) if one}


def container_of(documents, name):
    return documents[("Deployment", name)]["spec"]["template"]["spec"]["containers"][0]


@unittest.skipIf(not HELM.exists(), "helm is not there; ./dev test builds it")
class ChartTest(unittest.TestCase):
    maxDiff = None
    FORMS = ({}, REPLICAS, {"networkPolicy": {"enabled": False}, "podDisruptionBudget": {"enabled": False}, "store": {"existingClaim": "c"}},
             {"worker": {"enabled": True}, "tls": {"secret": "t"}, "image": {"digest": "sha256:" + "0" * 64}})

    def test_the_chart_has_no_fault_that_helm_knows(self):
        done = helm("lint", "--strict", CHART)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    @unittest.skipIf(manifests_test.schemas() is None, "the schemas of Kubernetes are not there; ./dev test installs them")
    def test_what_comes_of_it_fits_the_schemas(self):
        for version in manifests_test.VERSIONS:
            folder = sorted(manifests_test.schemas().glob(f"v{version}.*-local-strict"))[-1]
            # What is the most is held against each version, the other forms against the last one.
            for values in [REPLICAS] if version != manifests_test.VERSIONS[-1] else self.FORMS:
                for (kind, _), document in rendered(values).items():
                    if kind != "ServiceMonitor":  # of the Prometheus operator
                        self.assertEqual(manifests_test.problems_of(document, folder), [], version)

    def test_variables_are_settings(self):
        known = docker_test.settings()
        for values in self.FORMS:
            for (kind, name), document in rendered(values).items():
                if kind == "Deployment":
                    named = {one["name"] for one in document["spec"]["template"]["spec"]["containers"][0]["env"]}
                    self.assertEqual({one for one in named if one.startswith("TENSORMILL_")} - known, set(), name)

    def test_the_program_takes_the_settings(self):
        def held(values, name):
            known = {one["name"]: one.get("value", "lab").replace("$(POD_NAMESPACE)", "lab")
                     for one in container_of(rendered(values), name)["env"]}
            return manifests_test.program_settings({name: value for name, value in known.items() if name.startswith("TENSORMILL_")})
        for values in self.FORMS:
            server = held(values, "mill-tensormill")
            self.assertEqual((server["jobs.require_confinement"], server["jobs.memory"]), (True, 4 << 30))
            self.assertIn("mill-tensormill.lab.svc", server["http.allowed_hosts"])
        server, worker = held(REPLICAS, "mill-tensormill"), held(REPLICAS, "mill-tensormill-worker")
        self.assertEqual((server["catalog.url"], server["blobs"]), (REPLICAS["catalog"]["url"], "s3://models/mill"))
        self.assertEqual((worker["jobs.require_confinement"], worker["run.memory"]), (True, 3 << 30))
        with self.assertRaisesRegex(AssertionError, "jobs.memory"):
            held({"server": {"settings": {"jobs.memory": "much"}}}, "mill-tensormill")

    def test_secrets_are_named_and_mounted_as_folders(self):
        documents = rendered(REPLICAS)
        self.assertNotIn("Secret", {kind for kind, _ in documents})
        named = set()
        for (kind, name), document in documents.items():
            if kind != "Deployment":
                continue
            pod = document["spec"]["template"]["spec"]
            volumes = {one["name"]: one for one in pod["volumes"]}
            mounts = pod["containers"][0]["volumeMounts"]
            self.assertEqual({one["name"] for one in mounts}, set(volumes), name)
            named |= {one["secret"]["secretName"] for one in volumes.values() if "secret" in one}
            places = {one["mountPath"] for one in mounts}
            for mount in mounts:
                self.assertNotIn("subPath", mount)
            for value in [one.get("value", "") for one in pod["containers"][0]["env"]] + pod["containers"][0]["args"]:
                for path in re.findall(r"/run/secrets/[\w-]+", value):
                    self.assertIn(path, places, name)
        self.assertEqual(named, {"tensormill-keys", "mill-tls", "db", "db-ca", "s3", "s3-ca", "trusted", "signing", "mill-ca",
                                 "tensormill-worker-key", "tensormill-worker-signing"})

    def test_a_server_alone_has_a_volume_and_replicas_have_none(self):
        alone, shared = rendered({}), rendered(REPLICAS)
        spec = alone[("Deployment", "mill-tensormill")]["spec"]
        self.assertEqual((spec["replicas"], spec["strategy"]["type"]), (1, "Recreate"))
        self.assertIn(("PersistentVolumeClaim", "mill-tensormill-store"), alone)
        self.assertEqual(alone[("NetworkPolicy", "mill-tensormill")]["spec"]["egress"], [])
        self.assertNotIn("PersistentVolumeClaim", {kind for kind, _ in shared})
        self.assertEqual(shared[("Deployment", "mill-tensormill")]["spec"]["strategy"]["type"], "RollingUpdate")
        # How many there are the autoscalers say.
        for name in ("mill-tensormill", "mill-tensormill-worker"):
            self.assertNotIn("replicas", shared[("Deployment", name)]["spec"])
            target = shared[("HorizontalPodAutoscaler", name)]["spec"]["scaleTargetRef"]
            self.assertIn((target["kind"], target["name"]), shared)

    def test_names_and_ports_meet(self):
        documents = rendered(REPLICAS)
        server, worker = container_of(documents, "mill-tensormill"), container_of(documents, "mill-tensormill-worker")
        ports = {one["name"]: one["containerPort"] for one in server["ports"]}
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            self.assertEqual(server[probe]["httpGet"]["port"], "ops")
        env = {one["name"]: one.get("value") for one in server["env"]}
        self.assertEqual(env["TENSORMILL_GRPC_LISTEN"], f"0.0.0.0:{ports['grpc']}")
        self.assertIn("mill-tensormill.$(POD_NAMESPACE).svc,", env["TENSORMILL_HTTP_ALLOWED_HOSTS"])
        self.assertTrue(env["TENSORMILL_HTTP_ALLOWED_HOSTS"].endswith(",mill.example"))
        self.assertIn(f"--server=https://mill-tensormill.$(POD_NAMESPACE).svc:{ports['http']}", worker["args"])
        labels = documents[("Deployment", "mill-tensormill")]["spec"]["template"]["metadata"]["labels"]
        for kind, name in (("Service", "mill-tensormill"), ("Service", "mill-tensormill-ops")):
            self.assertLessEqual(documents[(kind, name)]["spec"]["selector"].items(), labels.items())
        for kind in ("NetworkPolicy", "PodDisruptionBudget"):
            for name in ("mill-tensormill", "mill-tensormill-worker"):
                spec = documents[(kind, name)]["spec"]
                found = (spec.get("podSelector") or spec.get("selector"))["matchLabels"]
                pods = documents[("Deployment", name)]["spec"]["template"]["metadata"]["labels"]
                self.assertLessEqual(found.items(), pods.items(), (kind, name))
        monitor = documents[("ServiceMonitor", "mill-tensormill")]["spec"]
        watched = documents[("Service", "mill-tensormill-ops")]
        self.assertLessEqual(monitor["selector"]["matchLabels"].items(), watched["metadata"]["labels"].items())
        self.assertIn(monitor["endpoints"][0]["port"], [one["name"] for one in watched["spec"]["ports"]])

    def test_autoscalers_ask_for_metrics_that_there_are(self):
        metrics = docker_test.metric_names()
        for (kind, name), document in rendered(REPLICAS).items():
            if kind == "HorizontalPodAutoscaler":
                for one in document["spec"]["metrics"]:
                    self.assertIn(one[one["type"].lower()]["metric"]["name"], metrics, name)

    def test_children_and_executors_fit_the_limit(self):
        for name, taken in (("mill-tensormill", docker_test.memory_of_a_server), ("mill-tensormill-worker", docker_test.memory_of_a_worker)):
            container = container_of(rendered(REPLICAS), name)
            given = {one["name"]: one.get("value") for one in container["env"]}
            self.assertLessEqual(taken(given), docker_test.bytes_of(container["resources"]["limits"]["memory"]), name)

    def test_values_that_cannot_be_are_refused(self):
        for values, words in (({"server": {"replicas": 2}}, "catalog.url and blobs.url"),
                              ({"autoscaling": {"server": {"enabled": True}}}, "catalog.url and blobs.url"),
                              ({"catalog": {"url": "postgresql://u@h/d"}}, "go together"),
                              ({"catalog": {"url": "postgresql://u:word@h/d"}, "blobs": {"url": "s3://b"}}, "catalog"),
                              ({"catalog": {"url": "postgresql://u@h/d"}, "blobs": {"url": "s3://b"}}, "packages.signingKeySecret"),
                              ({"worker": {"enabled": True}}, "tls.secret"),
                              ({"worker": {"enabled": True, "verbs": ["shell"]}, "tls": {"secret": "t"}}, "verbs"),
                              ({"server": {"replica": 2}}, "replica"), ({"blobs": {"endpoint": "http://s3"}}, "endpoint"),
                              ({"other": 1}, "other")):
            done = template(values)
            self.assertNotEqual(done.returncode, 0, values)
            self.assertIn(words, done.stderr, values)

    def test_every_value_is_documented_and_in_the_schema(self):
        lines = (CHART / "values.yaml").read_text().splitlines()
        values = yaml.safe_load("\n".join(lines))
        schema = json.loads((CHART / "values.schema.json").read_text())
        self.assertEqual(set(values) | {"global"}, set(schema["properties"]))
        for name, part in values.items():
            if isinstance(part, dict):
                self.assertEqual(set(part), set(schema["properties"][name]["properties"]), name)
        version = re.search(r"project\(tensormill VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
        chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
        self.assertEqual((chart["version"], chart["appVersion"]), (version, version))


class ComposeReplicasTest(unittest.TestCase):
    @staticmethod
    def mount(volume):
        """Where it is mounted, and what; versions of compose print either form."""
        if isinstance(volume, str):
            source, target = volume.split(":")[:2]
            return target, source
        return volume["target"], volume["source"]

    def test_the_local_twin_is_two_replicas_of_one_store(self):
        path = ROOT / "docker/compose.replicas.yaml"
        done = subprocess.run(["docker-compose", "-f", str(path), "config"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        services = yaml.safe_load(done.stdout)["services"]
        one, two = services["one"]["environment"], services["two"]["environment"]
        for environment in (one, two):
            held = manifests_test.program_settings(environment)
            self.assertEqual((held["blobs"], held["jobs.require_confinement"]), ("s3://mill/replicas", True))
        shared = {"TENSORMILL_CATALOG_URL", "TENSORMILL_BLOBS", "TENSORMILL_S3_ENDPOINT"}
        self.assertLessEqual(shared, set(one))
        for name in set(one) | set(two):
            own = name in ("TENSORMILL_LISTEN", "TENSORMILL_OPS_LISTEN")
            self.assertEqual(one[name] != two[name], own, name)
            self.assertIn(name, docker_test.settings())
        # Each has a folder of its own for its cache, and both the same keys.
        folders = [dict(self.mount(volume) for volume in services[name]["volumes"]) for name in ("one", "two")]
        self.assertNotEqual(folders[0]["/var/lib/tensormill"], folders[1]["/var/lib/tensormill"])
        self.assertEqual(folders[0]["/run/secrets/tensormill"], folders[1]["/run/secrets/tensormill"])
        # They are each other's loopback: without that, database and store would need certificates.
        for name in ("one", "two", "postgres", "s3"):
            self.assertEqual(services[name]["network_mode"], "service:net", name)
        for port in services["net"]["ports"]:
            self.assertTrue(str(port).startswith("127.0.0.1:") or port.get("host_ip") == "127.0.0.1", port)


if __name__ == "__main__":
    unittest.main()
