"""A server: who is let in (token, cookie, Host, Origin, sizes), and what it does with many connections at once."""

import asyncio
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
from regard.server.page_cache import CachedPage
from regard.server.serve import HEADERS, AuthMiddleware, bind_server_port, connections
from regard.server.tasks import Limits
from regard.web import html_file
from regard.web.page import Page
from tests.support import RIVER
from tests.support.served import served

TOKEN, PORT = "secret-token", 8123
HOST = f"127.0.0.1:{PORT}"


async def inner(scope: Any, receive: Any, send: Any) -> None:
    """An application that reads its body and says how long it was."""
    size, more = 0, True
    while more:
        message = await receive()
        size, more = size + len(message.get("body", b"")), message.get("more_body", False)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(size).encode()})


def replied(
    path: str = "/api/state", method: str = "GET", query: str = "", bodies: tuple[bytes, ...] = (b"",), **headers: str
) -> tuple[int, dict[str, str], str]:
    """One request: (status, headers, body)."""
    given = {"host": HOST} | {name.replace("_", "-"): value for name, value in headers.items()}
    pairs = [(name.encode(), value.encode("latin-1")) for name, value in given.items() if value]
    scope = {"type": "http", "method": method, "path": path, "query_string": query.encode(), "headers": pairs}
    parts = [{"type": "http.request", "body": b, "more_body": n < len(bodies) - 1} for n, b in enumerate(bodies)]
    sent: list[Any] = []

    async def receive() -> Any:
        return parts.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(AuthMiddleware(inner, TOKEN, PORT, Limits(body=10))(scope, receive, send))
    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]
    found = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], found, sent[1]["body"].decode()


COOKIE = f"other=1; regard-{PORT}={TOKEN}"


def test_the_link_sets_the_cookie_and_the_cookie_lets_in() -> None:
    status, headers, _ = replied("/", query=f"token={TOKEN}")
    assert status == 200
    assert headers["set-cookie"] == f"regard-{PORT}={TOKEN}; HttpOnly; SameSite=Strict; Path=/"
    status, headers, _ = replied(cookie=COOKIE)
    assert status == 200
    assert "set-cookie" not in headers
    assert replied(authorization=f"Bearer {TOKEN}")[0] == 200


@pytest.mark.parametrize(
    ("path", "query", "headers"),
    [
        ("/", "", {}),
        ("/", "token=wrong", {}),
        ("/", f"token={TOKEN}&token=wrong", {}),
        ("/", "token=%FF%00é", {}),
        ("/api/state", f"token={TOKEN}", {}),  # the token counts in the link alone
        ("/api/state", "", {"cookie": f"regard-{PORT}=wrong"}),
        ("/api/state", "", {"cookie": f"regard-1={TOKEN}"}),
        ("/api/state", "", {"cookie": f"{TOKEN}; =;;"}),
        ("/api/state", "", {"authorization": f"Basic {TOKEN}"}),
        ("/api/state", "", {"authorization": "Bearer \xe9"}),
    ],
)
def test_nobody_else_is_let_in(path: str, query: str, headers: dict[str, str]) -> None:
    status, found, body = replied(path, query=query, **headers)
    assert status == 401
    assert "set-cookie" not in found
    assert "regard serve" in body
    assert TOKEN not in body


@pytest.mark.parametrize(
    "host", ["", "evil.example", f"evil.example:{PORT}", "127.0.0.1", "127.0.0.1:1", f"127.0.0.1.evil:{PORT}"]
)
def test_other_hosts_are_refused(host: str) -> None:
    assert replied(cookie=COOKIE, host=host)[0] == 421
    assert replied("/", query=f"token={TOKEN}", host=host)[0] == 421


def test_both_names_of_this_machine_are_its_own() -> None:
    assert replied(cookie=COOKIE, host=f"LOCALHOST:{PORT}", origin=f"http://localhost:{PORT}")[0] == 200
    assert replied(cookie=COOKIE, host=f"localhost:{PORT}", origin=f"http://127.0.0.1:{PORT}")[0] == 403


@pytest.mark.parametrize(
    "origin", ["null", "http://evil.example", f"https://{HOST}", f"http://{HOST}.evil", "http://127.0.0.1:1"]
)
def test_other_origins_are_refused_even_with_the_cookie(origin: str) -> None:
    assert replied(method="POST", cookie=COOKIE, origin=origin)[0] == 403
    assert replied(method="POST", cookie=COOKIE, origin=f"http://{HOST}")[0] == 200


def test_what_another_site_sends_is_refused_but_a_link_may_be_followed() -> None:
    assert replied(cookie=COOKIE, sec_fetch_site="cross-site")[0] == 403
    assert replied("/", query=f"token={TOKEN}", sec_fetch_site="cross-site")[0] == 200
    assert replied(cookie=COOKIE, sec_fetch_site="same-origin")[0] == 200


def test_bodies_have_a_limit_whether_they_say_their_size_or_not() -> None:
    assert replied(method="POST", cookie=COOKIE, content_length="10", bodies=(b"0123456789",))[2] == "10"
    status, _, body = replied(method="POST", cookie=COOKIE, content_length="11", bodies=(b"0123456789a",))
    assert (status, body) == (413, "the request has more than 10 bytes, the limit")
    assert replied(method="POST", cookie=COOKIE, bodies=(b"01234", b"56789", b"a"))[0] == 413
    assert replied(method="POST", cookie=COOKIE, content_length="-1")[0] == 400
    assert replied(method="POST", cookie=COOKIE, content_length="1e3")[0] == 400


def test_every_answer_carries_the_policy() -> None:
    for found in (
        replied(cookie=COOKIE),
        replied(),
        replied(host="evil.example"),
        replied(cookie=COOKIE, content_length="99"),
    ):
        assert HEADERS.items() <= found[1].items()
    policy = HEADERS["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe-eval" not in policy
    assert "script-src 'self';" in policy


def test_websockets_are_closed() -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "websocket", "path": "/", "headers": [(b"host", HOST.encode())]}
    asyncio.run(AuthMiddleware(inner, TOKEN, PORT, Limits())(scope, None, send))  # type: ignore[arg-type]
    assert sent == [{"type": "websocket.close", "code": 1008}]


LIVE = Path(html_file.__file__).parent / "built" / "live.js"
needs_page = pytest.mark.skipif(not LIVE.exists(), reason="the page is not built: make page")


def test_models_and_files_of_one_name_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    models = [object.__new__(Model) for _ in range(3)]  # names alone
    for model, name in zip(models, ("bert", "bert", "all-MiniLM-L6-v2"), strict=True):
        model.name = name
    serve.rename_equal_models(models, ["/a/bert", "/b/bert", None])
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
    assert done.stderr.startswith(f"regard: error: --port: got {port}: Address already in use")
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
