"""Keys over HTTP beside those of the file, keys for one deployment, whose jobs are whose, the audit log behind a proxy, the health
command."""

import http.client
import tempfile
import unittest
from pathlib import Path

import numpy as np

import mill
import serving

DIGITS = mill.ROOT / "tests/models/digits.onnx"
SHAPES = {"image": [1, 1, 28, 28]}


class ServerKeysTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = Path(folder.name) / "keys"
        self.boss = self.file_key("boss", "admin")

    def file_key(self, name, scopes, *more):
        done = mill.run_program("keys", "--keys-file", self.file, "add", name, "--scopes", scopes, *more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()

    def serve(self, *options):
        self.server = serving.make_server(self, "--keys-file", str(self.file), "--ops-listen", "127.0.0.1:0", *options)

    def ask(self, method, path, key, body=None, **headers):
        fields = {"Authorization": f"Bearer {key}", **{name.replace("_", "-"): value for name, value in headers.items()}}
        if isinstance(body, (dict, list)):
            return self.server.send_json(method, path, body, fields)
        return self.server.request(method, path, body, fields)

    def make_key(self, name, *scopes, **more):
        answer = self.ask("POST", "/v1/keys", self.boss, {"name": name, "scopes": list(scopes), **more})
        self.assertEqual(answer.status, 201, answer.body)
        return answer.json()["key"]

    def ops(self, path, host=None):
        line = next(line for line in self.server.settings if line.startswith("metrics on "))
        connection = http.client.HTTPConnection("127.0.0.1", int(line.split(":")[-1].split("/")[0]), timeout=60)
        self.addCleanup(connection.close)
        connection.request("GET", path, headers={"Host": host} if host else {})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()

    def deploy_digits(self):
        model = self.ask("POST", "/v1/models?name=digits", self.boss, DIGITS.read_bytes())
        self.assertEqual(model.status, 201, model.body)
        job = self.ask("POST", "/v1/jobs", self.boss, {"kind": "compile", "model": "digits", "target": "llvm -mcpu=native",
                                                       "opt_level": 0, "input_shapes": SHAPES}).json()["id"]

        def ended():
            found = self.ask("GET", f"/v1/jobs/{job}", self.boss).json()
            return found if found["state"] in ("succeeded", "failed") else None
        package = serving.wait_for(ended, job)["result"]["package"]
        for name in ("digits", "secret"):
            put = self.ask("PUT", f"/v1/deployments/{name}", self.boss, {"package": package})
            self.assertEqual(put.status, 201, put.body)
        return package

    def test_a_key_for_one_deployment(self):
        self.serve()
        package = self.deploy_digits()
        clerk = self.make_key("clerk", "infer:digits", "read:digits")
        image = serving.npz({"image": np.zeros((1, 1, 28, 28), np.float32)})
        v2 = {"inputs": [{"name": "image", "shape": [1, 1, 28, 28], "datatype": "FP32", "data": [0] * 784}]}

        def doors(name):
            return [self.ask("POST", f"/v1/deployments/{name}/infer", clerk, image, Content_Type="application/x-npz").status,
                    self.ask("POST", f"/v2/models/{name}/infer", clerk, v2).status,
                    self.ask("POST", f"/v2/models/{name}/versions/1/infer", clerk, v2).status,
                    self.ask("GET", f"/v2/models/{name}", clerk).status,
                    self.ask("GET", f"/v2/models/{name}/config", clerk).status,
                    self.ask("GET", f"/v1/deployments/{name}", clerk).status]
        self.assertEqual(doors("digits"), [200] * 6)
        self.assertEqual(doors("secret"), [403] * 6)
        self.assertEqual(doors("absent"), [403] * 6)
        self.assertEqual(self.ask("POST", f"/v1/packages/{package}/run", clerk, image, Content_Type="application/x-npz").status, 403)
        for path in ("/v1/models", "/v1/jobs", "/v1/info", f"/v1/packages/{package}", "/v1/keys", "/v1/audit", "/v1/storage"):
            self.assertEqual(self.ask("GET", path, clerk).status, 403, path)
        self.assertEqual([one["name"] for one in self.ask("GET", "/v1/deployments", clerk).json()["items"]], ["digits"])
        self.assertEqual([one["name"] for one in self.ask("POST", "/v2/repository/index", clerk).json()], ["digits"])
        # Revoked, it is refused at once; the next process knows as well.
        self.assertEqual(self.ask("DELETE", "/v1/keys/clerk", self.boss).status, 204)
        self.assertEqual(self.ask("GET", "/v1/deployments", clerk).status, 401)
        kept = self.make_key("kept", "read")
        self.assertEqual(self.server.stop(), 0)
        self.server.start()
        self.assertEqual(self.ask("GET", "/v1/deployments", clerk).status, 401)
        self.assertEqual(self.ask("GET", "/v1/deployments", kept).status, 200)
        stored = b"".join(path.read_bytes() for path in (self.server.folder / "data").glob("catalog.db*"))
        for key in (self.boss, clerk, kept):
            self.assertNotIn(key[3:].encode(), stored)

    def test_jobs_belong_to_their_submitters(self):
        self.serve()
        self.assertEqual(self.ask("POST", "/v1/models?name=digits", self.boss, DIGITS.read_bytes()).status, 201)
        alice, bob = self.make_key("alice", "write", "read"), self.make_key("bob", "write", "read")
        tune = {"kind": "tune", "model": "digits", "target": "llvm -mcpu=native", "input_shapes": SHAPES, "trials": 1000}
        job = self.ask("POST", "/v1/jobs", alice, tune).json()["id"]
        refused = self.ask("POST", f"/v1/jobs/{job}/cancel", bob)
        self.assertEqual((refused.status, refused.json()["code"]), (403, "forbidden"))
        self.assertEqual(self.ask("GET", f"/v1/jobs/{job}/log", bob).status, 200)
        # Bob wants it too: alice's cancels, as many as they are, withdraw her alone.
        self.assertEqual(self.ask("POST", "/v1/jobs", bob, tune).json()["id"], job)
        for _ in range(3):
            self.assertIn(self.ask("POST", f"/v1/jobs/{job}/cancel", alice).json()["state"], ("queued", "running"))
        self.assertIn(self.ask("POST", f"/v1/jobs/{job}/cancel", self.boss).status, (200, 202))

        def cancelled():
            return self.ask("GET", f"/v1/jobs/{job}", bob).json()["state"] == "cancelled"
        serving.wait_for(cancelled, job)
        carol = self.make_key("carol", "write", "read")
        self.assertEqual(self.ask("POST", f"/v1/jobs/{job}/retry", carol).status, 403)
        self.assertEqual(self.ask("POST", f"/v1/jobs/{job}/retry", bob).status, 202)
        self.assertIn(self.ask("POST", f"/v1/jobs/{job}/cancel", bob).status, (200, 202))

    def test_the_audit_log_and_operators(self):
        self.serve("--set", "http.trusted_proxies=127.0.0.0/8", "--set", "http.allowed_hosts=mill.example")
        writer = self.make_key("writer-of-things", "write")
        self.ask("DELETE", "/v1/models/none", writer, X_Forwarded_For="203.0.113.9, 198.51.100.7")
        self.ask("DELETE", f"/v1/models/{writer}", writer)
        self.assertEqual(self.ask("GET", "/v1/models", "tm_" + "0" * 64).status, 401)
        page = self.ask("GET", "/v1/audit?limit=2", self.boss)
        self.assertEqual([(one["caller"], one["status"]) for one in page.json()["items"]],
                         [("", 401), ("writer-of-things", 404)])
        self.assertNotIn(writer[3:], page.body.decode())
        rest = self.ask("GET", f"/v1/audit?limit=2&cursor={page.json()['next_cursor']}", self.boss).json()["items"]
        self.assertEqual([(one["caller"], one["method"], one["client"]) for one in rest],
                         [("writer-of-things", "DELETE", "198.51.100.7"), ("boss", "POST", "127.0.0.1")])
        self.assertTrue(rest[0]["peer"].startswith("127.0.0.1:"))
        mine = self.ask("GET", "/v1/audit?caller=boss", self.boss).json()["items"]
        self.assertEqual({one["target"] for one in mine}, {"/v1/keys"})
        self.assertNotIn(writer[3:], self.server.log_tail())
        status, text = self.ops("/metrics")
        self.assertEqual(status, 200)
        self.assertNotIn("writer-of-things", text)
        self.assertEqual(self.ops("/metrics", "mill.example")[0], 200)
        self.assertEqual(self.ops("/metrics", "evil.example")[0], 421)
        self.assertEqual(self.ops("/healthz", "evil.example")[0], 200)

    def test_ends_of_keys(self):
        self.serve()
        soon = self.file_key("soon", "read", "--expires", "1h")
        self.assertEqual(self.ask("GET", "/v1/models", soon).status, 200)
        listed = {one["name"]: one for one in self.ask("GET", "/v1/keys", self.boss).json()["items"]}
        self.assertEqual(listed["soon"]["source"], "file")
        self.assertIsNotNone(listed["soon"]["expires_at"])
        lines = self.file.read_text().splitlines(keepends=True)
        past = [line.rsplit(" ", 1)[0] + " 2020-01-01T00:00:00Z\n" if line.startswith("soon ") else line for line in lines]
        self.file.write_text("".join(past))
        late = self.ask("GET", "/v1/models", soon)
        self.assertEqual(late.status, 401)
        self.assertIn("expired", late.json()["detail"])
        for wrong in ("2020-01-01", "soon", "0d", "-1d", "1w", "2026-02-30"):
            done = mill.run_program("keys", "--keys-file", self.file, "add", "x", "--scopes", "read", "--expires", wrong)
            self.assertEqual(done.returncode, 2, wrong)
            self.assertIn("--expires", done.stderr)
        answer = self.ask("POST", "/v1/keys", self.boss, {"name": "x", "scopes": ["read"], "expires_at": "2020-01-01T00:00:00Z"})
        self.assertEqual(answer.status, 422)

    def test_the_health_command(self):
        self.serve()
        url = f"http://127.0.0.1:{self.server.port}"
        self.assertEqual(mill.run_program("health", "--url", url).returncode, 0)
        self.assertEqual(mill.run_program("health", "--url", url, "--ready").returncode, 0)
        self.assertEqual(mill.run_program("health", "--listen", f"0.0.0.0:{self.server.port}").returncode, 0)
        self.assertEqual(self.server.stop(), 0)
        gone = mill.run_program("health", "--url", url)
        self.assertEqual(gone.returncode, 5, gone.stderr)
        self.assertEqual(mill.run_program("health", "--url", "ftp://x").returncode, 2)

    def test_settings_that_are_wrong(self):
        for setting in ("http.trusted_proxies=10.0.0.0/33", "http.allowed_hosts=*", "http.forwarded_field=via"):
            done = mill.run_program("serve", "--listen", "127.0.0.1:0", "--data", self.file.with_name("data"), "--set", setting)
            self.assertEqual(done.returncode, 2, setting)
            self.assertIn(setting.split("=", maxsplit=1)[0], done.stderr)


if __name__ == "__main__":
    unittest.main()
