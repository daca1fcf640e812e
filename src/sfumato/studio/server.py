"""The studio's server: one a process, on the loopback address only, with an address of its own for each studio.

It runs in a thread beside the program that started it. NiceGUI has one application a process, so several studios share
one server, and the token in the address says whose pages are asked for.
"""

from __future__ import annotations

import errno
import logging
import os
import socket
import sys
import threading
import time
import warnings
import webbrowser
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from ..errors import InputError, ResourceError
from .guard import LARGEST_BODY, Guard

if TYPE_CHECKING:
    import uvicorn
    from fastapi import FastAPI

    from .session import Session

HOST = "127.0.0.1"

#: Seconds for which a tab whose connection is lost is kept; one that comes back later is built anew. NiceGUI takes a
#: connection for lost that is silent for a part of it: work behind the page may keep a slow machine silent for seconds.
RECONNECT = 60.0

#: Seconds in which the server must answer, and in which open pages may say goodbye.
START, END = 60.0, 2.0

#: Seconds in which work that was cancelled may end: a thread that is left when Python ends may abort it.
CANCELLED = 5.0

#: Browsers keep storage from a frame of another site, and localhost and 127.0.0.1 are two: the frame takes the name
#: that the notebook has.
NOTEBOOK_SCRIPT = """<script>
if (location.hostname === "127.0.0.1") {
  const frame = document.currentScript.previousElementSibling;
  frame.src = frame.src.replace("localhost", "127.0.0.1");
}
</script>"""


def check_installed() -> None:
    """Refuse, with the remedy, where the extra is missing."""
    if find_spec("nicegui") is None:
        raise InputError("the studio needs NiceGUI, which is not installed; get it with: pip install 'sfumato[studio]'")


@dataclass(frozen=True, eq=False, repr=False)
class Studio:
    """A studio that runs in this process: where it is, what was done in it, and how to end it."""

    session: Session
    token: str
    server: Server

    @property
    def url(self) -> str:
        """The address, with the token that lets a browser in."""
        return f"http://{HOST}:{self.server.port}/{self.token}/"

    @property
    def running(self) -> bool:
        return self.server.running and self.token in self.server.sessions

    def __repr__(self) -> str:
        return f"<studio at {self.url}>" if self.running else "<studio that has ended>"

    def stop(self) -> None:
        """End it: its work is cancelled, its address answers nothing, its pages that are open hear nothing more."""
        self.server.forget(self.token)

    def wait(self) -> None:
        """Come back when the server ends: a script would otherwise end before anybody has looked. Ctrl-C interrupts."""
        while self.running:
            self.server.thread.join(0.5)

    def open_browser(self) -> bool:
        """Start a browser if there is one; all users of a machine can see what with, so that is good once only."""
        if sys.platform == "linux" and not {"DISPLAY", "WAYLAND_DISPLAY", "BROWSER"} & set(os.environ):
            return False  # Python would start a text browser in the terminal
        return webbrowser.open(f"http://{HOST}:{self.server.port}/{self.server.guard.new_code(self.token)}/")

    def _repr_html_(self) -> str:
        if not self.running:
            return "<p>This studio has ended. Call sf.studio again.</p>"
        source = self.url.replace(HOST, "localhost")
        about = 'title="sfumato studio" allow="clipboard-write" width="100%" height="900" style="border:0"'
        return f'<iframe src="{source}" {about}></iframe>{NOTEBOOK_SCRIPT}'


def where_text(studio: Studio) -> str:
    """Where a studio is, and how it is reached from elsewhere, in sentences."""
    port = studio.server.port
    return (
        f"The studio is at {studio.url} on the machine where this Python runs, and only there. If you sit at another "
        f"one, forward the port first: ssh -L {port}:{HOST}:{port} MACHINE. The address is the key: do not pass it on."
    )


class Server:
    """The server of this process; ``open_studio`` makes it."""

    def __init__(self, port: int | None) -> None:
        listening = _listening(port)
        self.port: int = listening.getsockname()[1]
        self.sessions: dict[str, Session] = {}
        self.guard = Guard(_application(), self.port)
        from .page import build

        build(self._session_of_page, lambda: self.guard)
        self._uvicorn = _uvicorn_server(self.guard)
        self.thread = threading.Thread(
            target=self._uvicorn.run, args=([listening],), name="sfumato studio", daemon=True
        )

    @property
    def running(self) -> bool:
        return self.thread.is_alive() and not self._uvicorn.should_exit

    def start(self) -> None:
        waited = threading.Event()
        with warnings.catch_warnings():
            # NiceGUI looks at all objects of the process for its server, and at PyTorch's old names with them.
            warnings.simplefilter("ignore", FutureWarning)
            self.thread.start()
            for _ in range(int(START / 0.05)):
                if self._uvicorn.started:
                    return
                if not self.thread.is_alive():
                    break
                waited.wait(0.05)
        raise ResourceError("the studio's server did not start; SFUMATO_TRACEBACK=1 and its log say why.")

    def stop(self) -> None:
        """End the server and all its studios."""
        for token in list(self.sessions):
            self.forget(token)
        self._uvicorn.should_exit = True
        self.thread.join(2 * END + 1)

    def new_studio(self, session: Session, framed: bool) -> Studio:
        token = self.guard.new_token(framed=framed)
        self.sessions[token] = session
        return Studio(session, token, self)

    def _session_of_page(self) -> Session:
        """The session whose token is in the address of the page that is being built."""
        from nicegui import ui

        return self.sessions[ui.context.client.request.scope["root_path"].removeprefix("/")]

    def forget(self, token: str) -> None:
        self.guard.forget(token)
        session = self.sessions.pop(token, None)
        jobs = () if session is None else session.jobs
        for job in jobs:
            job.cancel()
        until = time.monotonic() + CANCELLED
        for job in jobs:
            job.end(max(0.0, until - time.monotonic()))


_starting = threading.Lock()
_servers: list[Server] = []


def open_studio(session: Session, *, port: int | None = None, framed: bool = False) -> Studio:
    """A studio for ``session`` that answers. The first one of a process starts the server; ``framed``: in notebooks."""
    check_installed()
    with _starting:
        if _servers and not _servers[0].running:
            raise InputError("the studio's server in this Python was ended; restart Python to open the studio again.")
        if not _servers:
            server = Server(port)
            server.start()
            _servers.append(server)
        (server,) = _servers
        if port is not None and port != server.port:
            raise InputError(
                f"port={port}: the studio of this Python is already on port {server.port}; leave port out."
            )
        return server.new_studio(session, framed)


def _listening(port: int | None) -> socket.socket:
    """A socket on the loopback address, which no other machine can reach."""
    if port is not None and not 1 <= port <= 65535:
        raise InputError(f"port={port} is no port; give one of 1024 to 65535, or leave it out for a free one.")
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        if sys.platform == "win32":  # there the option below would let another program take our port
            found.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
        else:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((HOST, port or 0))
        found.listen(128)
    except OSError as error:
        found.close()
        why = {errno.EADDRINUSE: "is taken by another program", errno.EACCES: "is for the administrator only"}
        said = why.get(error.errno or 0, f"cannot be used ({error.strerror})")
        raise InputError(f"port={port} {said}; give another one, or leave it out for a free one.") from None
    return found


def _uvicorn_server(guard: Guard) -> uvicorn.Server:
    import uvicorn

    # It takes every websocket that is refused with an answer for a mistake; strangers must not fill the terminal.
    logging.getLogger("uvicorn.error").addFilter(lambda record: "completing handshake" not in record.getMessage())
    return uvicorn.Server(
        uvicorn.Config(
            guard,
            http="h11",  # it limits how long the head of a request may be
            log_config=None,
            log_level="error",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            ws_per_message_deflate=False,  # nothing here needs to be small
            timeout_graceful_shutdown=int(END),
        )
    )


def _application() -> FastAPI:
    """NiceGUI's application, without anything that it would do beside our page."""
    kept = os.environ.pop("NICEGUI_REDIS_URL", None)  # it would connect there
    try:
        from nicegui import ui
    finally:
        if kept is not None:
            os.environ["NICEGUI_REDIS_URL"] = kept
    from fastapi import FastAPI
    from starlette.formparsers import MultiPartParser

    # It writes the addresses of what it does not find, which have the token in them, to where others may read.
    logging.getLogger("nicegui").addFilter(lambda record: not record.getMessage().endswith(" not found"))
    # Starlette and NiceGUI put what is larger into a temporary file; the guard lets nothing larger in.
    MultiPartParser.spool_max_size = LARGEST_BODY
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    ui.run_with(
        app,
        title="sfumato studio",
        show_welcome_message=False,
        gzip_middleware_factory=None,
        message_history_length=100,  # messages with pictures are large
        reconnect_timeout=RECONNECT,
    )
    return app
