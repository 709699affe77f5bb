"""`tensormill push` and `pull` with Debian's docker-registry: bytes come back the same, signatures are checked, and what a
registry gives that is not what was asked for is refused."""

import base64
import hashlib
import http.server
import json
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import unittest
from pathlib import Path

import mill
import s3_server
import serving

DIGITS = mill.ROOT / "tests/models/digits.onnx"
CONFIG = """version: 0.1
storage: {{filesystem: {{rootdirectory: {root}}}}}
http: {{addr: "127.0.0.1:{port}"}}
{auth}"""


def make_key(path):
    """An Ed25519 key, and its public half beside it."""
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", path], check=True, capture_output=True)
    subprocess.run(["openssl", "pkey", "-in", path, "-pubout", "-out", f"{path}.pub"], check=True, capture_output=True)


class Registry:
    def __init__(self, test, auth=""):
        program = shutil.which("docker-registry")
        test.assertIsNotNone(program, "Debian's docker-registry is not installed")
        folder = tempfile.TemporaryDirectory()
        test.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.port = s3_server.free_port()
        (self.root / "config.yml").write_text(CONFIG.format(root=self.root / "data", port=self.port,
                                                            auth=auth.replace("{{", "{").replace("}}", "}")))
        self.log = open(self.root / "log", "wb")
        test.addCleanup(self.log.close)
        self.process = subprocess.Popen([program, "serve", str(self.root / "config.yml")], stdout=self.log,
                                        stderr=self.log, stdin=subprocess.DEVNULL, env={**os.environ, "OTEL_TRACES_EXPORTER": "none"})
        test.addCleanup(self.process.wait)
        test.addCleanup(self.process.kill)
        for _ in range(3000):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            test.assertIsNone(self.process.poll(), (self.root / "log").read_text())
            threading.Event().wait(0.01)
        raise AssertionError("the registry did not start")

    def name(self, repository):
        return f"127.0.0.1:{self.port}/{repository}"

    def blob(self, digest):
        word = digest.removeprefix("sha256:")
        return self.root / f"data/docker/registry/v2/blobs/sha256/{word[:2]}/{word}/data"


class RegistryTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """A package, signed by a server as it exports it."""
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.key = Path(folder.name) / "mine.pem"
        make_key(cls.key)
        server = serving.make_server(cls, "--set", f"packages.signing_key={cls.key}")
        assert server.upload("digits", DIGITS.read_bytes()).status == 201
        name = server.compile("digits", {"image": [1, 1, 28, 28]}, opt_level=1)
        cls.signed = server.request("GET", f"/v1/packages/{name}/archive?signed=1").body
        cls.plain = cls.signed[:-512]
        server.stop()

    def write(self, name, data):
        (self.folder / name).write_bytes(data)
        return self.folder / name

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        os.environ["DOCKER_CONFIG"] = str(self.folder)
        self.addCleanup(os.environ.pop, "DOCKER_CONFIG")

    def test_a_package_and_a_model_come_back_to_the_byte(self):
        registry, package = Registry(self), self.write("digits.tar", self.plain)
        pushed = json.loads(mill.check_program(self, "push", package, registry.name("team/digits:v1"), "--json"))
        again = json.loads(mill.check_program(self, "push", package, registry.name("team/digits:v2"), "--json"))
        self.assertEqual(pushed["digest"], again["digest"], "the same bytes are the same artifact")
        manifest = json.loads(registry.blob(pushed["digest"]).read_text())
        self.assertEqual(manifest["artifactType"], "application/vnd.tensormill.package.v1")
        self.assertEqual(manifest["layers"][0]["digest"], "sha256:" + hashlib.sha256(package.read_bytes()).hexdigest())
        for reference in ("team/digits:v1", "team/digits@" + pushed["digest"]):
            target = self.folder / "pulled.tar"
            mill.check_program(self, "pull", registry.name(reference), "-o", target, "--unsigned")
            self.assertEqual(target.read_bytes(), package.read_bytes())
            refused = mill.run_program("pull", registry.name(reference), "-o", target, "--unsigned")
            self.assertIn("is there already", refused.stderr)
            target.unlink()
        # A package is code: nobody gets it without saying whose he takes.
        self.assertIn("--trusted-key", mill.run_program("pull", registry.name("team/digits:v1")).stderr)
        mill.check_program(self, "push", DIGITS, registry.name("models/digits"), "--model")
        os.makedirs(self.folder / "home")
        done = subprocess.run([mill.PROGRAM, "pull", registry.name("models/digits:latest")], cwd=self.folder / "home",
                              check=True, capture_output=True)
        self.assertEqual((self.folder / "home/digits.onnx").read_bytes(), DIGITS.read_bytes(), done)

        # Bytes that changed in the registry.
        blob = registry.blob(manifest["layers"][0]["digest"])
        data = bytearray(blob.read_bytes())
        data[1000] ^= 1
        blob.write_bytes(data)
        damaged = mill.run_program("pull", registry.name("team/digits:v1"), "-o", self.folder / "bad.tar", "--unsigned")
        self.assertEqual(damaged.returncode, 3, damaged.stderr)
        self.assertIn("digest", damaged.stderr)
        self.assertEqual([p.name for p in self.folder.glob("bad*")], [])
        absent = mill.run_program("pull", registry.name("team/absent"), "--unsigned")
        self.assertIn("404", absent.stderr)

    def test_a_signature_is_checked(self):
        registry, other = Registry(self), self.folder / "other.pem"
        make_key(other)
        mill.check_program(self, "push", self.write("signed.tar", self.signed), registry.name("p:signed"))
        mill.check_program(self, "push", self.write("plain.tar", self.plain), registry.name("p:plain"))
        target = self.folder / "target.tar"
        for tag, key in (("signed", other), ("plain", self.key)):
            refused = mill.run_program("pull", registry.name(f"p:{tag}"), "-o", target, "--trusted-key", f"{key}.pub")
            self.assertEqual(refused.returncode, 3, refused.stderr)
            self.assertFalse(target.exists())
        mill.check_program(self, "pull", registry.name("p:signed"), "-o", target, "--trusted-key", f"{other}.pub",
                           "--trusted-key", f"{self.key}.pub")
        self.assertEqual(target.read_bytes(), self.signed)

    def test_logins_are_those_of_docker(self):
        # bcrypt of "secret", the only form that the registry takes.
        (self.folder / "users").write_text("me:$2b$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a\n")
        auth = "auth: {{htpasswd: {{realm: mill, path: " + str(self.folder / "users") + "}}}}\n"
        registry = Registry(self, auth)
        refused = mill.run_program("push", DIGITS, registry.name("m"), "--model")
        self.assertEqual(refused.returncode, 3, refused.stderr)
        self.assertIn("401", refused.stderr)
        for password, code in (("wrong", 3), ("secret", 0)):
            login = base64.b64encode(f"me:{password}".encode()).decode()
            self.write("config.json", json.dumps({"auths": {f"127.0.0.1:{registry.port}": {"auth": login}}}).encode())
            done = mill.run_program("push", DIGITS, registry.name("m"), "--model")
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertNotIn(password + "\n", done.stderr)
        mill.check_program(self, "pull", registry.name("m"), "-o", self.folder / "model.onnx")
        self.write("config.json", b'{"auths": {"127.0.0.1:%d": {"auth": "-"}}}' % registry.port)
        self.assertEqual(mill.run_program("pull", registry.name("m"), "-o", self.folder / "again").returncode, 2)

    def test_references_that_are_none(self):
        for name in ("digits", "host/", "host/UPPER", "host/a:b:c", "host/a@sha256:12", "http://host/a", "host/a b", "x" * 600):
            answer = mill.run_program("pull", name)
            self.assertEqual(answer.returncode, 2, (name, answer.stderr))

    def serve(self, handler):
        """What answers as `handler` does, until the test's end."""
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return server

    def test_redirects(self):
        """They are followed to their end, on this host with the login; another host must be asked by TLS, and an end there must be."""
        asked = []
        body = json.dumps({"schemaVersion": 2}).encode()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                asked.append((self.path, self.headers.get("Authorization")))
                login = self.headers.get("Authorization")
                self.send_response(401 if not login else 200 if self.path == "/there" else 307)
                self.send_header("WWW-Authenticate", "Basic realm=x")
                self.send_header("Location", where)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        for where, word in (("/there", "artifactType"), ("/round", "answers 307"), ("http://127.0.0.1:9/there", "leads to http://127.0.0.1:9 without TLS"),
                            ("http://a b", "names an address that is none: http://a b")):
            server = self.serve(Handler)
            login = base64.b64encode(b"me:secret").decode()
            self.write("config.json", json.dumps({"auths": {f"127.0.0.1:{server.server_port}": {"auth": login}}}).encode())
            asked.clear()
            answer = mill.run_program("pull", f"127.0.0.1:{server.server_port}/a", "-o", self.folder / "model")
            self.assertNotEqual(answer.returncode, 0)
            self.assertIn(word, answer.stderr)
            self.assertLess(len(asked), 10)
            self.assertEqual({login for _, login in asked[1:]}, {"Basic " + login})

    def test_a_registry_that_lies(self):
        """A manifest of another kind, one that asks for too much, bytes past what it says."""
        answers = {}

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                status, body = answers.get(self.path, (404, b"{}"))
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        server = self.serve(Handler)
        kind = "application/vnd.tensormill.model.v1"
        body = b"twelve bytes"
        digest = "sha256:" + hashlib.sha256(body).hexdigest()

        def manifest(**changes):
            layer = {"mediaType": kind + ".content", "digest": digest, "size": 12, **changes.pop("layer", {})}
            config = {"mediaType": kind + ".config+json", "digest": digest, "size": 12}
            return json.dumps({"schemaVersion": 2, "artifactType": kind, "config": config, "layers": [layer], **changes}).encode()

        answers[f"/v2/a/blobs/{digest}"] = (200, body)
        target = self.folder / "model"
        for text, word in ((b"[]", "manifest"), (b"{", "JSON"), (manifest(artifactType="application/x"), "artifactType"),
                           (manifest(layers=[]), "layer"), (manifest(layer={"digest": "md5:1"}), "sha256"),
                           (manifest(layer={"size": -1}), "size"), (manifest(layer={"size": 11}), "more bytes"),
                           (manifest(layer={"size": 1 << 50}), "size"), (b"x" * (5 << 20), "4 MiB")):
            answers["/v2/a/manifests/latest"] = (200, text)
            answer = mill.run_program("pull", f"127.0.0.1:{server.server_port}/a", "-o", target)
            self.assertNotEqual(answer.returncode, 0, text[:80])
            self.assertIn(word, answer.stderr)
            self.assertFalse(target.exists())
        answers["/v2/a/manifests/latest"] = (200, manifest())
        mill.check_program(self, "pull", f"127.0.0.1:{server.server_port}/a", "-o", target)
        self.assertEqual(target.read_bytes(), body)
        answers["/v2/a/manifests/latest"] = (500, b"no")
        self.assertIn("500", mill.run_program("pull", f"127.0.0.1:{server.server_port}/a").stderr)


if __name__ == "__main__":
    unittest.main()
