#!/usr/bin/python3
"""What gRPC costs beside HTTP: the same inference of KServe v2 with binary tensors, in turns, to one server, over both. No client
makes anything of an answer. Twice: by the usual clients, Python's http.client and grpcio, and over sockets, where a client sends bytes that
were made before and counts those that come, so that what differs is the server's. grpc_latency.py [--rounds N]: 10th percentile, median and
90th in milliseconds, and the processor time of the server a request."""

import argparse
import http.client
import json
import socket
import struct
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/e2e"))
import grpc_peer  # noqa: E402 (after its folder is known)
import numpy as np  # noqa: E402
from onnx import TensorProto, helper  # noqa: E402

import serving  # noqa: E402

ELEMENTS = 150_528
LENGTH = "Inference-Header-Content-Length"
WARM = 20


def model(op, size):
    """One operator over a vector."""
    more = {"keepdims": 1} if op != "Relu" else {}
    graph = helper.make_graph([helper.make_node(op, ["x"], ["y"], **more)], "g",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, [ELEMENTS])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [size])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8).SerializeToString()


METHOD = "/inference.GRPCInferenceService/ModelInfer"


def http_parts(name, raw):
    """Target, fields and head of an inference."""
    head = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [ELEMENTS], "parameters": {"binary_data_size": len(raw)}}],
                       "parameters": {"binary_data_output": True}}).encode()
    return f"/v2/models/{name}/infer", {"Content-Type": "application/octet-stream", LENGTH: str(len(head))}, head


def grpc_message(name, raw):
    request = grpc_peer.service_pb2.ModelInferRequest(model_name=name, raw_input_contents=[raw])
    request.inputs.add(name="x", datatype="FP32", shape=[ELEMENTS])
    return request.SerializeToString()


# What asks: a function without arguments that makes what is sent, and returns one that sends it and waits for the answer.
def http_client(server, name, raw):
    target, fields, head = http_parts(name, raw)
    connection, body = http.client.HTTPConnection("127.0.0.1", server.port), head + raw

    def send():
        connection.request("POST", target, body, fields)
        answer = connection.getresponse()
        data = answer.read()
        if answer.status != 200:
            raise SystemExit(data)
    return lambda: send


def grpc_client(channel, name, raw):
    message, call = grpc_message(name, raw), channel.unary_unary(METHOD)
    return lambda: lambda: call(message)


class Link:
    """A socket, read in turns into one buffer."""

    def __init__(self, host, port):
        self.socket = socket.create_connection((host, port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer, self.begin, self.end = bytearray(4 << 20), 0, 0

    def more(self):
        if self.begin == self.end:
            self.begin = self.end = 0
        count = self.socket.recv_into(memoryview(self.buffer)[self.end:])
        if count == 0:
            raise SystemExit("the server has closed the connection")
        self.end += count

    def take(self, count):
        while self.end - self.begin < count:
            self.more()
        self.begin += count
        return memoryview(self.buffer)[self.begin - count:self.begin]

    def until(self, mark):
        while (found := self.buffer.find(mark, self.begin, self.end)) < 0:
            self.more()
        return bytes(self.take(found + len(mark) - self.begin))


def http_socket(server, name, raw):
    target, fields, head = http_parts(name, raw)
    lines = [f"POST {target} HTTP/1.1", "Host: localhost", f"Content-Length: {len(head) + len(raw)}", *(f"{n}: {v}" for n, v in fields.items())]
    link, request = Link("127.0.0.1", server.port), "\r\n".join([*lines, "", ""]).encode() + head + raw

    def send():
        link.socket.sendall(request)
        answer = link.until(b"\r\n\r\n").lower()
        if b" 200 " not in answer[:20]:
            raise SystemExit(answer)
        link.take(int(answer.split(b"\r\ncontent-length:")[1].split(b"\r\n")[0]))
    return lambda: send


# Frames of HTTP/2 (RFC 9113): type, and flags that have one name in all of them.
DATA, HEADERS, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 4, 6, 7, 8
END_STREAM, ACK, END_HEADERS = 1, 1, 4
INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE = 4, 5


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def field(name, value):
    """A header field as HPACK has it without any table."""
    return b"".join([b"\0", *(bytes([len(text)]) + text.encode() for text in (name, value))])


class GrpcLink:
    """One call after another on a connection, by hand."""

    def __init__(self, address, path):
        host, port = address.rsplit(":", 1)
        self.link, self.stream = Link(host, int(port)), 1
        self.window, self.stream_window, self.largest = 65_535, 65_535, 16_384
        self.fields = b"".join(field(*one) for one in ((":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "localhost"),
                                                       ("te", "trailers"), ("content-type", "application/grpc")))
        most = 2**31 - 1
        self.link.socket.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
                                 + frame(SETTINGS, 0, 0, struct.pack(">HIHI", INITIAL_WINDOW_SIZE, most, MAX_FRAME_SIZE, 2**24 - 1))
                                 + frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", most - 65_535)))
        while self.read_frame()[0] != SETTINGS:
            pass

    def read_frame(self):
        """Its type, and whether it ends a stream."""
        head = bytes(self.link.take(9))
        size, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
        payload = self.link.take(size)
        if kind == SETTINGS and not flags & ACK:
            for name, value in struct.iter_unpack(">HI", payload):
                self.stream_window = value if name == INITIAL_WINDOW_SIZE else self.stream_window
                self.largest = value if name == MAX_FRAME_SIZE else self.largest
            self.link.socket.sendall(frame(SETTINGS, ACK, 0))
        elif kind == PING and not flags & ACK:
            self.link.socket.sendall(frame(PING, ACK, 0, bytes(payload)))
        elif kind == WINDOW_UPDATE and head[5:] == b"\0\0\0\0":
            self.window += int.from_bytes(payload, "big")
        elif kind == GOAWAY:
            raise SystemExit(f"the server ends the connection: {bytes(payload)}")
        return kind, kind in (DATA, HEADERS) and bool(flags & END_STREAM)

    def call(self, message):
        """What sends it; the frames have the stream's number, so they are made before."""
        body = b"\0" + struct.pack(">I", len(message)) + message
        if len(body) > self.stream_window:
            raise SystemExit("the message is more than a stream's window")
        # All at once where the server has said that it takes so much, which it does after the first call.
        first, rest = body[:self.window], body[self.window:]
        parts = [(len(first), frame(HEADERS, END_HEADERS, self.stream, self.fields) + self.data(first, not rest))]
        if rest:
            parts.append((len(rest), self.data(rest, True)))
        self.stream += 2

        def send():
            for size, data in parts:
                while self.window < size:
                    self.read_frame()
                self.window -= size
                self.link.socket.sendall(data)
            while not self.read_frame()[1]:
                pass
        return send

    def data(self, body, is_last):
        frames = []
        for at in range(0, len(body), self.largest):
            part = body[at:at + self.largest]
            frames.append(frame(DATA, END_STREAM if is_last and at + len(part) == len(body) else 0, self.stream, part))
        return b"".join(frames)


def grpc_socket(server, name, raw):
    link, message = GrpcLink(grpc_peer.address(server.settings), METHOD), grpc_message(name, raw)
    return lambda: link.call(message)


def processor_ns(pid):
    return sum(int(path.read_text().split()[0]) for path in Path(f"/proc/{pid}/task").glob("*/schedstat"))


def latencies(asks, rounds):
    """Milliseconds of each: three percentiles."""
    seconds = {name: [] for name in asks}
    for turn in range(rounds + WARM):
        for name, ask in asks.items():
            send = ask()
            begun = time.perf_counter()
            send()
            if turn >= WARM:
                seconds[name].append(time.perf_counter() - begun)
    return {name: np.percentile(np.array(times) * 1e3, [10, 50, 90]) for name, times in seconds.items()}


def processor_ms(asks, rounds, pid):
    """Of the server, a request: the median of five parts."""
    spent = {name: [] for name in asks}
    each = max(rounds // 5, 1)
    for _ in range(5):
        for name, ask in asks.items():
            begun = processor_ns(pid)
            for _ in range(each):
                ask()()
            spent[name].append((processor_ns(pid) - begun) / 1e6 / each)
    return {name: float(np.median(parts)) for name, parts in spent.items()}


def tell(what, asks, rounds, pid):
    found, spent = latencies(asks, rounds), processor_ms(asks, rounds, pid)
    for name, (low, median, high) in found.items():
        print(f"{what}, {name}: {low:.3f} / {median:.3f} / {high:.3f} ms, {spent[name]:.3f} ms of the server's processor time")
    for client in ("client", "socket"):
        low, median, _ = found[f"gRPC {client}"] - found[f"HTTP {client}"]
        more = spent[f"gRPC {client}"] - spent[f"HTTP {client}"]
        print(f"{what}, {client}: gRPC adds {low:+.3f} ms (10th percentile), {median:+.3f} ms (median), {more:+.3f} ms of processor time")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=300)
    rounds = parser.parse_args().rounds
    raw = np.ones(ELEMENTS, np.float32).tobytes()
    with tempfile.TemporaryDirectory() as folder:
        server = serving.Server(folder, *grpc_peer.LISTEN)
        try:
            options = [("grpc.max_receive_message_length", -1)]
            with grpc_peer.grpc.insecure_channel(grpc_peer.address(server.settings), options=options) as channel:
                for op, size in (("ReduceMax", 1), ("Relu", ELEMENTS)):
                    server.upload(op, model(op, size))
                    answer = server.deploy(op, server.compile(op))
                    if answer.status != 201:
                        raise SystemExit(answer.body)
                    asks = {"HTTP client": http_client(server, op, raw), "gRPC client": grpc_client(channel, op, raw),
                            "HTTP socket": http_socket(server, op, raw), "gRPC socket": grpc_socket(server, op, raw)}
                    tell(f"{len(raw)} bytes in, {4 * size} out", asks, rounds, server.process.pid)
        finally:
            server.stop()


if __name__ == "__main__":
    main()
