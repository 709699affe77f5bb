"""What operators set: API keys and their scopes, metrics and health on a listener of their own."""

import http.client
import json
import re
import tempfile
import tomllib
import unittest
from pathlib import Path

import numpy as np

import mill
import serving

DIGITS = mill.ROOT / "tests/models/digits.onnx"
SAMPLE = re.compile(r'^[a-zA-Z_:][a-zA-Z0-9_:]*(\{([a-zA-Z_][a-zA-Z0-9_]*="([^"\\\n]|\\["\\n])*",?)*\})? (-?[0-9.e+-]+|\+Inf|NaN)$')


class KeysTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = Path(folder.name) / "keys"

    def keys(self, *args):
        return mill.run_program("keys", "--keys-file", self.file, *args)

    def add(self, name, scopes):
        done = self.keys("add", name, "--scopes", scopes)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()

    def test_the_command(self):
        key = self.add("ci", "infer,read")
        self.assertEqual(self.keys("add", "ci", "--scopes", "read").returncode, 3)
        self.assertEqual(self.keys("add", "x", "--scopes", "root").returncode, 2)
        listed = self.keys("list").stdout
        self.assertIn("ci\tinfer,read\t", listed)
        self.assertNotIn(key[3:], listed + self.file.read_text())
        self.assertEqual(self.keys("revoke", "nobody").returncode, 3)
        self.assertEqual(self.keys("revoke", "ci").returncode, 0)
        self.assertEqual(self.keys("list").stdout, "")

    def test_scopes_and_changes_while_it_runs(self):
        reader, writer, boss = self.add("reader", "read"), self.add("writer", "write,read"), self.add("boss", "admin")
        audit = self.file.with_name("audit")
        server = serving.make_server(self, "--keys-file", str(self.file), "--set", f"audit_log={audit}")

        def ask(method, path, key=None, body=None):
            fields = {"Authorization": f"Bearer {key}"} if key else {}
            return server.request(method, path, body, fields)
        self.assertEqual([ask("GET", path).status for path in ("/healthz", "/readyz", "/", "/docs")], [200] * 4)
        refused = ask("GET", "/v1/models")
        self.assertEqual((refused.status, refused.json()["code"]), (401, "unauthorized"))
        self.assertEqual(refused.headers["WWW-Authenticate"], "Bearer")
        self.assertEqual(ask("GET", "/v1/models", "tm_" + "0" * 64).status, 401)
        self.assertEqual(ask("GET", "/v1/models", reader).status, 200)
        data = DIGITS.read_bytes()
        self.assertEqual(ask("POST", "/v1/models?name=d", reader, data).json()["code"], "forbidden")
        self.assertEqual(ask("POST", "/v1/models?name=d", writer, data).status, 201)
        self.assertEqual(ask("POST", "/v1/deployments/d/infer", writer).status, 403)
        self.assertEqual(ask("POST", "/v1/deployments/d/infer", boss).status, 404)
        self.assertEqual(self.keys("revoke", "reader").returncode, 0)
        self.assertEqual(ask("GET", "/v1/models", reader).status, 401)
        late = self.add("late", "read")
        self.assertEqual(ask("GET", "/v1/models", late).status, 200)
        self.file.write_text(self.file.read_text() + "not a key\n")
        self.assertEqual(ask("GET", "/v1/models", late).status, 401)
        self.assertNotIn(late[3:], server.log_tail())
        lines = [json.loads(line) for line in audit.read_text().splitlines()]
        changed = [(line["caller"], line["method"], line["status"]) for line in lines if line["status"] not in (401, 403)]
        self.assertEqual(changed, [("writer", "POST", 201)])
        self.assertIn(("reader", "/v1/models?name=d", 403), [(line["caller"], line["target"], line["status"]) for line in lines])
        self.assertNotIn(boss[3:], audit.read_text())

    def test_a_public_address_needs_keys(self):
        def serve(*args):
            return mill.run_program("serve", "--listen", "0.0.0.0:0", "--data", self.file.parent / "data", *args)
        self.assertEqual(serve().returncode, 2)
        missing = serve("--keys-file", self.file)
        self.assertEqual(missing.returncode, 2)
        self.assertIn("keys", missing.stderr)
        self.file.write_text("# none yet\n")
        self.assertEqual(serve("--keys-file", self.file).returncode, 2)
        self.file.write_text("broken\n")
        self.assertEqual(serve("--keys-file", self.file).returncode, 2)


class MetricsTest(unittest.TestCase):
    def setUp(self):
        self.server = serving.make_server(self, "--ops-listen", "127.0.0.1:0")
        line = next(line for line in self.server.settings if line.startswith("metrics on "))
        self.port = int(line.rsplit(":", 1)[1].split("/")[0])

    def ops(self, path, method="GET"):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=serving.DEADLINE)
        try:
            connection.request(method, path)
            answer = connection.getresponse()
            return serving.Answer(answer.status, answer.headers, answer.read())
        finally:
            connection.close()

    def metrics(self):
        answer = self.ops("/metrics")
        self.assertEqual(answer.status, 200)
        self.assertTrue(answer.headers["Content-Type"].startswith("text/plain; version=0.0.4"))
        values, types = {}, {}
        for line in answer.body.decode().splitlines():
            if line.startswith("# TYPE "):
                name, kind = line.split()[2:]
                types[name] = kind
            elif not line.startswith("#"):
                self.assertRegex(line, SAMPLE)
                name, value = line.rsplit(" ", 1)
                self.assertNotIn(name, values, "each series is there once")
                values[name] = float(value)
        return values, types

    def test_what_the_process_did(self):
        server = self.server
        before, types = self.metrics()
        self.assertEqual(types["infer_compute_seconds"], "histogram")
        self.assertEqual(before["store_objects"], 0)
        server.upload("digits", DIGITS.read_bytes())
        package = server.compile("digits", {"image": [1, 1, 28, 28]})
        server.submit("digits", {"image": [1, 1, 28, 28]})
        server.deploy("digits", package)
        image = {"image": np.zeros((1, 1, 28, 28), np.float32)}
        for _ in range(3):
            self.assertEqual(server.infer("digits", image).status, 200)
        self.assertEqual(server.infer("digits", {}).status, 422)
        server.infer("nothing", image)
        server.request("GET", "/no/such/path/at/all")
        after, _ = self.metrics()
        self.assertEqual(after['infer_requests_total{model="digits",version="1",outcome="ok"}'], 3)
        self.assertEqual(after['infer_requests_total{model="digits",version="",outcome="invalid_tensor"}'], 1)
        self.assertEqual(after['infer_compute_seconds_count{model="digits",version="1"}'], 3)
        self.assertEqual(after['infer_compute_seconds_bucket{model="digits",version="1",le="+Inf"}'], 3)
        self.assertEqual(after['infer_queue_depth{model="digits"}'], 0)
        self.assertEqual(after['job_total{kind="compile",state="succeeded"}'], 1)
        self.assertEqual(after["action_cache_hits_total"], 1)
        self.assertEqual(after["action_cache_misses_total"], 1)
        self.assertEqual(after['deployment_state{model="digits",version="1",state="ready"}'], 1)
        self.assertGreaterEqual(after["store_objects"], 10)
        self.assertGreater(after["process_resident_memory_bytes"], 1e6)
        route = 'route="/v1/deployments/{deployment}/infer",method="POST"'
        self.assertEqual(after[f'http_requests_total{{{route},code="200"}}'], 3)
        self.assertEqual(after['http_requests_total{route="",method="",code="404"}'], 1)
        walls = server.request("GET", "/v1/info").json()["confinement"]
        missing = "seccomp" if not walls["seccomp"] else "landlock" if not walls["landlock_abi"] else "none"
        for kind in ("import", "compile"):
            self.assertGreaterEqual(after[f'children_total{{kind="{kind}",missing_wall="{missing}"}}'], 1)
        self.assertFalse([name for name in after if "nothing" in name or "no/such" in name], "strangers make no series")

    def test_settings_can_be_checked(self):
        done = mill.run_program("config", "check", "--set", "store.quota=2MiB", "--set", "http.workers=3")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("http.workers = 3\n", done.stdout)
        self.assertIn("store.quota = ", done.stdout)
        wrong = mill.run_program("config", "check", "--set", "http.wokers=3")
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("http.wokers", wrong.stderr)
        self.assertEqual(mill.run_program("config").returncode, 2)

    def test_settings_files_are_toml_and_what_is_printed_is_one(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "settings.toml"

            def check(text, *options):
                file.write_text(text)
                return mill.run_program("config", "check", "--config", file, *options)

            done = check('listen = "127.0.0.1:1"\n[http]\nworkers = 3\nallowed_hosts = ["a.example", "b.example"]\n'
                         'body_timeout = "5m"\n', "--set", "listen=127.0.0.1:2")
            self.assertEqual(done.returncode, 0, done.stderr)
            found = tomllib.loads(done.stdout)
            self.assertEqual(found["listen"], "127.0.0.1:2")
            self.assertEqual(found["http"]["workers"], 3)
            self.assertEqual(found["http"]["allowed_hosts"], ["a.example", "b.example"])
            self.assertIs(found["read_only"], False)
            self.assertEqual(check(done.stdout).stdout, done.stdout)
            for text, said in (("\nlisten = 127.0.0.1:1", f"{file} line 2 column "),
                               ("\nhttp.wokers = 3", "http.workers"),
                               ("\n\nhttp.workers = true", f"{file} line 3: setting http.workers is a truth value"),
                               ("#" * (1 << 20), f"{file} has more than 16384 bytes")):
                wrong = check(text)
                self.assertEqual(wrong.returncode, 2, wrong.stderr)
                self.assertIn(said, wrong.stderr)
            self.assertEqual(mill.run_program("config", "check", "--config", Path(folder) / "none").returncode, 2)

    def test_only_what_belongs_there(self):
        self.assertEqual((self.ops("/healthz").status, self.ops("/readyz").status), (200, 200))
        self.assertEqual(self.ops("/v1/models").status, 404)
        self.assertEqual(self.ops("/metrics", "POST").status, 405)
        self.assertEqual(self.server.request("GET", "/metrics").status, 404)
        done = mill.run_program("serve", "--listen", "127.0.0.1:0", "--ops-listen", "nowhere", "--data",
                                self.server.folder / "other")
        self.assertEqual(done.returncode, 2)


if __name__ == "__main__":
    unittest.main()
