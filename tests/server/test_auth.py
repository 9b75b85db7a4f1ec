"""Who is let in: token, cookie, Host, Origin, sizes."""

import asyncio
from typing import Any

import pytest

from regard.server.auth import HEADERS, AuthMiddleware
from regard.server.tasks import Limits

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


def ask(
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
    status, headers, _ = ask("/", query=f"token={TOKEN}")
    assert status == 200
    assert headers["set-cookie"] == f"regard-{PORT}={TOKEN}; HttpOnly; SameSite=Strict; Path=/"
    status, headers, _ = ask(cookie=COOKIE)
    assert status == 200
    assert "set-cookie" not in headers
    assert ask(authorization=f"Bearer {TOKEN}")[0] == 200


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
    status, found, body = ask(path, query=query, **headers)
    assert status == 401
    assert "set-cookie" not in found
    assert "regard serve" in body
    assert TOKEN not in body


@pytest.mark.parametrize(
    "host", ["", "evil.example", f"evil.example:{PORT}", "127.0.0.1", "127.0.0.1:1", f"127.0.0.1.evil:{PORT}"]
)
def test_other_hosts_are_refused(host: str) -> None:
    assert ask(cookie=COOKIE, host=host)[0] == 421
    assert ask("/", query=f"token={TOKEN}", host=host)[0] == 421


def test_both_names_of_this_machine_are_its_own() -> None:
    assert ask(cookie=COOKIE, host=f"LOCALHOST:{PORT}", origin=f"http://localhost:{PORT}")[0] == 200
    assert ask(cookie=COOKIE, host=f"localhost:{PORT}", origin=f"http://127.0.0.1:{PORT}")[0] == 403


@pytest.mark.parametrize(
    "origin", ["null", "http://evil.example", f"https://{HOST}", f"http://{HOST}.evil", "http://127.0.0.1:1"]
)
def test_other_origins_are_refused_even_with_the_cookie(origin: str) -> None:
    assert ask(method="POST", cookie=COOKIE, origin=origin)[0] == 403
    assert ask(method="POST", cookie=COOKIE, origin=f"http://{HOST}")[0] == 200


def test_what_another_site_sends_is_refused_but_a_link_may_be_followed() -> None:
    assert ask(cookie=COOKIE, sec_fetch_site="cross-site")[0] == 403
    assert ask("/", query=f"token={TOKEN}", sec_fetch_site="cross-site")[0] == 200
    assert ask(cookie=COOKIE, sec_fetch_site="same-origin")[0] == 200


def test_bodies_have_a_limit_whether_they_say_their_size_or_not() -> None:
    assert ask(method="POST", cookie=COOKIE, content_length="10", bodies=(b"0123456789",))[2] == "10"
    status, _, body = ask(method="POST", cookie=COOKIE, content_length="11", bodies=(b"0123456789a",))
    assert (status, body) == (413, "the request has more than 10 bytes, which are the most")
    assert ask(method="POST", cookie=COOKIE, bodies=(b"01234", b"56789", b"a"))[0] == 413
    assert ask(method="POST", cookie=COOKIE, content_length="-1")[0] == 400
    assert ask(method="POST", cookie=COOKIE, content_length="1e3")[0] == 400


def test_every_answer_carries_the_policy() -> None:
    for found in (ask(cookie=COOKIE), ask(), ask(host="evil.example"), ask(cookie=COOKIE, content_length="99")):
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
