"""Faults of the network between toolhost and a server: TLS, connections, slow and broken HTTP, redirects,
proxies. Each is a small server of threads on 127.0.0.1 that ends with what it was made for.

Not a command: `.ci/faults` imports it. The certificates are in `tests/fixtures/tls`, all for `server.key`:
`expired.pem` and `elsewhere.pem` (for `tools.invalid`) were issued by `other-ca.pem`, `self-signed.pem` by
itself (`openssl ca -startdate … -enddate …`).
"""

from __future__ import annotations

import gzip
import json
import socket
import ssl
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

CERTIFICATES = Path(__file__).resolve().parent.parent / "tests/fixtures/tls"
NAME = "tools.invalid"  # led to by proxies only
TOOL = {
    "name": "echo",
    "inputSchema": {
        "type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"],
    },
}


Talk = Callable[["Peer", socket.socket], None]  # with whoever connected
Act = Callable[["Peer", socket.socket, bytes], None]  # in place of the answer, which it gets


class Request(NamedTuple):
    verb: str
    body: dict

    @property
    def method(self) -> str:
        return self.body.get("method", "")


class Peer:
    """Listens on 127.0.0.1, with a thread for each connection."""

    def __init__(self, talk: Talk, backlog: int = 16) -> None:
        self.talk = talk
        self.over = threading.Event()
        self.has_listed = False
        self.visits = 0
        self.listener = socket.socket()
        # Little is taken of what nobody reads.
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 14)
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(backlog)
        self.port = self.listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/mcp"
        self.connections: list[socket.socket] = []

    def start(self) -> Peer:
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def accept(self) -> None:
        with suppress(OSError):
            while not self.over.is_set():
                connection, _ = self.listener.accept()
                self.visits += 1
                self.connections.append(connection)
                threading.Thread(target=self.meet, args=(connection,), daemon=True).start()

    def meet(self, connection: socket.socket) -> None:
        # A client may leave at any point, and a request may be cut.
        with suppress(OSError, ValueError, IndexError), connection:
            self.talk(self, connection)

    def close(self) -> None:
        self.over.set()
        for one in [self.listener, *self.connections]:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


# ---- a server without faults --------------------------------------------------------------------


def read(reader: BinaryIO, before_body: Callable[[], None] = lambda: None) -> Request | None:
    line = reader.readline(1 << 16).decode()
    if not line:
        return None
    length = 0
    while header := reader.readline(1 << 16).decode().strip():
        name, _, value = header.partition(":")
        if name.lower() == "content-length":
            length = int(value)
    before_body()
    body = reader.read(length)
    return Request(line.split()[0], json.loads(body) if body else {})


def respond(connection: socket.socket, status: str, body: bytes = b"", *headers: str) -> None:
    lines = [f"HTTP/1.1 {status}", *headers, f"Content-Length: {len(body)}"]
    connection.sendall("\r\n".join([*lines, "", ""]).encode() + body)


def right(request: Request) -> bytes | None:
    """The answer to a message; none to what wants none."""
    if "id" not in request.body:
        return None
    result = {
        "initialize": {
            "protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "network", "version": "1"},
        },
        "tools/list": {"tools": [TOOL]},
        "tools/call": {"content": [{"type": "text", "text": "hello"}]},
        "ping": {},
    }.get(request.method)
    outcome = {"error": {"code": -32601, "message": "no such method"}} if result is None else {"result": result}
    return json.dumps({"jsonrpc": "2.0", "id": request.body["id"], **outcome}).encode()


def serve(
    peer: Peer, connection: socket.socket, spoil: Act | None = None, *methods: str, is_deaf: bool = False
) -> None:
    """Answers requests, but for those of some methods, or for all, with what `spoil` does in place of the
    answer. A deaf server reads nothing more once it has listed its tools."""
    with connection.makefile("rb") as reader:
        while request := read(reader, lambda: is_deaf and peer.has_listed and peer.over.wait()):
            if spoil and (not methods or request.method in methods):
                return spoil(peer, connection, right(request) or b"")
            peer.has_listed |= request.method == "tools/list"
            if request.verb != "POST":
                respond(connection, "405 Method Not Allowed")
            elif answer := right(request):
                respond(connection, "200 OK", answer, "Content-Type: application/json")
            else:
                respond(connection, "202 Accepted")


def on(spoil: Act, *methods: str) -> Talk:
    return lambda peer, connection: serve(peer, connection, spoil, *methods)


def deaf(peer: Peer, connection: socket.socket) -> None:
    serve(peer, connection, is_deaf=True)


# ---- what goes wrong ----------------------------------------------------------------------------


def wait(peer: Peer, _connection: socket.socket, _answer: bytes = b"") -> None:
    peer.over.wait()


def drip(peer: Peer, connection: socket.socket, text: bytes) -> None:
    for place in range(len(text)):
        connection.sendall(text[place:place + 1])
        if peer.over.wait(0.3):
            return


def drip_head(peer: Peer, connection: socket.socket, _answer: bytes) -> None:
    drip(peer, connection, b"HTTP/1.1 200 OK\r\nX-Filling: " + b"x" * 1000)


def drip_body(peer: Peer, connection: socket.socket, answer: bytes) -> None:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(answer)}\r\n\r\n"
    connection.sendall(head.encode())
    drip(peer, connection, answer)


def endless_head(peer: Peer, connection: socket.socket, _answer: bytes) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    while not peer.over.is_set():
        connection.sendall(b"X-Filling: " + b"x" * 4096 + b"\r\n")


def broken_chunks(_peer: Peer, connection: socket.socket, _answer: bytes) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    connection.sendall(head + b"1\r\n{\r\nsome\r\n")


def bomb(_peer: Peer, connection: socket.socket, _answer: bytes) -> None:
    packed = gzip.compress(b" " * (1 << 26))
    respond(connection, "200 OK", packed, "Content-Type: application/json", "Content-Encoding: gzip")


def reset(_peer: Peer, connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def say(text: str) -> Act:
    return lambda _peer, connection, _answer: connection.sendall(text.encode())


def encrypted(certificate: str, is_old: bool = False) -> Talk:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATES / certificate, CERTIFICATES / "server.key")
    if is_old:
        context.set_ciphers("DEFAULT:@SECLEVEL=0")
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = ssl.TLSVersion.TLSv1_1

    def accept(peer: Peer, connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as stream:
            serve(peer, stream)

    return accept


def tunnel(peer: Peer, connection: socket.socket) -> None:
    """A proxy that is the server at the other end as well."""
    with connection.makefile("rb", buffering=0) as reader:
        read(reader)
    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    encrypted("elsewhere.pem")(peer, connection)


# ---- the faults ---------------------------------------------------------------------------------


class Staged:
    """A fault that is there: what to write into `mcp.yaml`, and what to set."""

    def __init__(self, url: str, peers: list[Peer], **environment: str) -> None:
        self.url = url
        self.peers = peers
        self.environment = environment
        # Nobody may ever come to the last of several.
        self.canary = peers[-1] if len(peers) > 1 else None

    def close(self) -> None:
        for peer in self.peers:
            peer.close()


def plain(talk: Talk) -> Callable[[], Staged]:
    def stage() -> Staged:
        peer = Peer(talk).start()
        return Staged(peer.url, [peer])

    return stage


def tls(talk: Talk) -> Callable[[], Staged]:
    def stage() -> Staged:
        peer = Peer(talk).start()
        return Staged(f"https://localhost:{peer.port}/mcp", [peer])

    return stage


def proxy(scheme: str, talk: Talk | None) -> Callable[[], Staged]:
    def stage() -> Staged:
        peer = Peer(talk or serve)
        place = f"http://127.0.0.1:{peer.port}"
        if talk:
            peer.start()
        else:
            peer.close()
        return Staged(f"{scheme}://{NAME}/mcp", [peer], HTTP_PROXY=place, HTTPS_PROXY=place)

    return stage


def with_canary(text: str) -> Callable[[], Staged]:
    """Answers everything with this text, in which `CANARY` is an address where nobody may come."""
    def stage() -> Staged:
        canary = Peer(serve).start()
        peer = Peer(on(say(text.replace("CANARY", canary.url)))).start()
        return Staged(peer.url, [peer, canary])

    return stage


def refused() -> Staged:
    peer = Peer(serve)
    peer.close()
    return Staged(peer.url, [peer])


def full() -> Staged:
    peer = Peer(serve, backlog=0)
    for _ in range(4):
        crowd = socket.socket()
        crowd.setblocking(False)
        crowd.connect_ex(("127.0.0.1", peer.port))
        peer.connections.append(crowd)
    return Staged(peer.url, [peer])


EMPTY = "\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
WHO = "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic" + EMPTY
GARBAGE = "SSH-2.0-OpenSSH_9.9\r\n"

FAULTS: dict[str, tuple[str, Callable[[], Staged]]] = {
    "tls-right": ("nothing goes wrong: the entry names the authority of the certificate", tls(encrypted("server.pem"))),
    "tls-expired": ("the certificate has expired", tls(encrypted("expired.pem"))),
    "tls-elsewhere": ("the certificate is for another name", tls(encrypted("elsewhere.pem"))),
    "tls-self-signed": ("the certificate was signed by itself", tls(encrypted("self-signed.pem"))),
    "tls-old": ("speaks TLS 1.1 at most", tls(encrypted("server.pem", is_old=True))),
    "tls-plain": ("speaks HTTP where TLS is expected", tls(on(say("HTTP/1.1 400 Bad Request" + EMPTY)))),
    "tls-silent": ("accepts the connection and never answers the handshake", tls(wait)),
    "tcp-refused": ("nobody listens", refused),
    "tcp-reset": ("resets every connection", plain(reset)),
    "tcp-full": ("its queue of connections is full", full),
    "head-drip": ("sends a byte of a head every 0.3 s", plain(on(drip_head))),
    "body-drip": ("sends a byte of a call's answer every 0.3 s", plain(on(drip_body, "tools/call"))),
    "body-unread": ("reads nothing of a call of 3 MiB", plain(deaf)),
    "head-endless": ("never stops sending headers", plain(on(endless_head))),
    "broken-chunks": ("the chunks of a call's answer are broken", plain(on(broken_chunks, "tools/call"))),
    "gzip-bomb": ("a call's answer is 64 MiB when unpacked", plain(on(bomb, "tools/call"))),
    "redirect-elsewhere": ("redirects to another port", with_canary("HTTP/1.1 307 Away\r\nLocation: CANARY" + EMPTY)),
    "redirect-loop": ("redirects to itself for ever", plain(on(say("HTTP/1.1 307 Here\r\nLocation: /mcp" + EMPTY)))),
    "login-elsewhere": (
        "answers 401 and names a private address to log in at",
        with_canary(f'HTTP/1.1 401 Who\r\nWWW-Authenticate: Bearer resource_metadata="CANARY"{EMPTY}'),
    ),
    "proxy-right": ("nothing goes wrong: through a proxy", proxy("http", serve)),
    "proxy-dead": ("nobody listens where the proxy should be", proxy("http", None)),
    "proxy-silent": ("the proxy never answers", proxy("http", wait)),
    "proxy-407": ("the proxy wants a password", proxy("http", on(say(WHO)))),
    "proxy-garbage": ("the proxy answers in another protocol", proxy("http", on(say(GARBAGE)))),
    "tunnel-right": ("nothing goes wrong: TLS through a proxy", proxy("https", tunnel)),
    "tunnel-silent": ("the proxy never answers CONNECT", proxy("https", wait)),
    "tunnel-407": ("the proxy wants a password before CONNECT", proxy("https", on(say(WHO)))),
    "tunnel-garbage": ("the proxy answers CONNECT in another protocol", proxy("https", on(say(GARBAGE)))),
}

# Only a limit of time ends these.
SILENT = {"tls-silent", "tcp-full", "head-drip", "body-drip", "body-unread", "proxy-silent", "tunnel-silent"}
