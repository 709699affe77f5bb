"""Traces: a span for each request goes to the collector that otel.endpoint names, as part of the trace that the request brings."""

import http.server
import json
import queue
import tempfile
import threading
import unittest
import urllib.request
from pathlib import Path

import grpc_peer
import numpy as np

import mill
import serving

DIGITS = mill.ROOT / "tests/models/digits.onnx"
PICTURE = {"image": np.zeros((1, 1, 28, 28), np.float32)}
PATIENCE = 600


class Collector:
    """Takes OTLP over HTTP; spans come out of `spans`."""

    def __init__(self, status=200):
        spans = self.spans = queue.Queue()
        self.documents = []
        documents = self.documents

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):  # noqa: N802
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                documents.append((self.path, self.headers["Content-Type"], body))
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()
                for resource in body["resourceSpans"]:
                    for scope in resource["scopeSpans"]:
                        for span in scope["spans"]:
                            spans.put(span)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def next(self, name):
        """The next span of that name; those before it are let go."""
        while True:
            span = self.spans.get(timeout=PATIENCE)
            if span["name"] == name:
                return span


def attributes(span):
    return {one["key"]: next(iter(one["value"].values())) for one in span["attributes"]}


class TraceTest(unittest.TestCase):
    def collector(self, **more):
        collector = Collector(**more)
        self.addCleanup(collector.close)
        return collector

    def test_requests_are_spans_of_the_trace_that_they_bring(self):
        collector = self.collector()
        server = serving.make_server(self, "--set", f"otel.endpoint={collector.url}/", "--set", "otel.service=mill")
        trace, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
        server.request("GET", "/v1/models?limit=1", headers={"traceparent": f"00-{trace}-{parent}-01", "X-Request-Id": "r1"})
        span = collector.next("GET /v1/models")
        self.assertEqual((span["traceId"], span["parentSpanId"], span["kind"]), (trace, parent, 2))
        self.assertRegex(span["spanId"], "^[0-9a-f]{16}$")
        self.assertLessEqual(int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"]))
        found = attributes(span)
        self.assertEqual((found["http.request.method"], found["http.route"], found["http.response.status_code"], found["url.path"],
                          found["tensormill.request_id"]), ("GET", "/v1/models", "200", "/v1/models", "r1"))
        path, kind, body = collector.documents[0]
        self.assertEqual((path, kind), ("/v1/traces", "application/json"))
        resource = {one["key"]: one["value"]["stringValue"] for one in body["resourceSpans"][0]["resource"]["attributes"]}
        self.assertEqual(resource["service.name"], "mill")
        # One that is not recorded by who began it is not here either; one without a trace begins one.
        server.request("GET", "/v1/jobs", headers={"traceparent": f"00-{trace}-{parent}-00"})
        server.request("GET", "/v1/info", headers={"traceparent": "no trace"})
        span = collector.spans.get(timeout=PATIENCE)
        while span["name"] == "GET /readyz":
            span = collector.spans.get(timeout=PATIENCE)
        self.assertEqual(span["name"], "GET /v1/info")
        self.assertNotEqual(span["traceId"], trace)
        self.assertNotIn("parentSpanId", span)

    def test_clients_change_what_is_traced(self):
        collector = self.collector()
        server = serving.make_server(self, "--set", f"otel.endpoint={collector.url}", "--set", "otel.sample_percent=0")
        server.upload("digits", DIGITS.read_bytes())
        server.deploy("digits", server.compile("digits", {"image": [1, 1, 28, 28]}, opt_level=0))
        self.assertIn("trace", server.request("GET", "/v2").json()["extensions"])
        setting = "/v2/trace/setting"
        self.assertEqual(server.request("GET", setting).json()["trace_level"], ["OFF"])
        model = "/v2/models/digits/trace/setting"
        changed = server.send_json("POST", model, {"trace_level": ["TIMESTAMPS"], "trace_rate": "2", "trace_count": "2"})
        self.assertEqual((changed.status, changed.json()["trace_rate"]), (200, "2"))
        self.assertEqual(server.request("GET", setting).json()["trace_level"], ["OFF"], "of one model alone")
        infer = lambda name: server.request("POST", "/v1/deployments/digits/infer", serving.npz(PICTURE),
                                            {"Content-Type": "application/x-npz", "X-Request-Id": name})
        for number in range(8):
            self.assertEqual(infer(f"r{number}").status, 200)
        # Every second one, two of them.
        self.assertEqual(server.request("GET", model).json()["trace_count"], "0")
        taken = [attributes(collector.next("POST /v1/deployments/{deployment}/infer"))["tensormill.request_id"] for _ in range(2)]
        self.assertEqual(taken, ["r0", "r2"])
        back = server.send_json("POST", model, {"trace_level": None, "trace_rate": None, "trace_count": None}).json()
        self.assertEqual((back["trace_level"], back["trace_count"]), (["OFF"], "-1"))
        for status, body in ((501, {"trace_level": ["TENSORS"]}), (400, {"trace_rate": "0"}), (400, {"trace_level": "OFF"}), (400, {"luck": 1}),
                             (501, {"trace_file": "/tmp/x"})):
            self.assertEqual(server.send_json("POST", setting, body).status, status, body)
        self.assertEqual(server.send_json("POST", "/v2/models/nothing/trace/setting", {}).status, 404)
        plain = serving.make_server(self)
        self.assertEqual(plain.request("GET", setting).json()["trace_level"], ["OFF"])
        self.assertEqual(plain.send_json("POST", setting, {"trace_level": ["TIMESTAMPS"]}).status, 501)

    def test_the_same_over_grpc(self):
        collector = self.collector()
        server = grpc_peer.make_server(self, "--set", f"otel.endpoint={collector.url}", "--set", "otel.sample_percent=0")
        server.upload("digits", DIGITS.read_bytes())
        server.deploy("digits", server.compile("digits", {"image": [1, 1, 28, 28]}, opt_level=0))
        client = grpc_peer.client(self, server)
        texts = lambda answer: {name: list(setting.value) for name, setting in answer.settings.items()}
        rest = lambda path: {name: value if isinstance(value, list) else [value] for name, value in server.request("GET", path).json().items()}
        for model, path in ((None, "/v2/trace/setting"), ("digits", "/v2/models/digits/trace/setting")):
            self.assertEqual(texts(client.get_trace_settings(model)), rest(path))
            changed = texts(client.update_trace_settings(model, {"trace_level": ["TIMESTAMPS"], "trace_rate": "3", "trace_count": "9"}))
            self.assertEqual((changed["trace_level"], changed["trace_rate"], changed["trace_count"]), (["TIMESTAMPS"], ["3"], ["9"]))
            self.assertEqual(changed, {**rest(path), "trace_count": ["9"]}, "the request that asks is counted itself")
            back = texts(client.update_trace_settings(model, {"trace_level": None, "trace_rate": None, "trace_count": None}))
            self.assertEqual((back["trace_level"], back["trace_rate"], back["trace_count"]), (["OFF"], ["1"], ["-1"]))
        for status, model, settings in (("UNIMPLEMENTED", None, {"trace_level": ["TENSORS"]}), ("INVALID_ARGUMENT", None, {"trace_rate": "0"}),
                                        ("INVALID_ARGUMENT", None, {"trace_rate": ["1", "2"]}), ("INVALID_ARGUMENT", None, {"luck": "1"}),
                                        ("NOT_FOUND", "nothing", {"trace_rate": "1"})):
            with self.assertRaises(grpc_peer.InferenceServerException) as caught:
                client.update_trace_settings(model, settings)
            self.assertIn(status, caught.exception.status(), settings)
        with self.assertRaises(grpc_peer.InferenceServerException) as caught:
            client.get_trace_settings("nothing")
        self.assertIn("NOT_FOUND", caught.exception.status())

    def test_buckets_show_traces(self):
        collector = self.collector()
        server = serving.make_server(self, "--set", f"otel.endpoint={collector.url}", "--ops-listen", "127.0.0.1:0")
        trace = "4bf92f3577b34da6a3ce929d0e0e4736"
        server.request("GET", "/v1/models", headers={"traceparent": f"00-{trace}-00f067aa0ba902b7-01"})
        url = next(line.split()[-1] for line in server.settings if line.startswith("metrics on "))
        with urllib.request.urlopen(urllib.request.Request(url, headers={"Accept": "application/openmetrics-text; version=1.0.0"})) as answer:
            self.assertTrue(answer.headers["Content-Type"].startswith("application/openmetrics-text"))
            text = answer.read().decode()
        self.assertRegex(text, rf'http_request_duration_seconds_bucket\{{route="/v1/models",[^}}]*\}} \d+ # \{{trace_id="{trace}"\}} ')
        self.assertTrue(text.endswith("# EOF\n"))

    def test_an_inference_has_its_parts_below_it(self):
        collector = self.collector()
        server = serving.make_server(self, "--set", f"otel.endpoint={collector.url}")
        server.upload("digits", DIGITS.read_bytes())
        self.assertEqual(server.deploy("digits", server.compile("digits", opt_level=0)).status, 201)
        self.assertEqual(server.infer("digits", PICTURE).status, 200)
        part = collector.next("compute")
        name = "POST /v1/deployments/{deployment}/infer"
        whole = collector.next(name)
        self.assertEqual((part["traceId"], part["parentSpanId"], part["kind"]), (whole["traceId"], whole["spanId"], 1))
        self.assertGreaterEqual(int(part["startTimeUnixNano"]), int(whole["startTimeUnixNano"]))
        self.assertEqual((attributes(whole)["tensormill.model"], attributes(whole)["tensormill.version"]), ("digits", "1"))

    def test_no_request_waits_for_a_collector_that_is_not_there(self):
        collector = self.collector(status=503)
        port = collector.server.server_address[1]
        server = serving.make_server(self, "--set", f"otel.endpoint=http://127.0.0.1:{port}", "--ops-listen", "127.0.0.1:0")
        self.assertEqual(server.request("GET", "/v1/info").status, 200)
        collector.next("GET /v1/info")
        self.assertEqual(server.request("GET", "/v1/info").status, 200)
        self.assertEqual(server.stop(), 0)

    def test_off_by_default_and_refused_where_it_is_no_url(self):
        for value in ("collector:4318", "file:///tmp/x", "127.0.0.1"):
            with tempfile.TemporaryDirectory() as folder:
                data = Path(folder) / "data"
                done = mill.run_program("serve", "--listen", "127.0.0.1:0", "--data", data, "--set", f"otel.endpoint={value}")
                self.assertFalse(data.exists())
            self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
            self.assertIn("otel.endpoint", done.stderr)


if __name__ == "__main__":
    unittest.main()
