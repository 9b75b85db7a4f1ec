"""Run the server on 127.0.0.1: open files, bind a port, print the link, and stop cleanly on Ctrl-C.

Only the browser that opened the link has access. The server checks the token, cookie, Host, Origin and size of every
request. A page of another site can send requests to 127.0.0.1 from the same browser. They are rejected, because they
lack the SameSite=Strict cookie, have another Origin, or name another Host (DNS rebinding).
"""

import asyncio
import contextlib
import hmac
import logging
import secrets
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from regard.attention.attention_map import AttentionMap
from regard.errors import RegardError
from regard.models.model import Model
from regard.models.windows import longest
from regard.server.app import distinct_names, make_app
from regard.server.page_cache import CachedPage
from regard.server.tasks import Limits
from regard.server.traces import long_page, map_page
from regard.tensor_file import ATTENTION, MAP, TRACE, open_tensor_file
from regard.trace.file import open_traces
from regard.views.save_page import page_as_seen

if TYPE_CHECKING:
    from regard.corpus.store import Store


POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self'; worker-src blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
CLOSED = "This page is for the browser that opens the link which `regard serve` printed: open that link."


class TooLargeError(Exception):
    """A request without Content-Length has more bytes than allowed."""


class AuthMiddleware:
    """ASGI middleware that rejects requests without the token or with wrong headers.

    token: the secret in the printed link. The response to that link sets a cookie (HttpOnly, SameSite=Strict).
    Programs can send the token as `Authorization: Bearer`.
    """

    def __init__(self, inner: ASGIApp, token: str, port: int, limits: Limits) -> None:
        self._inner, self._token, self._most = inner, token, limits.body
        self._hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}
        self._cookie = f"regard-{port}"  # cookies ignore ports: two servers would share a name
        self.known: set[tuple[str, int] | None] = set()  # client addresses that sent the token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request to the application, or answer it with an error."""
        if scope["type"] == "lifespan":
            await self._inner(scope, receive, send)
            return
        if scope["type"] != "http":  # websockets aren't supported
            await send({"type": "websocket.close", "code": 1008})
            return
        request, size = Request(scope), 0
        refusal = self._refusal(request)
        if refusal is not None:
            await PlainTextResponse(refusal[1], refusal[0], HEADERS)(scope, receive, send)
            return
        if scope.get("client") is not None:
            self.known.add(tuple(scope["client"]))

        async def counted_receive() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > self._most:
                raise TooLargeError
            return message

        async def send_with_headers(message: Message) -> None:
            if size > self._most:  # drop the application's answer to a truncated body
                return
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                if link_token(request) is not None:
                    cookie = f"{self._cookie}={self._token}; HttpOnly; SameSite=Strict; Path=/"
                    headers.append("set-cookie", cookie)
            await send(message)

        with contextlib.suppress(TooLargeError):
            await self._inner(scope, counted_receive, send_with_headers)
        if size > self._most:
            await PlainTextResponse(self._too_large(), 413, HEADERS)(scope, receive, send)

    def _refusal(self, request: Request) -> tuple[int, str] | None:
        """Return the HTTP status and message if a request isn't allowed, otherwise None."""
        headers = request.headers
        hosts = [host.lower() for host in headers.getlist("host")]
        if len(hosts) != 1 or hosts[0] not in self._hosts:
            return 421, f"Host: got {', '.join(hosts) or 'none'}, expected {' or '.join(sorted(self._hosts))}"
        for origin in headers.getlist("origin"):
            if origin != f"http://{hosts[0]}":
                return 403, f"Origin: got {origin}, expected http://{hosts[0]}"
        cross_site = not {"cross-site", "same-site"}.isdisjoint(headers.getlist("sec-fetch-site"))
        # links on other sites may open the start page
        if cross_site and (request.scope["path"], request.method) != ("/", "GET"):
            return 403, "Sec-Fetch-Site: this request comes from another site"
        if not self._has_token(request):
            return 401, CLOSED
        for length in headers.getlist("content-length"):
            if not length.isascii() or not length.isdigit():
                return 400, f"Content-Length: got {length}, expected a number of bytes"
            if int(length) > self._most:
                return 413, self._too_large()
        return None

    def _has_token(self, request: Request) -> bool:
        """Return whether a request has the token, in its URL, cookie or Authorization header."""
        bearers = [header[7:] for header in request.headers.getlist("authorization") if header.startswith("Bearer ")]
        tokens = [link_token(request), request.cookies.get(self._cookie), *bearers]
        token = self._token.encode()
        return any(item is not None and hmac.compare_digest(item.encode("utf-8", "replace"), token) for item in tokens)

    def _too_large(self) -> str:
        return f"the request has more than {self._most:,} bytes, the limit"


def link_token(request: Request) -> str | None:
    """Return the token of a request for `/?token=…`, None for other requests."""
    if request.scope["path"] != "/" or request.method != "GET":
        return None
    tokens = request.query_params.getlist("token")
    return tokens[0] if len(tokens) == 1 else None


HOST = "127.0.0.1"
HEAD = 10.0  # maximum seconds until a request's headers are complete
STRANGERS = 64  # maximum connections that haven't sent the token
BACKLOG = 16  # connections accepted at once. With STRANGERS, far fewer than 256 file descriptors
# Messages that any connection can cause, with the time at which each was last logged, in seconds.
FLOODS = dict.fromkeys(("socket.accept() out of system resource", "Invalid HTTP request received."), 0.0)


def serve(
    models: Sequence[Model],
    texts: Sequence[str] = (),
    pages: Sequence[CachedPage] = (),
    *,
    stores: "Sequence[Store]" = (),
    port: int = 0,
    limits: Limits | None = None,
    started: Callable[[str], None] = print,
) -> None:
    """Run the server until Ctrl-C. started: called with the link of the page."""
    limits = limits or Limits()
    bound = bind_server_port(port)
    with bound:
        port = bound.getsockname()[1]
        token = secrets.token_urlsafe(24)
        app = make_app(models, texts, pages, limits, stores)
        gate = AuthMiddleware(app, token, port, limits)
        config = uvicorn.Config(
            gate, log_level="warning", access_log=False, server_header=False, date_header=False,
            timeout_graceful_shutdown=2, lifespan="on", h11_max_incomplete_event_size=32_768, proxy_headers=False,
            http=connections(gate), backlog=BACKLOG,
        )  # fmt: skip
        for name in ("asyncio", "uvicorn.error"):
            logging.getLogger(name).addFilter(log_once_per_minute)
        server = AnnouncingServer(config, lambda: started(f"http://{HOST}:{port}/?token={token}"))
        server.run(sockets=[bound])


def open_file(file: Path, limits: Limits) -> CachedPage:
    """Open a saved trace or attention map as a page. For errors, see `regard.open` and `AttentionMap.load`."""
    with open_tensor_file(file, TRACE, MAP, ATTENTION) as tensor_file:
        form = tensor_file.metadata()["format"]
    if form == MAP:
        weights = AttentionMap.load(file)
        length, size = weights.shape[-2:]
        return map_page(weights.crop(0, slice(0, length), slice(0, size)), file.name)
    traces = open_traces(file)
    if any(longest(trace) > limits.whole for trace in traces):
        return long_page(traces)
    return CachedPage(page_as_seen(traces))


def open_files(files: Sequence[Path], limits: Limits | None = None) -> list[CachedPage]:
    """Open saved traces and maps as pages. If titles are equal, file names are added."""
    pages = [open_file(file, limits or Limits()) for file in files]
    titles = [page.page.title for page in pages]
    for page, file, name in zip(pages, files, distinct_names(files), strict=True):
        if titles.count(title := page.page.title) > 1:
            page.page.title = name if title == file.name else f"{title} ({name})"
    return pages


def rename_equal_models(models: Sequence[Model], sources: Sequence[str | None]) -> None:
    """Rename models with equal names to names with folders, so that all names differ."""
    names = [model.name for model in models]
    folders = [Path(source or name) for source, name in zip(sources, names, strict=True)]
    for model, name in zip(models, distinct_names(folders), strict=True):
        if names.count(model.name) > 1:
            model.name = name


def bind_server_port(port: int) -> socket.socket:
    """Bind a port of 127.0.0.1, 0 for any free one. Raises RegardError if it is taken."""
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((HOST, port))
    except (OSError, OverflowError) as error:
        bound.close()
        raise RegardError(f"--port: got {port}: {getattr(error, 'strerror', None) or error}") from None
    return bound


def log_once_per_minute(record: logging.LogRecord) -> bool:
    """Return whether to log a record. Those in `FLOODS` are logged at most once per minute, as one line."""
    line = record.getMessage().partition("\n")[0]
    if line not in FLOODS:
        return True
    record.msg, record.exc_info, last_logged = line, None, FLOODS[line]
    FLOODS[line] = record.created if record.created - last_logged >= 60 else last_logged
    return FLOODS[line] != last_logged


class AnnouncingServer(uvicorn.Server):
    """A Uvicorn server that calls a function once it accepts connections."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._started = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to listen, then call the function."""
        await super().startup(sockets)
        self._started()


def connections(gate: AuthMiddleware, *, head: float = HEAD, strangers: int = STRANGERS) -> type[H11Protocol]:
    """Return the HTTP protocol class of the server, which closes connections that block others.

    Every program on this machine can connect, and each connection takes one of perhaps 256 file descriptors. Endless
    headers or too many connections of other programs would lock the owner out.

    gate: knows which clients sent the token. head: maximum seconds until headers are complete. strangers: maximum
    number of connections without a token. The oldest is closed first, because a new connection may be the owner's.
    """
    waiting: dict[Connection, None] = {}  # oldest first

    class Connection(H11Protocol):
        _timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            waiting[self] = None
            without_token = [connection for connection in waiting if connection.client not in gate.known]
            for connection in without_token[: max(0, len(without_token) - strangers)]:
                connection.transport.abort()
            self._await_head()

        def connection_lost(self, exc: Exception | None) -> None:
            waiting.pop(self, None)
            gate.known.discard(self.client)
            self._end_wait()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            if self.cycle is not None and self.cycle.response_complete:  # another request on the same connection
                self._await_head()
            before = self.cycle
            super().data_received(data)
            if self.cycle is not before:
                self._end_wait()

        def _await_head(self) -> None:
            if self._timer is None:
                self._timer = self.loop.call_later(head, self.transport.abort)

        def _end_wait(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    return Connection
