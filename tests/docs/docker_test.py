"""What docker/ says agrees with the program: packages, settings, ports, metrics; its lines that make secrets make them readable."""

import json
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
DOCKER = ROOT / "docker"
COMPOSE = ("compose.yaml", "compose.replicas.yaml")


def services(name):
    """Those of a compose file, as it is written."""
    return yaml.safe_load((DOCKER / name).read_text())["services"]


def dockerfile_packages():
    """The packages of both stages."""
    text = (DOCKER / "Dockerfile").read_text().replace("\\\n", " ")
    return [set(found.split()) for found in re.findall(r"--no-install-recommends install\s+(.*?)&&", text)]


def settings():
    """Names of all settings as environment variables."""
    rows = re.findall(r'^TM_SETTING\(\w+, \w+, "([\w.]+)"', (ROOT / "config/settings.def").read_text(), re.MULTILINE)
    return {"TENSORMILL_" + name.upper().replace(".", "_") for name in rows}


def metric_names():
    rows = re.findall(r'^TM_METRIC\((\w+), "(\w+)"', (ROOT / "server/metrics/metrics.def").read_text(), re.MULTILINE)
    names = set()
    for kind, name in rows:
        names |= {name} if kind in ("kCounter", "kGauge") else {f"{name}_{part}" for part in ("bucket", "sum", "count")}
    return names


def manifests():
    documents = list(yaml.safe_load_all((DOCKER / "kubernetes/tensormill.yaml").read_text()))
    return {document["kind"]: document for document in documents}


def bytes_of(text):
    """Of a size as settings or Kubernetes write it."""
    number, unit = re.fullmatch(r"(\d+)([KMGT]?)i?B?", text).groups()
    return int(number) << {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}[unit]


def size_of(environment, name):
    """What a container's environment says of a setting that is a size; a KeyError where it leaves it to the default."""
    return bytes_of(environment["TENSORMILL_" + name.upper().replace(".", "_")])


def memory_of_a_server(environment):
    """What it may take at once (server/jobs/child_slots.h): processes of deployments may fill children.memory, and still one child
    of a job, one of a request and one that measures may run."""
    job, brought, run = (size_of(environment, name) for name in ("jobs.memory", "import.memory", "run.memory"))
    children = size_of(environment, "children.memory") + job + max(brought, run) + max(job, brought, run)
    return children + size_of(environment, "deployments.memory") + size_of(environment, "limits.memory_in_flight") + bytes_of("1GiB")


def memory_of_a_worker(environment):
    """Jobs fill children.memory, or one alone has more; what measures, a package that runs, never waits for them."""
    job, brought, run = (size_of(environment, name) for name in ("jobs.memory", "import.memory", "run.memory"))
    return max(size_of(environment, "children.memory"), job, brought, run) + run + bytes_of("1GiB")


def nginx_line(image):
    """(1, 30) of ${NGINX_IMAGE:-nginx:1.30}."""
    return tuple(map(int, re.search(r"nginx:(\d+)\.(\d+)\}$", image).groups()))


def is_kept_up(line):
    """Whether nginx still mends it: even minor numbers are stable lines, and each ends the one before; 1.30 is that of 2026."""
    return line >= (1, 30) and line[1] % 2 == 0


class DockerTest(unittest.TestCase):
    def test_the_build_installs_what_the_script_does(self):
        listed = re.search(r"kBuildPackages=\((.*?)\)", (ROOT / "dev").read_text(), re.DOTALL).group(1).split()
        self.assertEqual(dockerfile_packages()[0], set(listed))

    def test_the_image_has_every_library_of_the_program(self):
        linked = subprocess.run(["ldd", str(ROOT / "build/bin/tensormill")], capture_output=True, text=True, check=True)
        direct = subprocess.run(["readelf", "-d", str(ROOT / "build/bin/tensormill")], capture_output=True, text=True,
                                check=True)
        needed = re.findall(r"\(NEEDED\).*\[(.*?)\]", direct.stdout)
        self.assertGreater(len(needed), 5)
        paths = dict(re.findall(r"(\S+) => (\S+)", linked.stdout))
        base = {"libc6", "libstdc++6", "libgcc-s1"}
        for name in needed:
            if name.startswith("ld-linux"):
                continue
            real = str(Path(paths[name]).resolve())
            owner = None
            for candidate in (real, real.removeprefix("/usr"), "/usr" + real):
                found = subprocess.run(["dpkg", "-S", candidate], capture_output=True, text=True, check=False)
                if found.returncode == 0:
                    owner = found.stdout.split(":")[0]
                    break
            self.assertIsNotNone(owner, real)
            self.assertIn(owner, dockerfile_packages()[1] | base, name)

    def test_variables_are_settings(self):
        known = settings()
        for path in ("Dockerfile", *COMPOSE, "kubernetes/tensormill.yaml", "README.md"):
            named = set(re.findall(r"TENSORMILL_[A-Z0-9_]*[A-Z0-9]", (DOCKER / path).read_text())) - {"TENSORMILL_TESTS"}
            self.assertEqual(named - known, set(), path)

    def test_ports_and_users_agree(self):
        text = (DOCKER / "Dockerfile").read_text()
        pod = manifests()["Deployment"]["spec"]["template"]["spec"]
        container = pod["containers"][0]
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        self.assertIn(f"EXPOSE {ports['http']} {ports['ops']}", text)
        self.assertIn(f"TENSORMILL_LISTEN=0.0.0.0:{ports['http']}", text)
        self.assertIn(f"TENSORMILL_OPS_LISTEN=0.0.0.0:{ports['ops']}", text)
        user = pod["securityContext"]["runAsUser"]
        self.assertIn(f"USER {user}:{pod['securityContext']['runAsGroup']}", text)
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            self.assertEqual(container[probe]["httpGet"]["port"], "ops")
        service = services("compose.yaml")["tensormill"]
        self.assertTrue(service["read_only"])
        self.assertIn(f"tensormill:{ports['http']}", (DOCKER / "nginx/nginx.conf").read_text())

    def test_children_and_executors_fit_the_limit(self):
        container = manifests()["Deployment"]["spec"]["template"]["spec"]["containers"][0]
        given = {one["name"]: one.get("value") for one in container["env"]}

        limit = bytes_of(container["resources"]["limits"]["memory"])
        self.assertLessEqual(memory_of_a_server(given), limit)
        # README.md adds the same up.
        text = (DOCKER / "README.md").read_text()
        table = re.search(r"must fit the limit of a pod\. Of a server, here (\d+) GiB:\n\n((?:\|.*\n)+)", text)
        rows = [int(number) for number in re.findall(r"\| (\d+) \|$", table[2], re.MULTILINE)]
        self.assertEqual((sum(rows), int(table[1]) << 30), (memory_of_a_server(given) >> 30, limit))

    def test_images_have_versions_and_can_have_digests(self):
        version = re.search(r"project\(tensormill VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
        container = manifests()["Deployment"]["spec"]["template"]["spec"]["containers"][0]
        self.assertEqual((container["image"], container["imagePullPolicy"]), (f"tensormill:{version}", "IfNotPresent"))
        for path in COMPOSE:
            for name, service in services(path).items():
                if service["image"] != f"tensormill:{version}":
                    self.assertRegex(service["image"], r"^\$\{[A-Z0-9]+_IMAGE:-[\w/]+:v?\d[\d.]*\}$", f"{path} {name}")
        line = nginx_line(services("compose.yaml")["nginx"]["image"])
        self.assertTrue(is_kept_up(line), line)
        tags = set(re.findall(r"\btensormill:(\d[\w.]*)", (DOCKER / "README.md").read_text()))
        self.assertEqual(tags, {version})
        stages = re.findall(r"^FROM (\S+)", (DOCKER / "Dockerfile").read_text(), re.MULTILINE)
        self.assertEqual(stages, ["${BASE}"] * 2)
        base = re.search(r"^ARG BASE=(\S+)", (DOCKER / "Dockerfile").read_text(), re.MULTILINE).group(1)
        for path, name in (("compose.yaml", "tensormill"), ("compose.replicas.yaml", "one")):
            self.assertEqual(services(path)[name]["build"]["args"], {"BASE": f"${{BASE_IMAGE:-{base}}}"}, path)

    def test_lines_of_nginx_that_have_ended_are_noticed(self):
        lines = [nginx_line(f"${{NGINX_IMAGE:-nginx:{version}}}") for version in ("1.22", "1.28", "1.30", "1.31", "1.32", "2.0")]
        self.assertEqual([line for line in lines if is_kept_up(line)], [(1, 30), (1, 32), (2, 0)])

    def test_proxies_wait_for_an_answer_as_long_as_the_server_may_need(self):
        """An import is answered at its end, and may wait for a child before."""
        text = (ROOT / "config/settings.def").read_text()
        seconds = {"s": 1, "m": 60}
        needed = sum(int(number) * seconds[unit] for name in ("import.timeout", "children.wait")
                     for number, unit in re.findall(rf'"{re.escape(name)}", "(\d+)([sm])"', text))
        self.assertGreater(needed, 0)
        waits = {path: re.findall(r'proxy[_-]read[_-]timeout:? "?(\d+)', (DOCKER / path).read_text())
                 for path in ("nginx/nginx.conf", "kubernetes/tensormill.yaml", "helm/tensormill/values.yaml")}
        for path, found in waits.items():
            self.assertEqual([int(wait) > needed for wait in found], [True], path)

    def test_no_single_file_is_mounted(self):
        """A mounted file stays the old one when another takes its place: keys would outlive their revocation."""
        for name, service in [one for path in COMPOSE for one in services(path).items()]:
            for volume in service.get("volumes", []):
                source = volume.split(":")[0]
                if source.startswith("."):
                    self.assertFalse((DOCKER / source).is_file(), f"{name}: {volume}")
                    self.assertNotRegex(source, r"\.(conf|pem|yaml)$|/(password|credentials|keys)$")
        pod = manifests()["Deployment"]["spec"]["template"]["spec"]
        for mount in pod["containers"][0]["volumeMounts"]:
            self.assertNotIn("subPath", mount)

    def test_a_service_is_as_healthy_as_what_it_asks(self):
        image = re.search(r"^HEALTHCHECK .*", (DOCKER / "Dockerfile").read_text(), re.MULTILINE)
        self.assertIsNotNone(image)
        for path in COMPOSE:
            known = services(path)
            for name, service in known.items():
                for other, how in (service.get("depends_on") or {}).items():
                    if how["condition"] == "service_healthy":
                        self.assertIn("test", known[other]["healthcheck"], f"{path} {name} {other}")
                # The image's check asks the server on its port: who runs something else says what is looked at, if anything.
                if service["image"].startswith("tensormill:") and "tools" not in service.get("profiles", []):
                    self.assertIn("healthcheck", service, f"{path} {name}")
                    self.assertEqual("entrypoint" in service, service["healthcheck"] == {"disable": True}, f"{path} {name}")
        for name in ("one", "two"):
            self.assertEqual(services(COMPOSE[1])[name]["depends_on"], {
                "postgres": {"condition": "service_healthy"}, "s3": {"condition": "service_healthy"},
                "bucket": {"condition": "service_completed_successfully"}})

    def test_the_containers_users_can_read_the_secrets_and_others_on_the_machine_cannot(self):
        block = re.search(r"```\ncd docker\n(install .*?)docker compose", (DOCKER / "README.md").read_text(), re.DOTALL).group(1)
        mounted = {volume.split(":")[0] for service in services(COMPOSE[1]).values() for volume in service.get("volumes", [])
                   if volume.startswith("./secrets/")}
        for mask in ("077", "022", "002"):
            with self.subTest(umask=mask), tempfile.TemporaryDirectory() as folder:
                # A second time, as somebody does who renews them.
                for _ in range(2):
                    subprocess.run(["bash", "-euc", f"umask {mask}\n{block}"], cwd=folder, check=True, capture_output=True)
                secrets = Path(folder) / "secrets"
                self.assertEqual(secrets.stat().st_mode & 0o777, 0o700)
                self.assertEqual({f"./secrets/{one.name}" for one in secrets.iterdir()}, mounted)
                found = {str(one.relative_to(secrets)): one for one in secrets.glob("*/*")}
                for path in [*secrets.iterdir(), *found.values()]:
                    self.assertEqual(path.stat().st_mode & 0o077, 0o055 if path.is_dir() else 0o044, path)
                named = {f"/run/secrets/{name}" for name in found}
                environment = services(COMPOSE[1])["one"]["environment"]
                self.assertEqual({value for value in environment.values() if value.startswith("/run/secrets/")}, named)
                subprocess.run(["openssl", "pkey", "-in", found["signing/signing.pem"], "-noout"], check=True)
                self.assertRegex(found["s3/credentials"].read_text(),
                                 r"^\[default\]\naws_access_key_id = mill\naws_secret_access_key = [0-9a-f]{48}\n$")

    def test_the_manifests_leave_the_namespace_open(self):
        for kind, document in manifests().items():
            self.assertNotIn("namespace", document["metadata"], kind)
        self.assertNotRegex((DOCKER / "kubernetes/tensormill.yaml").read_text(), r"tensormill\.default")
        self.assertFalse(manifests()["Deployment"]["spec"]["template"]["spec"]["enableServiceLinks"])
        self.assertLessEqual({"NetworkPolicy", "PodDisruptionBudget", "Ingress"}, set(manifests()))

    def test_the_dashboard_shows_metrics_that_there_are(self):
        dashboard = json.loads((DOCKER / "grafana-dashboard.json").read_text())
        text = " ".join(target["expr"] for panel in dashboard["panels"] for target in panel["targets"])
        shown = set(re.findall(r"\b((?:http|infer|job|store|process|action|deployment)_\w+)", text))
        self.assertGreater(len(shown), 10)
        self.assertEqual(shown - metric_names(), set())


if __name__ == "__main__":
    unittest.main()
