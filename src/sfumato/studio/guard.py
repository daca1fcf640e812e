"""The studio's guard: what comes to its port, who may pass, and what every answer says to the browser.

Everything that is refused gets the same bare 404, so that nobody learns which part was wrong. The guard is an
ASGI application around another one, and knows nothing of pages.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, Literal

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]
Headers = Iterable[tuple[bytes, bytes]]

#: The largest body of a request, in bytes. An upload is kept in memory, never on the disk.
LARGEST_BODY = 200_000_000
TOO_LARGE = (
    f"This is more than the {LARGEST_BODY // 1_000_000} MB that the page takes. Start the studio with the file: "
    "sfumato studio FILE."
)

#: How long a browser may take to start.
CODE_SECONDS = 120.0

#: Why something was refused: said to nobody but the owner.
Reason = Literal["host", "token", "origin", "method", "path", "size"]

#: 'unsafe-eval' and 'unsafe-inline' are what NiceGUI's templates need; every source is the studio itself.
POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors {ancestors}"
)
#: A notebook's page comes from another port of this machine.
NOTEBOOKS = "http://127.0.0.1:* http://localhost:*"


class Guard:
    """An application behind addresses that cannot be guessed: ``http://127.0.0.1:PORT/TOKEN/``.

    Guarantee: a request reaches ``app`` only with a token in its path, with the Host of this machine, and, if it can
    change anything or comes from a page, with the Origin of that Host. ``app`` finds the token in its ``root_path``.
    """

    def __init__(self, app: Application, port: int, *, largest_body: int = LARGEST_BODY) -> None:
        self.app = app
        self.largest_body = largest_body
        self.answered = 0
        self.refused: Counter[Reason] = Counter()
        self._hosts = {f"{name}:{port}".encode() for name in ("127.0.0.1", "localhost")}
        self._framed: dict[str, bool] = {}
        self._once: dict[str, tuple[str, float]] = {}

    def new_token(self, *, framed: bool = False) -> str:
        """A new token; ``framed``, its pages may be shown inside a notebook on this machine."""
        token = secrets.token_urlsafe(32)
        self._framed[token] = framed
        return token

    def forget(self, token: str) -> None:
        """Let nobody in with ``token`` from now on; pages that are open hear and say nothing more."""
        self._framed.pop(token, None)
        self._once = {code: kept for code, kept in self._once.items() if kept[0] != token}

    def new_code(self, token: str) -> str:
        """A code that leads to the pages of ``token``, once and soon: others can see what a browser is started with."""
        code = secrets.token_urlsafe(32)
        self._once[code] = (token, time.monotonic() + CODE_SECONDS)
        return code

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif (reason := self._wrong(scope)) is not None:
            self.refused[reason] += 1
            await _refuse(scope, send)
        elif scope["type"] == "websocket":
            await self._connect(scope, receive, send)
        else:
            await self._answer(scope, receive, send)

    def _wrong(self, scope: Message) -> Reason | None:
        """Why a request must not pass, or None; the owner's counts are the only place that says it."""
        if scope["type"] not in ("http", "websocket"):
            return "method"
        hosts = _values(scope["headers"], b"host")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return "host"
        if scope["type"] == "http" and scope["method"] not in ("GET", "HEAD", "POST"):
            return "method"
        if self._token_in(scope["path"], [*self._framed, *self._once]) is None:
            return "token"
        parts = scope["path"].split("/")
        if "\\" in scope["path"] or "\0" in scope["path"] or ".." in parts or "." in parts:
            return "path"
        origins = _values(scope["headers"], b"origin")
        must_have = scope["type"] == "websocket" or scope["method"] == "POST"
        if len(origins) > 1 or (must_have and not origins):
            return "origin"
        if origins and origins[0].lower() != b"http://" + hosts[0].lower():
            return "origin"
        return None

    @staticmethod
    def _token_in(path: str, tokens: Iterable[str]) -> str | None:
        """The token that a path begins with. How long this takes does not depend on how much of one is right."""
        first, slash, _ = path.removeprefix("/").partition("/")
        given, found = first.encode("utf-8", "replace"), None
        for token in tokens:
            if hmac.compare_digest(given, token.encode()):
                found = token
        return found if slash and path.startswith("/") else None

    async def _connect(self, scope: Message, receive: Receive, send: Send) -> None:
        token = self._token_in(scope["path"], self._framed)
        if token is None:
            self.refused["token"] += 1
            return await _refuse(scope, send)
        self.answered += 1

        async def heard() -> Message:
            message = await receive()
            return message if token in self._framed else {"type": "websocket.disconnect", "code": 1008}

        async def told(message: Message) -> None:
            if token in self._framed:
                await send(message)

        return await self.app(_inside(scope, token), heard, told)

    async def _answer(self, scope: Message, receive: Receive, send: Send) -> None:
        token = self._token_in(scope["path"], self._framed)
        if token is None:
            return await self._lead_on(scope, send)
        announced = _values(scope["headers"], b"content-length")
        if any(not text.isdigit() or len(text) > 18 or int(text) > self.largest_body for text in announced):
            self.refused["size"] += 1
            return await _too_large(send)

        taken, started = 0, False

        async def read() -> Message:
            nonlocal taken
            if taken > self.largest_body:
                return {"type": "http.disconnect"}
            message = await receive()
            taken += len(message.get("body", b""))
            return message if taken <= self.largest_body else {"type": "http.disconnect"}

        async def marked(message: Message) -> None:
            nonlocal started
            if taken > self.largest_body and not started:
                return  # whatever it is about half a body
            if message["type"] == "http.response.start":
                started = True
                message = {**message, "headers": _said(message.get("headers", []), framed=self._framed.get(token))}
            await send(message)

        self.answered += 1
        try:
            await self.app(_inside(scope, token), read, marked)
        except Exception:
            if taken <= self.largest_body:
                raise
        if taken > self.largest_body and not started:
            self.answered -= 1
            self.refused["size"] += 1
            await _too_large(send)
        return None

    async def _lead_on(self, scope: Message, send: Send) -> None:
        """From a code that was not used yet to the pages of its token."""
        code = self._token_in(scope["path"], self._once)
        if code is None or scope["method"] != "GET" or scope["path"] != f"/{code}/":
            self.refused["token"] += 1
            return await _refuse(scope, send)
        token, until = self._once.pop(code)
        if time.monotonic() > until:
            self.refused["token"] += 1
            return await _refuse(scope, send)
        self.answered += 1
        return await _plain(send, 303, "", (b"location", f"/{token}/".encode()))


def _inside(scope: Message, token: str) -> Message:
    """The request as the pages see it: no proxy's headers, which nobody wrote, and no other server's cookies."""
    kept = [
        (name, value)
        for name, value in scope["headers"]
        if not name.lower().startswith(b"x-") and name.lower() not in (b"forwarded", b"cookie")
    ]
    return {**scope, "headers": kept, "root_path": f"/{token}"}


def _said(headers: Headers, *, framed: bool | None = False) -> list[tuple[bytes, bytes]]:
    """The headers of an answer: ours, and of the given ones those that neither say them too nor open anything."""
    ours = {
        b"content-security-policy": POLICY.format(ancestors=NOTEBOOKS if framed else "'none'").encode(),
        b"referrer-policy": b"no-referrer",
        b"x-content-type-options": b"nosniff",
        b"cache-control": b"no-store",
        b"cross-origin-opener-policy": b"same-origin",
        b"cross-origin-resource-policy": b"same-origin",
    }
    closed = (b"server", b"set-cookie", b"expires", b"link")
    kept = [
        (name, value)
        for name, value in headers
        if name.lower() not in ours and name.lower() not in closed and not name.lower().startswith(b"access-control-")
    ]
    return [*kept, *ours.items()]


def _values(headers: Headers, name: bytes) -> list[bytes]:
    return [value.strip() for key, value in headers if key.lower() == name]


async def _refuse(scope: Message, send: Send) -> None:
    if scope["type"] == "http":
        await _plain(send, 404, "")
    elif "websocket.http.response" in scope.get("extensions", {}):
        await _plain(send, 404, "", kind="websocket.http.response")
    else:
        await send({"type": "websocket.close", "code": 1008})


async def _too_large(send: Send) -> None:
    # The rest of the body is not read: the connection ends.
    await _plain(send, 413, TOO_LARGE, (b"connection", b"close"))


async def _plain(
    send: Send, status: int, text: str, *headers: tuple[bytes, bytes], kind: str = "http.response"
) -> None:
    body = text.encode()
    about = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode()), *headers]
    await send({"type": f"{kind}.start", "status": status, "headers": _said(about)})
    await send({"type": f"{kind}.body", "body": body})
