"""Run the server on 127.0.0.1: open what it shows, find a port, print the link that opens it, end cleanly at Ctrl-C."""

import asyncio
import logging
import secrets
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from regard.attention.attention_map import AttentionMap
from regard.errors import RegardError
from regard.models.model import Model
from regard.models.windows import longest
from regard.server.app import make_app, names_apart
from regard.server.auth import AuthMiddleware
from regard.server.page_cache import CachedPage
from regard.server.tasks import Limits
from regard.server.traces import long_page, map_page
from regard.tensor_file import ATTENTION, MAP, TRACE, open_tensor_file
from regard.trace.file import open_traces
from regard.views.save_page import page_as_seen

if TYPE_CHECKING:
    from regard.corpus.store import Store

HOST = "127.0.0.1"
HEAD = 10.0  # seconds for the head of a request
STRANGERS = 64  # connections on which nothing was answered yet to who has the cookie
BACKLOG = 16  # connections accepted before any of them is looked at: with the strangers, far fewer than 256 descriptors
# What is logged for each connection, and when that was done last, in seconds.
FLOODS = dict.fromkeys(("socket.accept() out of system resource", "Invalid HTTP request received."), 0.0)


def serve(
    models: Sequence[Model],
    texts: Sequence[str] = (),
    opened: Sequence[CachedPage] = (),
    *,
    stores: "Sequence[Store]" = (),
    port: int = 0,
    limits: Limits | None = None,
    started: Callable[[str], None] = print,
) -> None:
    """Serve until Ctrl-C."""
    limits = limits or Limits()
    bound = bind_server_port(port)
    with bound:
        port = bound.getsockname()[1]
        token = secrets.token_urlsafe(24)
        app = make_app(models, texts, opened, limits, stores)
        gate = AuthMiddleware(app, token, port, limits)
        config = uvicorn.Config(
            gate, log_level="warning", access_log=False, server_header=False, date_header=False,
            timeout_graceful_shutdown=2, lifespan="on", h11_max_incomplete_event_size=32_768, proxy_headers=False,
            http=connections(gate), backlog=BACKLOG,
        )  # fmt: skip
        for name in ("asyncio", "uvicorn.error"):
            logging.getLogger(name).addFilter(log_once_per_minute)
        server = Started(config, lambda: started(f"http://{HOST}:{port}/?token={token}"))
        server.run(sockets=[bound])


def open_file(file: Path, limits: Limits) -> CachedPage:
    """Read a saved trace or map as a page to zoom into. Raises RegardError as `regard.open` and `AttentionMap.load`."""
    with open_tensor_file(file, TRACE, MAP, ATTENTION) as opened:
        form = opened.metadata()["format"]
    if form == MAP:
        weights = AttentionMap.load(file)
        length, size = weights.shape[-2:]
        return map_page(weights.crop(0, slice(0, length), slice(0, size)), file.name)
    traces = open_traces(file)
    if any(longest(each) > limits.whole for each in traces):
        return long_page(traces)
    return CachedPage(page_as_seen(traces))


def open_files(files: Sequence[Path], limits: Limits) -> list[CachedPage]:
    """Read saved traces and maps, as `open_file`; of pages with one title each says in it which file it is of."""
    opened = [open_file(file, limits) for file in files]
    titles = [each.page.title for each in opened]
    for each, file, name in zip(opened, files, names_apart(files), strict=True):
        if titles.count(title := each.page.title) > 1:
            each.page.title = name if title == file.name else f"{title} ({name})"
    return opened


def tell_models_apart(models: Sequence[Model], sources: Sequence[str | None]) -> None:
    """Call models of one name by as much of their folders as tells them apart."""
    names = [each.name for each in models]
    folders = [Path(source or name) for source, name in zip(sources, names, strict=True)]
    for model, name in zip(models, names_apart(folders), strict=True):
        if names.count(model.name) > 1:
            model.name = name


def open_stores(folders: Sequence[Path]) -> "list[Store]":
    """Open corpus stores. Raises RegardError for what is none, and where the extra `corpus` is not installed."""
    if not folders:
        return []
    from regard.corpus.store import Store
    from regard.lazy import import_from_corpus_extra

    import_from_corpus_extra("duckdb")
    return [Store(folder) for folder in folders]


def bind_server_port(port: int) -> socket.socket:
    """Take a port of this machine's own address. Raises RegardError where it is taken or there is no such port."""
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((HOST, port))
    except (OSError, OverflowError) as error:
        bound.close()
        raise RegardError(f"--port: given {port}: {getattr(error, 'strerror', None) or error}") from None
    return bound


def log_once_per_minute(record: logging.LogRecord) -> bool:
    """Tell whether to log a message. Each of `FLOODS` is logged once a minute, as one line."""
    line = record.getMessage().partition("\n")[0]
    if line not in FLOODS:
        return True
    record.msg, record.exc_info, before = line, None, FLOODS[line]
    FLOODS[line] = record.created if record.created - before >= 60 else before
    return FLOODS[line] != before


class Started(uvicorn.Server):
    """A server that says when it can be reached."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._started = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen, and say so."""
        await super().startup(sockets)
        self._started()


def connections(gate: AuthMiddleware, *, head: float = HEAD, strangers: int = STRANGERS) -> type[H11Protocol]:
    """Make the class of a server's connections, which closes those that would only take room.

    Every program of this machine can connect, and each connection takes a descriptor, of which there may be 256: heads
    of requests that never end, and strangers beyond a number, would shut the owner out.

    gate: which knows who was answered. head: seconds for the head of a request. strangers: how many connections without
    a cookie there may be: beyond them the oldest one is closed, for a new one may be the owner's.
    """
    waiting: dict[Connection, None] = {}  # in their order

    class Connection(H11Protocol):
        _timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            waiting[self] = None
            unknown = [each for each in waiting if each.client not in gate.known]
            for each in unknown[: max(0, len(unknown) - strangers)]:
                each.transport.abort()
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
