"""Who is served over gRPC: connections up to a number, keys and their scopes, clients behind a proxy, TLS."""

import json
import ssl
import subprocess
import tempfile
import unittest
import urllib.request
from pathlib import Path

from grpc_peer import grpc, service_pb2
import grpc_peer
import numpy as np

import mill
import serving
from server_connections_test import Raw


class GrpcConnectionsTest(unittest.TestCase):
    def test_connections_count_with_those_of_http(self):
        server = grpc_peer.make_server(self, "--set", "http.max_connections_per_address=2", "--set",
                                       "http.header_timeout=10m", "--ops-listen", "127.0.0.1:0")
        port = int(server.grpc.rsplit(":", 1)[1])

        def is_served(client):
            return client.socket.recv(1) != b""  # its first frame, which waits for no word of the client
        silent = [Raw(self, server, "127.0.0.2", port) for _ in range(3)]
        self.assertEqual([is_served(client) for client in silent], [True, True, False])
        self.assertIn(b" 503 ", Raw(self, server, "127.0.0.2").until(b"http.max_connections_per_address"))
        self.assertTrue(is_served(Raw(self, server, "127.0.0.3", port)))
        other = Raw(self, server, "127.0.0.3")
        other.send("GET", "/healthz")
        self.assertIn(b" 200 ", other.until(b"\r\n\r\n"))
        with grpc.insecure_channel(server.grpc) as channel:
            # Connections of 127.0.0.1 that are over may count for a moment.
            live = channel.unary_unary("/inference.GRPCInferenceService/ServerLive")
            self.assertEqual(live(b"", wait_for_ready=True), b"\x08\x01")
        metrics = next(line for line in server.settings if line.startswith("metrics on ")).split(" on ")[1]
        with urllib.request.urlopen(metrics, timeout=serving.DEADLINE) as answer:
            self.assertIn('http_refused_total{reason="address"}', answer.read().decode())
        silent[0].socket.close()
        serving.wait_for(lambda: is_served(Raw(self, server, "127.0.0.2", port)), "a place of a connection that has ended")
        self.assertEqual(server.stop(), 0)


class GrpcKeysTest(grpc_peer.GrpcCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = Path(folder.name) / "keys"
        self.keys = {name: self.add_key(name, scopes) for name, scopes in
                     (("boss", "admin"), ("one", "infer:digits"), ("other", "infer:else,read:else"))}
        self.server = grpc_peer.make_server(self, "--keys-file", str(self.file))
        self.stub = grpc_peer.stub(self, self.server)

    def add_key(self, name, scopes):
        done = mill.run_program("keys", "--keys-file", self.file, "add", name, "--scopes", scopes)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()

    def test_keys_and_scopes_are_those_of_http(self):
        bearer = lambda name: [("authorization", f"Bearer {self.keys[name]}")]  # noqa: E731
        request = grpc_peer.raw_request("digits", np.zeros((1, 1, 28, 28), np.float32))
        self.assertTrue(self.stub.ServerLive(service_pb2.ServerLiveRequest()).live)
        for metadata in ([], [("authorization", "Bearer tm_wrong")], [("authorization", "Basic x")]):
            for call, message in ((self.stub.ModelInfer, request),
                                  (self.stub.RepositoryIndex, service_pb2.RepositoryIndexRequest()),
                                  (self.stub.RepositoryModelLoad, service_pb2.RepositoryModelLoadRequest(model_name="x")),
                                  (self.stub.SystemSharedMemoryStatus, service_pb2.SystemSharedMemoryStatusRequest()),
                                  (self.stub.SystemSharedMemoryRegister, service_pb2.SystemSharedMemoryRegisterRequest(name="x")),
                                  (self.stub.CudaSharedMemoryUnregister, service_pb2.CudaSharedMemoryUnregisterRequest())):
                with self.assertRaises(grpc.RpcError) as caught:
                    call(message, metadata=metadata)
                self.assertEqual(caught.exception.code(), grpc.StatusCode.UNAUTHENTICATED)
                self.assertIn("API key", caught.exception.details())
                document = json.loads(dict(caught.exception.trailing_metadata())["problem-bin"])
                self.assertEqual((document["code"], document["status"]), ("unauthorized", 401))
        with self.assertRaises(grpc.RpcError) as caught:
            next(self.stub.ModelStreamInfer(iter([request])))
        self.assertEqual(caught.exception.code(), grpc.StatusCode.UNAUTHENTICATED)
        # Who may not ask learns nothing of what there is.
        for name, code in (("other", grpc.StatusCode.PERMISSION_DENIED), ("one", grpc.StatusCode.NOT_FOUND)):
            with self.assertRaises(grpc.RpcError) as caught:
                self.stub.ModelInfer(request, metadata=bearer(name))
            self.assertEqual(caught.exception.code(), code, caught.exception.details())
        index = self.stub.RepositoryIndex(service_pb2.RepositoryIndexRequest(), metadata=bearer("other"))
        self.assertEqual(list(index.models), [])
        told = {name: value for name, value in caught.exception.trailing_metadata()}
        log = serving.wait_for(lambda: told["x-request-id"] in self.server.log_tail() and self.server.log_tail(), "the log line")
        self.assertIn('"/v2/models/digits/infer"', log)
        audit = self.server.request("GET", "/v1/audit", headers={"Authorization": f"Bearer {self.keys['boss']}"}).json()
        self.assertTrue(any(entry["target"].startswith("/v2/repository/models/") for entry in audit["items"]), audit)


class GrpcProxyTest(unittest.TestCase):
    def client_of(self, metadata, *options):
        """Of a call that the audit has, the client and where its connection came from."""
        server = grpc_peer.make_server(self, *options)
        load = service_pb2.RepositoryModelLoadRequest(model_name="nothing")
        with self.assertRaises(grpc.RpcError) as caught:
            grpc_peer.stub(self, server).RepositoryModelLoad(load, metadata=metadata)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.NOT_FOUND, caught.exception.details())

        def entry():
            found = server.request("GET", "/v1/audit").json()["items"]
            return next((one for one in found if one["target"] == "/v2/repository/models/nothing/load"), None)
        told = serving.wait_for(entry, "the audit of the call")
        return told["client"], told["peer"].rsplit(":", 1)[0]

    def test_a_trusted_proxys_word_about_its_client_is_taken(self):
        told = [("x-forwarded-for", "203.0.113.9, 198.51.100.7")]
        trusted = ("--set", "http.trusted_proxies=127.0.0.0/8")
        self.assertEqual(self.client_of(told, *trusted), ("198.51.100.7", "127.0.0.1"))
        self.assertEqual(self.client_of([("forwarded", "for=198.51.100.8")], *trusted, "--set", "http.forwarded_field=forwarded"),
                         ("198.51.100.8", "127.0.0.1"))
        # Nobody else's is.
        self.assertEqual(self.client_of(told), ("127.0.0.1", "127.0.0.1"))


class GrpcTlsTest(grpc_peer.GrpcCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.certificate, self.key = self.folder / "cert.pem", self.folder / "key.pem"
        self.make(self.certificate, self.key)

    @staticmethod
    def make(certificate, key):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                        "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out",
                        str(certificate)], check=True, capture_output=True)

    def serve(self):
        """The process and its port of gRPC."""
        command = [str(mill.PROGRAM), "serve", "--listen", "127.0.0.1:0", "--data", str(self.folder / "data"), *grpc_peer.LISTEN,
                   "--set", f"http.tls_certificate={self.certificate}", "--set", f"http.tls_key={self.key}"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        line = next(line for line in process.stdout if line.startswith("gRPC on https://"))
        return process, line.strip().rsplit(":", 1)[1]

    @staticmethod
    def is_live(port, certificate):
        """What a client that trusts this certificate alone is told; raises grpc.RpcError where it is shown another one."""
        trusted = grpc.ssl_channel_credentials(certificate)
        with grpc.secure_channel(f"localhost:{port}", trusted, options=[("grpc.ssl_target_name_override", "localhost")]) as one:
            return one.unary_unary("/inference.GRPCInferenceService/ServerLive")(b"") == b"\x08\x01"

    def test_the_certificate_of_http(self):
        process, port = self.serve()
        self.assertTrue(self.is_live(port, self.certificate.read_bytes()))
        with grpc.insecure_channel(f"127.0.0.1:{port}") as clear:
            self.refused(grpc.StatusCode.UNAVAILABLE, clear.unary_unary("/inference.GRPCInferenceService/ServerLive"), b"")
        process.terminate()
        process.stdout.read()
        self.assertEqual(process.wait(), 0)

    def test_a_new_certificate_is_served_when_the_files_have_changed(self):
        port = self.serve()[1]
        before = self.certificate.read_bytes()
        self.assertTrue(self.is_live(port, before))
        certificate, key = self.folder / "next-cert.pem", self.folder / "next-key.pem"
        self.make(certificate, key)
        after = certificate.read_bytes()
        self.refused(grpc.StatusCode.UNAVAILABLE, self.is_live, port, after)
        key.replace(self.key)
        certificate.replace(self.certificate)

        def is_shown():
            shown = ssl.get_server_certificate(("127.0.0.1", int(port)), timeout=serving.DEADLINE)
            return ssl.PEM_cert_to_DER_cert(shown) == ssl.PEM_cert_to_DER_cert(after.decode())
        serving.wait_for(is_shown, "the new certificate")
        self.assertTrue(self.is_live(port, after))
        self.refused(grpc.StatusCode.UNAVAILABLE, self.is_live, port, before)


if __name__ == "__main__":
    unittest.main()
