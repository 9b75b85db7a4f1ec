"""The command as a person runs it: a real process, real sockets, Ctrl-C.

Sockets that send nothing, half a head, or are too many do not shut its owner out.
"""

import contextlib
import http.client
import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from regard.models.model import Model
from regard.server import serve
from regard.server.auth import AuthMiddleware
from regard.server.page_cache import CachedPage
from regard.server.serve import bind_server_port, connections
from regard.server.tasks import Limits
from regard.web import built_page
from regard.web.page import Page
from tests.support import RIVER
from tests.support.served import served

LIVE = Path(built_page.__file__).parent / "built" / "live.js"
needs_page = pytest.mark.skipif(not LIVE.exists(), reason="the page is not built: make page")


def test_models_and_files_of_one_name_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    models = [object.__new__(Model) for _ in range(3)]  # names alone
    for model, name in zip(models, ("bert", "bert", "all-MiniLM-L6-v2"), strict=True):
        model.name = name
    serve.tell_models_apart(models, ["/a/bert", "/b/bert", None])
    assert [each.name for each in models] == ["a/bert", "b/bert", "all-MiniLM-L6-v2"]
    titles = {"/a/t": "A text.", "/b/t": "A text.", "/a/map": "map", "/b/map": "map", "/c": "Another text."}
    monkeypatch.setattr(serve, "open_file", lambda file, _: CachedPage(Page(titles[file.as_posix()])))
    opened = serve.open_files([Path(file) for file in titles], Limits())
    assert [each.page.title for each in opened] == ["A text. (a/t)", "A text. (b/t)", "a/map", "b/map", "Another text."]


def ask(port: int, token: str, path: str, body: Any = None) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    content = None if body is None else json.dumps(body)
    connection.request("GET" if body is None else "POST", path, content, headers)
    answer = connection.getresponse()
    found = answer.read()
    connection.close()
    return answer.status, json.loads(found) if found[:1] in b"{[" else found


@needs_page
@pytest.mark.long  # 8 s: a server
def test_eight_clients_at_once_each_get_their_own_text() -> None:
    with served(RIVER) as (process, port, token):
        assert ask(port, "wrong", "/api/state")[0] == 401
        assert ask(port, token, "/api/state")[1]["texts"] == [RIVER]
        texts = [f"Client number {n} saw {n + 2} boats on the river." for n in range(8)]
        found: dict[int, tuple[int, Any]] = {}

        def client(n: int) -> None:
            found[n] = ask(port, token, "/api/traces", {"texts": [texts[n]]})

        clients = [threading.Thread(target=client, args=(n,)) for n in range(8)]
        for each in clients:
            each.start()
        for each in clients:
            each.join()
        assert [found[n][0] for n in range(8)] == [200] * 8
        assert [found[n][1]["texts"][0]["text"] for n in range(8)] == texts
        with socket.create_connection(("127.0.0.1", port), timeout=20) as raw:  # no HTTP at all
            raw.sendall(b"\x00\x01 nonsense\r\n\r\n")
            assert raw.recv(100).startswith(b"HTTP/1.1 400")
        process.send_signal(signal.SIGINT)
        assert process.wait(20) in (0, 130)
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", port), timeout=2)


@pytest.mark.long  # a process of its own
@needs_page
def test_it_listens_to_this_machine_alone_and_a_taken_port_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = subprocess.run(
            [sys.executable, "-m", "regard", "serve", "--port", str(port)], capture_output=True, text=True, timeout=120
        )
    assert done.returncode == 2
    assert done.stderr.startswith(f"regard: error: --port: given {port}: Address already in use")
    assert "Traceback" not in done.stderr


async def hello(scope: Any, _receive: Any, send: Any) -> None:
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})


@pytest.fixture
def port() -> Iterator[int]:
    """A server that waits for a head for half a second, and has room for five strangers."""
    with bind_server_port(0) as bound:
        number = bound.getsockname()[1]
        gate = AuthMiddleware(hello, "secret", number, Limits())
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


BURST = """
import resource, sys
from regard.server import serve
from tests.server.test_serve import hello

resource.setrlimit(resource.RLIMIT_NOFILE, (160, 160))
serve.make_app = lambda *_: hello
serve.serve([], started=lambda link: print(link, flush=True))
"""


@pytest.mark.long  # 5 s: a process
def test_a_burst_of_silent_connections_keeps_nobody_out(tmp_path: Path) -> None:
    """More at once than there are descriptors, while the server does something else: then as many that are no HTTP."""
    with (
        (tmp_path / "log").open("wb") as log,
        subprocess.Popen([sys.executable, "-c", BURST], stdout=subprocess.PIPE, stderr=log, text=True) as process,
        contextlib.ExitStack() as opened,
    ):
        opened.callback(process.kill)
        assert process.stdout is not None
        _, port, token = re.split(r"127\.0\.0\.1:|/\?token=", process.stdout.readline().strip())
        process.send_signal(signal.SIGSTOP)
        for _ in range(400):
            silent = opened.enter_context(socket.socket())
            silent.setblocking(False)
            silent.connect_ex(("127.0.0.1", int(port)))
        process.send_signal(signal.SIGCONT)
        assert ask(int(port), token, "/") == (200, b"ok")
        for _ in range(50):
            with socket.create_connection(("127.0.0.1", int(port)), timeout=20) as raw:
                raw.sendall(b"no HTTP\r\n\r\n")
                assert raw.recv(99).startswith(b"HTTP/1.1 400")
        assert ask(int(port), token, "/") == (200, b"ok")
    told = (tmp_path / "log").read_text().splitlines()
    assert len(told) <= 2, told[:20]
