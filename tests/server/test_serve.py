"""The command as a person runs it: a real process, real sockets, Ctrl-C."""

import http.client
import json
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from regard.models.model import Model
from regard.server import serve
from regard.server.kept import Kept
from regard.server.work import Limits
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
    monkeypatch.setattr(serve, "open_file", lambda file, _: Kept(Page(titles[file.as_posix()])))
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
