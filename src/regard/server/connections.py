"""Close connections that would only take room: heads of requests that never end, and strangers beyond a number.

Every program of this machine can connect, and each connection takes a descriptor, of which there may be 256: held open
they would shut the owner out.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from regard.server.gate import Gate

HEAD = 10.0  # seconds for the head of a request
STRANGERS = 64  # connections on which nothing was answered yet to who has the cookie


def connections(gate: Gate, *, head: float = HEAD, strangers: int = STRANGERS) -> type[H11Protocol]:
    """Make the class of a server's connections.

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
