"""A TCP link of a test's own that can be cut, reset, frozen and slowed, without anybody's rights over the network."""

import contextlib
import socket
import struct
import threading

PART = 1 << 16
AT_ONCE = struct.pack("ii", 1, 0)  # of SO_LINGER: a close is a reset


class Connection:
    """One that is forwarded, until one of its ends ends."""

    def __init__(self, proxy, client, server):
        self.proxy, self.ends, self.is_reset = proxy, (client, server), False

    def run(self):
        client, server = self.ends
        back = threading.Thread(target=self.forward, args=(server, client), daemon=True)
        back.start()
        self.forward(client, server)
        back.join()

    def forward(self, source, sink):
        try:
            while part := source.recv(PART):
                self.proxy.hold_up()
                sink.sendall(part)
            self.proxy.hold_up()
            if not self.is_reset:
                sink.shutdown(socket.SHUT_WR)
        except OSError:
            # Neither goes on without the other.
            self.end(self.is_reset)

    def end(self, is_reset):
        self.is_reset = self.is_reset or is_reset
        for one in self.ends:
            with contextlib.suppress(OSError):
                if is_reset:
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
                # Reading alone says nothing to the other side, which the close then resets.
                one.shutdown(socket.SHUT_RD if is_reset else socket.SHUT_RDWR)


class LinkProxy:
    """Listens on a free port of this machine; each connection is forwarded to the port that `target()` names, and closed where it
    names none. All methods from many threads.

    cut, reset: what is connected ends at once, in good order or by a reset; what comes after is forwarded.
    freeze: nothing comes through, neither of what is connected nor of what connects, and nobody is told: half-open to both
    sides. thaw: it all goes on.
    delay_s: how long each part that comes through is held up."""

    def __init__(self, target):
        self.target, self.delay_s = target, 0
        self.flows, self.closing = threading.Event(), threading.Event()
        self.flows.set()
        self.lock, self.connections = threading.Lock(), set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self.accept, daemon=True)
        self.thread.start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        with contextlib.ExitStack() as ends:
            ends.enter_context(client)
            self.hold_up()
            port = self.target()
            if port is None or self.closing.is_set():
                return
            try:
                server = ends.enter_context(socket.create_connection(("127.0.0.1", port)))
            except OSError:
                return
            for one in (client, server):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection = Connection(self, client, server)
            with self.lock:
                self.connections.add(connection)
            connection.run()
            with self.lock:
                self.connections.discard(connection)

    def hold_up(self):
        self.flows.wait()
        if self.delay_s:
            self.closing.wait(self.delay_s)

    def end_all(self, is_reset):
        with self.lock:
            for connection in self.connections:
                connection.end(is_reset)

    def cut(self):
        self.end_all(False)

    def reset(self):
        self.end_all(True)

    def freeze(self):
        self.flows.clear()

    def thaw(self):
        self.flows.set()

    def close(self):
        self.closing.set()
        self.thaw()
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join()
        self.cut()
