"""Attacks on a real server, byte by byte; and that a visit writes nothing and connects nowhere."""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib.font_manager
import pytest

from command_line import refused, run
from raw_http import Reply, ask, handshake, request
from sfumato.errors import InputError
from sfumato.studio import server as server_module
from sfumato.studio.choices import Choices
from sfumato.studio.guard import TOO_LARGE
from sfumato.studio.server import Studio, open_studio
from sfumato.studio.session import Session

SAID_ALWAYS = {
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


@pytest.fixture(scope="module")
def studio() -> Iterator[Studio]:
    opened = open_studio(Session())
    yield opened
    opened.stop()


def is_bare(reply) -> bool:
    return (reply.status, reply.body) == (404, b"") and "server" not in reply.headers


def test_the_page_and_its_files_come_with_the_token(studio):
    page = ask(studio.server.port, request(f"/{studio.token}/", studio.server.port))
    assert page.status == 200
    files = sorted(set(re.findall(rb'"(/[^"]+\.(?:js|css))"', page.body)))
    assert len(files) > 3
    assert all(name.startswith(f"/{studio.token}/".encode()) for name in files)
    for name in files[:4]:
        found = ask(studio.server.port, request(name.decode(), studio.server.port))
        assert found.status == 200
        assert SAID_ALWAYS.items() <= found.headers.items()
    assert not re.search(rb'(src|href|url\()=?"?\s*(https?:)?//', page.body), "nothing is fetched from elsewhere"


@pytest.mark.parametrize(
    "path",
    ["/", "//", "/TOKENx/", "/TOKEN", "/docs", "/openapi.json", "/_nicegui_ws/socket.io/?EIO=4&transport=polling", "*"],
)
def test_nothing_answers_without_the_token(studio, path):
    reply = ask(studio.server.port, request(path.replace("TOKEN", studio.token), studio.server.port))
    assert is_bare(reply)
    assert SAID_ALWAYS.items() <= reply.headers.items()


def test_there_are_no_routes_that_tell_of_others(studio):
    for path in ("docs", "redoc", "openapi.json"):
        reply = ask(studio.server.port, request(f"/{studio.token}/{path}", studio.server.port))
        assert reply.status == 404
        assert SAID_ALWAYS.items() <= reply.headers.items()


UPS = [
    "..",
    "%2e%2e",
    ".%2e",
    "%2E.",
    "..%2f..",
    "..%5c..",
    "%2e%2e%5c",
    "%252e%252e",
    "....",
    "..%00",
    "%c0%ae%c0%ae",
    "..;",
]
PLACES = ["", "_nicegui/VERSION/static/", "_nicegui/VERSION/components/", "_nicegui/VERSION/libraries/"]
PLACES += ["_nicegui/VERSION/resources/x/", "_nicegui/VERSION/esm/nicegui-plotly/"]


@pytest.mark.parametrize("place", PLACES)
def test_no_path_leads_out_of_the_files_of_the_page(studio, place):
    import nicegui

    for up in UPS:
        for end in ("etc/passwd", "nicegui.py", "__init__.py"):
            path = f"/{studio.token}/{place.replace('VERSION', nicegui.__version__)}{up}/" + f"{up}/" * 12 + end
            reply = ask(studio.server.port, request(path, studio.server.port))
            assert reply.status in (404, 403, 400), path
            assert b"root:" not in reply.body
            assert b"_exception_handler_404" not in reply.body


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:PORT"},
        {"Host": "0.0.0.0:PORT"},
        {"Host": "[::1]:PORT"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1"},
    ],
)
def test_foreign_hosts_and_origins_get_nothing(studio, headers):
    port = studio.server.port
    headers = {name: value.replace("PORT", str(port)) for name, value in headers.items()}
    assert is_bare(ask(port, request(f"/{studio.token}/", port, headers=headers)))
    socket_path = f"/{studio.token}/_nicegui_ws/socket.io/?EIO=4&transport=websocket"
    assert is_bare(ask(port, handshake(socket_path, port, **headers)))


def test_a_websocket_needs_token_and_origin(studio):
    port, path = studio.server.port, "_nicegui_ws/socket.io/?EIO=4&transport=websocket"
    assert is_bare(ask(port, handshake(f"/{path}", port)))
    assert is_bare(ask(port, handshake(f"/{studio.token}/{path}", port, Origin="")))
    assert ask(port, handshake(f"/{studio.token}/{path}", port)).status == 101


def test_no_log_has_the_token(studio, caplog):
    own = logging.getLogger("nicegui")
    own.addHandler(caplog.handler)
    found = ask(studio.server.port, request(f"/{studio.token}/nothing", studio.server.port))
    own.removeHandler(caplog.handler)
    assert found.status == 404
    assert studio.token not in caplog.text


@pytest.mark.parametrize("method", ["TRACE", "OPTIONS", "PUT", "DELETE", "PATCH", "CONNECT", "PROPFIND", "FROBNICATE"])
def test_other_methods_get_nothing(studio, method):
    reply = ask(studio.server.port, request(f"/{studio.token}/", studio.server.port, method=method))
    assert is_bare(reply)
    assert studio.token.encode() not in reply.raw


def test_strange_requests_get_nothing(studio):
    port, page = studio.server.port, f"/{studio.token}/"
    assert is_bare(ask(port, request(page, port, version="1.0", headers={"Host": ""})))
    assert is_bare(ask(port, request(f"http://evil.example{page}", port)))
    for odd in (
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 200,
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        request(page, port, headers={"X": "x" * 200_000}),
        request(page + "x" * 200_000, port),
        request(page, port, headers={f"X-{number}": "y" * 100 for number in range(2000)}),
        request(page, port, headers={"Transfer-Encoding": "gzip, chunked", "Content-Length": "5"}),
        f"GET {page} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nHost: evil.example\r\n\r\n".encode(),
        f"GET {page} HTTP/1.1\r\nHost : 127.0.0.1:{port}\r\n\r\n".encode(),
    ):
        reply = ask(port, odd)
        assert reply.status in (0, 400, 404), odd[:80]
        assert b"sfumato" not in reply.raw
        assert b"uvicorn" not in reply.raw.lower()


def test_what_a_proxy_would_say_is_not_repeated(studio):
    headers = {"X-Forwarded-Prefix": "/evil", "X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "evil"}
    headers |= {"Forwarded": "host=evil.example", "X-Forwarded-For": "6.6.6.6"}
    reply = ask(studio.server.port, request(f"/{studio.token}/", studio.server.port, headers=headers))
    assert reply.status == 200
    assert b"evil" not in reply.raw


def test_two_gigabytes_are_refused_before_they_are_read(studio):
    port = studio.server.port
    head = request(f"/{studio.token}/x", port, method="POST", headers={"Content-Length": str(2 * 10**9)})
    reply = ask(port, head)
    assert (reply.status, reply.body.decode()) == (413, TOO_LARGE)
    assert SAID_ALWAYS.items() <= reply.headers.items()


def test_only_the_loopback_address_listens(studio):
    port = studio.server.port
    mine = socket.gethostbyname(socket.gethostname())
    for address in {"127.0.0.2", mine} - {"127.0.0.1"}:
        with pytest.raises(OSError), socket.create_connection((address, port), timeout=2):  # noqa: PT011
            pass
    if Path("/proc/net/tcp").exists():
        lines = [line.split() for name in ("tcp", "tcp6") for line in Path("/proc/net", name).read_text().splitlines()]
        listening = [line[1] for line in lines if line[3] == "0A" and line[1].endswith(f":{port:04X}")]
        assert listening == [f"0100007F:{port:04X}"]


def test_studios_of_one_python_share_a_server_and_not_their_tokens(studio):
    other = open_studio(Session(), framed=True)
    port = studio.server.port
    assert other.server is studio.server
    assert other.token != studio.token
    page = ask(port, request(f"/{other.token}/", port))
    assert "frame-ancestors http://127.0.0.1:*" in page.headers["content-security-policy"]
    assert f'<iframe src="{other.url.replace("127.0.0.1", "localhost")}"' in other._repr_html_()
    other.stop()
    assert is_bare(ask(port, request(f"/{other.token}/", port)))
    assert "ended" in other._repr_html_()
    assert "ended" in repr(other)
    assert ask(port, request(f"/{studio.token}/", port)).status == 200
    with pytest.raises(InputError, match=f"already on port {port}"):
        open_studio(Session(), port=port + 1)


def test_a_port_that_is_taken_or_none_is_said():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(InputError, match=r"is taken by another program; give another one"):
            server_module._listening(taken.getsockname()[1])
    with pytest.raises(InputError, match="port=70000 is no port"):
        server_module._listening(70000)


#: The command, in a Python that notes what it writes, starts and connects to; its page has a place for uploads.
STORY = """
import json, os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # tests that run behind a shell inherit that it is ignored
done, sizes = [], []
def hook(event, given):
    if event == "open" and isinstance(given[2], int) and given[2] & 3 != os.O_RDONLY:
        done.append(f"open {given[0]}")
    elif event == "os.mkdir" and os.path.isdir(given[0]):
        pass
    elif event in ("os.mkdir", "os.rename", "os.remove", "os.exec", "os.fork", "subprocess.Popen", "tempfile.mkstemp",
                   "tempfile.mkdtemp", "socket.connect", "socket.sendto", "socket.getaddrinfo"):
        done.append(f"{event} {given[event.startswith('socket'):]}")
sys.addaudithook(hook)
from sfumato.studio import server
plain = server._application
def with_uploads():
    app = plain()
    from nicegui import ui
    async def keep(event):
        sizes.append(len(await event.file.read()))
    @ui.page("/upload-here")
    def page():
        ui.upload(on_upload=keep)
    return app
server._application = with_uploads
server.Guard.__init__.__kwdefaults__["largest_body"] = 8_000_000
from sfumato.__main__ import main
try:
    main()
finally:
    print(json.dumps({"done": done, "sizes": sizes, "refused": server._servers[0].guard.refused}))
"""


@dataclass
class Story:
    """What was said and done while the command ran."""

    port: int
    token: str
    lines: list[str]
    page: Reply
    socket: Reply
    uploaded: Reply
    endless: Reply
    endless_seconds: float
    browser: str
    once: list[Reply]
    arguments: bytes
    code: int
    stderr: str
    told: dict[str, Any]
    files: list[str]


@pytest.fixture(scope="module")
def story(tmp_path_factory) -> Story:
    """The command from its start to Ctrl-C, with visits and uploads. Its browser writes down how it was called."""
    folder, elsewhere = tmp_path_factory.mktemp("owner"), tmp_path_factory.mktemp("browser")
    table = folder / "table.csv"
    table.write_text("t,y\n" + "".join(f"{number},{number % 3}\n" for number in range(30)))
    browser, called = elsewhere / "browser", elsewhere / "called"
    browser.write_text(f'#!/bin/sh\necho "$@" > {called}.part && mv {called}.part {called}\n')
    browser.chmod(0o700)
    settings = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    settings |= {"HOME": str(folder), "TMPDIR": str(folder), "PYTHONDONTWRITEBYTECODE": "1", "BROWSER": f"{browser} %s"}
    matplotlib.font_manager.get_font_names()  # its list of fonts, which it writes once a machine, is there
    settings |= {"MPLCONFIGDIR": matplotlib.get_cachedir(), "OMP_NUM_THREADS": "1"}
    settings |= {"NICEGUI_REDIS_URL": "redis://127.0.0.1:1", "PYTHONPATH": str(Path(server_module.__file__).parents[2])}
    with subprocess.Popen(
        [sys.executable, "-c", STORY, "studio", str(table)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env=settings,
    ) as child:
        try:
            lines = [child.stdout.readline(), child.stdout.readline()]
            port, token = re.search(r"http://127\.0\.0\.1:(\d+)/([\w-]{43})/", lines[0]).groups()
            port = int(port)
            page = ask(port, request(f"/{token}/", port))
            talk = f"/{token}/_nicegui_ws/socket.io/?EIO=4&transport=websocket"
            socket = ask(port, handshake(talk, port))
            ask(port, handshake(talk, port, Origin=""))

            place = re.search(
                rb"/_nicegui/client/[\w-]+/upload/\d+", ask(port, request(f"/{token}/upload-here", port)).body
            )
            upload = f"/{token}{place[0].decode()}"
            kind = {"Content-Type": "multipart/form-data; boundary=xx"}
            start = b'--xx\r\nContent-Disposition: form-data; name="f"; filename="../../a.csv"\r\n\r\n'
            whole = start + b"1" * 5_000_000 + b"\r\n--xx--\r\n"
            uploaded = ask(port, request(upload, port, method="POST", headers=kind, body=whole))
            head = request(
                upload, port, method="POST", headers={**kind, "Content-Length": "", "Transfer-Encoding": "chunked"}
            )
            chunk = b"%x\r\n%s\r\n" % (1_000_000, b"2" * 1_000_000)
            before = time.monotonic()
            endless = ask(port, head, b"%x\r\n%s\r\n" % (len(start), start), *[chunk] * 2000)
            endless_seconds = time.monotonic() - before

            for _ in range(100):
                if called.exists():
                    break
                time.sleep(0.05)
            code = re.fullmatch(rf"http://127\.0\.0\.1:{port}/([\w-]{{43}})/\n", called.read_text())[1]
            once = [ask(port, request(f"/{code}/", port)) for _ in range(2)]
            proc = Path(f"/proc/{child.pid}")
            arguments = b"".join((proc / name).read_bytes() for name in ("cmdline", "environ") if proc.is_dir())
            child.send_signal(signal.SIGINT)
            rest, stderr = child.communicate(timeout=20)
        finally:
            child.kill()
    return Story(
        port,
        token,
        lines,
        page,
        socket,
        uploaded,
        endless,
        endless_seconds,
        called.read_text(),
        once,
        arguments,
        child.returncode,
        stderr,
        json.loads(rest),
        sorted(path.name for path in folder.iterdir()),
    )


@pytest.mark.processes
def test_visits_and_uploads_write_nothing_and_connect_nowhere(story):
    assert (story.page.status, story.socket.status, story.uploaded.status) == (200, 101, 200)
    assert story.told["sizes"] == [5_000_000]
    # Python asks the system where its C library is, when NiceGUI is imported; and the browser is started
    harmless = ("open /dev/null", "subprocess.Popen ('/sbin/ldconfig'")
    (browser,) = [one for one in story.told["done"] if not one.startswith(harmless)]
    assert browser.startswith("subprocess.Popen")
    assert "/browser'" in browser
    assert story.files == ["table.csv"]


@pytest.mark.processes
def test_an_upload_without_end_is_cut_off(story):
    """It says no length. The limit is 8 MB here; 2 GB are sent."""
    assert story.endless.status in (413, 0)  # 0: the connection had ended before the answer was read
    assert story.endless_seconds < 5
    assert story.told["refused"] == {"origin": 1, "size": 1, "token": 1}


@pytest.mark.processes
def test_the_command_says_where_it_is_and_ends_by_ctrl_c(story):
    assert story.lines[0].startswith("The studio is at http://127.0.0.1:")
    assert "Ctrl-C ends it" in story.lines[1]
    assert story.code == 130
    assert story.stderr == "interrupted; no file was left half written.\n"


@pytest.mark.processes
def test_other_users_see_no_token_in_what_was_started(story):
    assert story.token not in story.browser
    assert story.token.encode() not in story.arguments
    first, second = story.once
    assert (first.status, first.headers["location"]) == (303, f"/{story.token}/")
    assert is_bare(second)


def test_wrong_words_are_refused_before_the_server_starts(tmp_path, monkeypatch):
    monkeypatch.setattr(server_module, "Server", None)  # whoever started one would fail
    refused(run("studio", tmp_path / "nothing.csv", "--no-browser"), "nothing.csv")
    wrong = tmp_path / "wrong.json"
    wrong.write_text("{}")
    refused(run("studio", "--choices", wrong, "--no-browser"), "choices")
    monkeypatch.setattr(server_module, "find_spec", lambda name: None)
    refused(run("studio"), "pip install 'sfumato[studio]'")


def test_the_command_takes_choices_with_their_table_or_another(tmp_path, monkeypatch):
    opened = []

    def caught(session, **how):
        opened.append((session, how))
        raise InputError("far enough")

    monkeypatch.setattr(server_module, "open_studio", caught)
    table, other = tmp_path / "a.csv", tmp_path / "b.csv"
    for path, rows in ((table, 10), (other, 20)):
        path.write_text("t,y\n" + "".join(f"{row},{row % 3}\n" for row in range(rows)))
    saved = tmp_path / "saved.json"
    saved.write_text(Choices(data=str(table), inputs=("t",), output="y", value=0.3).to_json())

    refused(run("studio", "--choices", saved, "--port", 4000), "far enough")
    refused(run("studio", other, "--choices", saved), "far enough")
    refused(run("studio", other), "far enough")
    (first, how), (second, _), (third, _) = opened
    assert how == {"port": 4000}
    assert (first.choices.data, first.choices.value, first.rows) == (str(table), 0.3, 10)
    assert (second.choices.data, second.choices.value, second.rows) == (str(other), 0.3, 20)
    assert (third.choices.data, third.choices.value) == (str(other), Choices().value)

    saved.write_bytes(b"\xff\xfe\0")
    refused(run("studio", "--choices", saved), "--choices", "is no file of choices", "save one in the studio")
    refused(run("studio", "--choices", tmp_path / "none.json"), "none.json")
    assert len(opened) == 3


def test_a_port_is_refused_in_the_words_of_the_command(monkeypatch):
    monkeypatch.setattr(server_module, "_servers", [])
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        refused(run("studio", "--port", port, "--no-browser"), f"--port {port} is taken by another program")
    refused(run("studio", "--port", 70000, "--no-browser"), "--port 70000 is no port")
