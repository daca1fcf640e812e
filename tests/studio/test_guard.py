"""Who passes the studio's guard, tried on the guard alone; broken guards are caught by the same tries."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from sfumato.studio import guard as guard_module
from sfumato.studio.guard import LARGEST_BODY, TOO_LARGE, Guard

PORT = 4321
HOST = f"127.0.0.1:{PORT}"
OURS = f"http://{HOST}"


class Gone(Exception):  # noqa: N818
    """What applications say when a client is not there any more."""


@dataclass
class Inner:
    """The application behind the guard: it reads all of a body, keeps what it saw, and answers as NiceGUI might."""

    seen: list[dict[str, Any]] = field(default_factory=list)
    read: int = 0
    ended: list[str] = field(default_factory=list)

    async def __call__(self, scope, receive, send):
        self.seen.append(scope)
        while True:
            message = await receive()
            self.read += len(message.get("body", b""))
            if message["type"].endswith("disconnect"):
                self.ended.append(message["type"])
                raise Gone
            if scope["type"] == "websocket":
                await send({"type": "websocket.accept"})
                continue
            if not message.get("more_body"):
                break
        said = [(b"Server", b"x"), (b"set-cookie", b"a=1"), (b"access-control-allow-origin", b"*")]
        said += [(b"cache-control", b"public"), (b"content-type", b"text/html")]
        await send({"type": "http.response.start", "status": 200, "headers": said})
        await send({"type": "http.response.body", "body": b"secret"})


@dataclass
class Tried:
    status: int | None
    headers: dict[str, str]
    body: bytes
    inner: Inner
    guard: Guard
    sent: list[dict[str, Any]]


def knock(
    path: str | None = None,
    *,
    method: str = "GET",
    kind: str = "http",
    headers: dict[str, str] | None = None,
    more: list[tuple[str, str]] = (),
    body: list[bytes] | None = None,
    make: Callable[..., Guard] = Guard,
    limit: int = 1000,
    framed: bool = False,
    guard: Guard | None = None,
    extensions: bool = True,
    after: Callable[[Guard, str], None] | None = None,
) -> Tried:
    """One request to a guard; TOKEN in the path is its token, and ``headers`` replace those of a good request."""
    inner = Inner()
    guard = guard or make(inner, PORT, largest_body=limit)
    inner = guard.app
    token = guard.new_token(framed=framed)
    all_headers = {"host": HOST} | ({"origin": OURS} if kind == "websocket" or method == "POST" else {})
    all_headers |= headers or {}
    raw = [(name.encode(), value.encode("latin-1")) for name, value in [*all_headers.items(), *more] if value]
    scope = {
        "type": kind,
        "path": (path or "/TOKEN/").replace("TOKEN", token),
        "headers": raw,
        "extensions": {"websocket.http.response": {}} if extensions else {},
    }
    if kind == "http":
        scope["method"] = method
    sent: list[dict[str, Any]] = []
    chunks = [b""] if body is None else body
    messages = [
        {"type": "http.request", "body": part, "more_body": number + 1 < len(chunks)}
        for number, part in enumerate(chunks)
    ]
    if kind == "websocket":
        messages = [{"type": "websocket.connect"}, {"type": "websocket.receive"}, {"type": "websocket.disconnect"}]
    arriving = iter(messages)

    async def receive():
        if after is not None and guard.answered:
            after(guard, token)
        return next(arriving)

    async def send(message):
        sent.append(message)

    async def run():
        with contextlib.suppress(Gone):
            await guard(scope, receive, send)

    asyncio.run(run())
    start = next((one for one in sent if one["type"].endswith("response.start")), None)
    said = {} if start is None else {name.decode().lower(): value.decode() for name, value in start["headers"]}
    text = b"".join(one.get("body", b"") for one in sent if one["type"].endswith("response.body"))
    return Tried(None if start is None else start["status"], said, text, inner, guard, sent)


#: name, what is asked, and the reason that the owner may read
REFUSED = {
    "no token": ({"path": "/"}, "token"),
    "a wrong token": ({"path": "/" + "A" * 43 + "/"}, "token"),
    "the token without its slash": ({"path": "/TOKEN"}, "token"),
    "more than the token": ({"path": "/TOKENx/"}, "token"),
    "less than the token": ({"path": "/xTOKEN/"}, "token"),
    "the token further down": ({"path": "/static/TOKEN/"}, "token"),
    "an empty first part": ({"path": "//TOKEN/"}, "token"),
    "no path": ({"path": "*"}, "token"),
    "letters that no token has": ({"path": "/\udcff\u20ac/"}, "token"),
    "static files without a token": ({"path": "/_nicegui/3.18.0/static/nicegui.js"}, "token"),
    "the socket without a token": ({"path": "/_nicegui_ws/socket.io/", "kind": "websocket"}, "token"),
    "a rebound name": ({"headers": {"host": f"evil.example:{PORT}"}}, "host"),
    "a name that ends like ours": ({"headers": {"host": f"127.0.0.1.evil.example:{PORT}"}}, "host"),
    "another port": ({"headers": {"host": "127.0.0.1:80"}}, "host"),
    "no port": ({"headers": {"host": "127.0.0.1"}}, "host"),
    "no host": ({"headers": {"host": ""}}, "host"),
    "two hosts": ({"more": [("host", "evil.example")]}, "host"),
    "a host of IPv6": ({"headers": {"host": f"[::1]:{PORT}"}}, "host"),
    "a user in the host": ({"headers": {"host": f"127.0.0.1:{PORT}@evil.example"}}, "host"),
    "a rebound name for the socket": ({"kind": "websocket", "headers": {"host": f"evil.example:{PORT}"}}, "host"),
    "a foreign origin": ({"headers": {"origin": "https://evil.example"}}, "origin"),
    "an origin from a sandbox": ({"headers": {"origin": "null"}}, "origin"),
    "an origin of another port": ({"headers": {"origin": "http://127.0.0.1:8888"}}, "origin"),
    "an origin that ends like ours": ({"headers": {"origin": f"{OURS}.evil.example"}}, "origin"),
    "another scheme": ({"headers": {"origin": f"https://{HOST}"}}, "origin"),
    "the other name of this machine": ({"headers": {"origin": f"http://localhost:{PORT}"}}, "origin"),
    "two origins": ({"headers": {"origin": OURS}, "more": [("origin", "https://evil.example")]}, "origin"),
    "a foreign origin that posts": ({"method": "POST", "headers": {"origin": "https://evil.example"}}, "origin"),
    "a post without origin": ({"method": "POST", "headers": {"origin": ""}}, "origin"),
    "a socket without origin": ({"kind": "websocket", "headers": {"origin": ""}}, "origin"),
    "a socket of a foreign origin": ({"kind": "websocket", "headers": {"origin": "https://evil.example"}}, "origin"),
    "up": ({"path": "/TOKEN/../etc/passwd"}, "path"),
    "up from static files": ({"path": "/TOKEN/_nicegui/3.18.0/static/../../../etc/passwd"}, "path"),
    "up at the end": ({"path": "/TOKEN/a/.."}, "path"),
    "up with backslashes": ({"path": "/TOKEN/..\\..\\windows"}, "path"),
    "here": ({"path": "/TOKEN/./a"}, "path"),
    "a zero": ({"path": "/TOKEN/a\0.css"}, "path"),
} | {
    f"the method {method}": ({"method": method}, "method")
    for method in ("TRACE", "OPTIONS", "PUT", "DELETE", "PATCH", "CONNECT", "PROPFIND", "get", "BREW")
}

PASSED = {
    "the page": {},
    "the page by name": {"headers": {"host": f"LOCALHOST:{PORT}"}},
    "a file of the page": {"path": "/TOKEN/_nicegui/3.18.0/static/nicegui.js"},
    "a head": {"method": "HEAD"},
    "our origin": {"headers": {"origin": OURS}},
    "a post of our page": {"method": "POST", "body": [b"a", b"b"]},
    "a post of our page by name": {
        "method": "POST",
        "headers": {"host": f"localhost:{PORT}", "origin": f"http://localhost:{PORT}"},
    },
    "our socket": {"kind": "websocket"},
}


def must_be_refused(asked: dict[str, Any], reason: str | None, make: Callable[..., Guard] = Guard) -> None:
    tried = knock(**asked, make=make)
    assert not tried.inner.seen, "it reached the pages"
    assert (tried.status, tried.body) == (404, b"")
    plain = knock("/", make=make)
    assert tried.headers == plain.headers, "one answer for all that is refused"
    if reason is not None:
        assert dict(tried.guard.refused) == {reason: 1}
        assert tried.guard.answered == 0


def must_pass(asked: dict[str, Any], make: Callable[..., Guard] = Guard) -> None:
    tried = knock(**asked, make=make)
    assert len(tried.inner.seen) == 1
    assert not tried.guard.refused
    assert tried.guard.answered == 1
    if asked.get("kind") != "websocket":
        assert (tried.status, tried.body) == (200, b"secret")


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_belong_to_the_page_is_refused_without_a_hint(name):
    must_be_refused(*REFUSED[name])


@pytest.mark.parametrize("name", PASSED)
def test_what_the_page_asks_passes(name):
    must_pass(PASSED[name])


def test_a_socket_is_refused_by_servers_that_cannot_say_404():
    tried = knock("/", kind="websocket", extensions=False)
    assert tried.sent == [{"type": "websocket.close", "code": 1008}]
    assert not tried.inner.seen


def test_every_answer_says_the_same_to_the_browser():
    answers = [knock(), knock("/"), knock(body=[b"x" * 2000], method="POST"), knock("/", kind="websocket")]
    assert [tried.status for tried in answers] == [200, 404, 413, 404]
    for tried in answers:
        policy = tried.headers["content-security-policy"]
        assert policy.startswith("default-src 'none';")
        assert "frame-ancestors 'none'" in policy
        assert "http" not in policy
        assert tried.headers["referrer-policy"] == "no-referrer"
        assert tried.headers["x-content-type-options"] == "nosniff"
        assert tried.headers["cache-control"] == "no-store"
        assert tried.headers["cross-origin-opener-policy"] == "same-origin"
        assert tried.headers["cross-origin-resource-policy"] == "same-origin"
        assert not {"server", "set-cookie", "access-control-allow-origin"} & set(tried.headers)
        assert len(tried.headers) == len(next(one for one in tried.sent if "headers" in one)["headers"]), "said once"


def test_only_a_notebook_of_this_machine_may_frame_a_page():
    policy = knock(framed=True).headers["content-security-policy"]
    assert policy.split("; ")[-1] == "frame-ancestors http://127.0.0.1:* http://localhost:*"
    assert "frame-ancestors 'none'" in knock("/", framed=True).headers["content-security-policy"]


def test_the_pages_see_no_proxy_and_no_cookie():
    tried = knock(
        headers={
            "X-Forwarded-Prefix": "//evil.example",
            "x-forwarded-host": "evil.example",
            "Forwarded": "host=evil.example",
            "X-Original-URL": "/",
            "Cookie": "jupyter=1",
            "accept": "*/*",
        }
    )
    (scope,) = tried.inner.seen
    assert {name.lower() for name, _ in scope["headers"]} == {b"host", b"accept"}
    assert scope["path"].startswith(scope["root_path"] + "/")
    assert len(scope["root_path"]) == 44


@pytest.mark.parametrize("size", ["1001", "2000000000", "9" * 400, "-1", "x"])
def test_a_body_that_is_announced_as_too_large_is_not_read(size):
    tried = knock(method="POST", headers={"content-length": size}, body=[b"x"] * 3)
    assert (tried.status, tried.body.decode()) == (413, TOO_LARGE)
    assert tried.headers["connection"] == "close"
    assert not tried.inner.seen
    assert dict(tried.guard.refused) == {"size": 1}


def test_a_body_that_grows_too_large_is_cut_off():
    tried = knock(method="POST", body=[b"x" * 100] * 50)
    assert (tried.status, tried.body.decode()) == (413, TOO_LARGE)
    assert tried.inner.read == 1000
    assert tried.inner.ended == ["http.disconnect"]
    assert dict(tried.guard.refused) == {"size": 1}
    assert tried.guard.answered == 0
    assert knock(method="POST", body=[b"x" * 100] * 10).status == 200


def test_the_limit_is_the_one_that_the_sentence_says():
    assert LARGEST_BODY == 200_000_000
    assert "200 MB" in TOO_LARGE
    assert "sfumato studio FILE" in TOO_LARGE


def test_tokens_are_new_each_time_and_are_forgotten():
    guard = Guard(Inner(), PORT)
    tokens = {guard.new_token() for _ in range(50)}
    assert len(tokens) == 50
    assert min(map(len, tokens)) == 43
    one, other = sorted(tokens)[:2]
    assert knock(f"/{one}/", guard=guard).status == 200
    guard.forget(one)
    assert knock(f"/{one}/", guard=guard).status == 404
    assert knock(f"/{other}/", guard=guard).status == 200


def test_a_forgotten_token_ends_the_pages_that_are_open():
    whole = knock(kind="websocket")
    assert [one["type"] for one in whole.sent] == ["websocket.accept"] * 2
    ended = knock(kind="websocket", after=lambda guard, token: guard.forget(token))
    assert ended.sent == []
    assert ended.inner.ended == ["websocket.disconnect"]


def test_a_code_leads_to_the_page_once_and_soon(monkeypatch):
    guard = Guard(Inner(), PORT)
    token = guard.new_token()
    code = guard.new_code(token)
    for asked in (
        {"path": f"/{code}/", "kind": "websocket"},
        {"path": f"/{code}/", "method": "POST"},
        {"path": f"/{code}/", "headers": {"host": "evil.example"}},
        {"path": f"/{code}/_nicegui/"},
        {"path": f"/{code}"},
    ):
        assert knock(**asked, guard=guard).status == 404
    first, second = knock(f"/{code}/", guard=guard), knock(f"/{code}/", guard=guard)
    assert (first.status, first.headers["location"]) == (303, f"/{token}/")
    assert second.status == 404
    assert not guard.app.seen
    with monkeypatch.context() as later:
        code = guard.new_code(token)
        now = time.monotonic()
        later.setattr(guard_module.time, "monotonic", lambda: now + guard_module.CODE_SECONDS + 1)
        assert knock(f"/{code}/", guard=guard).status == 404
    late = guard.new_code(token)
    guard.forget(token)
    assert knock(f"/{late}/", guard=guard).status == 404


def broken(**methods: Any) -> Callable[..., Guard]:
    return type("Broken", (Guard,), methods)


def _ignoring(reason: str) -> Callable[..., Guard]:
    return broken(_wrong=lambda self, scope: None if (found := Guard._wrong(self, scope)) == reason else found)


def _starts_alike(path: str, tokens: Any) -> str | None:
    return next((token for token in tokens if path.startswith(f"/{token}")), None)


def _anywhere(path: str, tokens: Any) -> str | None:
    return next((token for token in tokens if f"/{token}/" in path), None)


BROKEN = {
    "no look at the host": _ignoring("host"),
    "no look at the origin": _ignoring("origin"),
    "no look at the method": _ignoring("method"),
    "no look at the path": _ignoring("path"),
    "a token as the start of a longer one": broken(_token_in=staticmethod(_starts_alike)),
    "a token anywhere": broken(_token_in=staticmethod(_anywhere)),
    "hosts by their start": broken(
        _wrong=lambda self, scope: (
            None
            if (found := Guard._wrong(self, scope)) == "host"
            and guard_module._values(scope["headers"], b"host")[:1] > [b"127.0.0.1"]
            else found
        )
    ),
    "sockets without a look": broken(
        _wrong=lambda self, scope: Guard._wrong(self, scope) if scope["type"] == "http" else None,
        _connect=lambda self, *rest: self.app(*rest),
    ),
    "everything refused": broken(_wrong=lambda self, scope: "token"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_guard_is_caught(name):
    caught = 0
    for try_it in itertools.chain(
        [lambda asked=asked: must_be_refused(asked, None, BROKEN[name]) for asked, _ in REFUSED.values()],
        [lambda asked=asked: must_pass(asked, BROKEN[name]) for asked in PASSED.values()],
    ):
        try:
            try_it()
        except AssertionError:
            caught += 1
    assert caught
