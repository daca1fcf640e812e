"""HTTP as attackers write it: bytes to a port, and what comes back."""

from __future__ import annotations

import contextlib
import socket
from dataclasses import dataclass


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes
    raw: bytes


def ask(port: int, *parts: bytes, host: str = "127.0.0.1", wait: float = 10.0) -> Reply:
    """What the server says to these bytes, read until it is complete or the connection ends."""
    received = b""
    with socket.create_connection((host, port), timeout=wait) as sock:
        with contextlib.suppress(ConnectionError):  # it may answer, and end, before it has heard all
            for part in parts:
                sock.sendall(part)
        with contextlib.suppress(ConnectionError):
            while not _complete(received) and (more := sock.recv(65536)):
                received += more
    return _parsed(received)


def request(
    path: str,
    port: int,
    *,
    method: str = "GET",
    headers: dict[str, str] | None = None,
    body: bytes = b"",
    version: str = "1.1",
) -> bytes:
    """A request with a good Host, and a good Origin where one is needed; an empty header is left out."""
    all_headers = {"Host": f"127.0.0.1:{port}"}
    if method == "POST":
        all_headers |= {"Origin": f"http://127.0.0.1:{port}", "Content-Length": str(len(body))}
    all_headers |= headers or {}
    lines = [f"{method} {path} HTTP/{version}", *(f"{name}: {value}" for name, value in all_headers.items() if value)]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def handshake(path: str, port: int, **headers: str) -> bytes:
    """The request that opens a websocket."""
    return request(
        path,
        port,
        headers={
            "Connection": "Upgrade",
            "Upgrade": "websocket",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
            "Origin": f"http://127.0.0.1:{port}",
            **headers,
        },
    )


def _complete(received: bytes) -> bool:
    head, ends, body = received.partition(b"\r\n\r\n")
    if not ends:
        return False
    if head.startswith(b"HTTP/1.1 101"):
        return True
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return len(body) >= int(line.partition(b":")[2])
    return body.endswith(b"0\r\n\r\n")


def _parsed(received: bytes) -> Reply:
    if not received:
        return Reply(0, {}, b"", b"")
    head, _, body = received.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return Reply(int(first.split()[1]), headers, body, received)
