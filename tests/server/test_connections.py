"""Sockets that send nothing, half a head, or are too many, at a real server; its owner is always let in."""

import contextlib
import http.client
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import uvicorn

from regard.server.connections import connections
from regard.server.gate import Gate
from regard.server.serve import bind
from regard.server.work import Limits


async def hello(scope: Any, _receive: Any, send: Any) -> None:
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})


@pytest.fixture
def port() -> Iterator[int]:
    """A server that waits for a head for half a second, and has room for five strangers."""
    with bind(0) as bound:
        number = bound.getsockname()[1]
        gate = Gate(hello, "secret", number, Limits())
        protocol = connections(gate, head=0.5, strangers=5)
        server = uvicorn.Server(uvicorn.Config(gate, http=protocol, lifespan="off", log_level="critical"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield number
        server.should_exit = True
        thread.join()


@pytest.fixture
def owner(port: int) -> Iterator[Callable[[], http.client.HTTPConnection]]:
    """Makes connections of the owner's, which are closed at the end."""
    with contextlib.ExitStack() as opened:
        yield lambda: opened.enter_context(
            contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=20))
        )


def answered(connection: http.client.HTTPConnection, token: str = "secret") -> int:
    connection.request("GET", "/", headers={"Authorization": f"Bearer {token}"})
    answer = connection.getresponse()
    answer.read()
    return answer.status


def is_closed(connection: socket.socket) -> bool:
    """Wait until the other end closes it."""
    try:
        return connection.recv(99) == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize("sent", [b"", b"GET / HTT", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n"])
def test_a_head_that_does_not_end_is_closed(port: int, owner: Any, sent: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=20) as raw:
        raw.sendall(sent)
        assert is_closed(raw)
    assert answered(owner()) == 200


def test_the_head_of_a_second_request_has_no_more_time(port: int, owner: Any) -> None:
    connection = owner()
    assert answered(connection) == answered(connection) == 200
    connection.sock.sendall(b"GET / HTTP/1.1\r\n")
    assert is_closed(connection.sock)


def test_of_too_many_strangers_the_oldest_goes_and_the_owner_stays(port: int, owner: Any) -> None:
    first = owner()
    assert answered(first) == 200
    with contextlib.ExitStack() as opened:
        raw = [opened.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20)) for _ in range(40)]
        for each in raw[:35]:
            assert is_closed(each)
        assert answered(first) == 200
        assert answered(owner()) == 200
        assert answered(owner(), "wrong") == 401
