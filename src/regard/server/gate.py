"""Let in the browser that was given the link, and nobody else: token, cookie, Host, Origin, and the size of a request.

A page of another site may send requests to 127.0.0.1 from the same browser. It has no cookie that is SameSite=Strict,
its Origin is another, and a name of its own that leads here (DNS rebinding) is not among the hosts.
"""

import contextlib
import hmac
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qs

from regard.server.work import Limits

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self'; worker-src blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)
CLOSED = "This page is for the browser that opens the link which `regard serve` printed: open that link."


class Gate:
    """An ASGI application around another one that answers only requests which may be answered.

    token: what the printed link carries. Once a request brought it, a cookie carries it (HttpOnly, SameSite=Strict);
    a program may send it as `Authorization: Bearer`.
    """

    def __init__(self, inner: Application, token: str, port: int, limits: Limits) -> None:
        self._inner, self._token, self._limits = inner, token, limits
        self._hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}
        self._cookie = f"regard-{port}"  # cookies know no ports: two servers would take each other's
        self.known: set[tuple[str, int] | None] = set()  # the ends of connections on which the token came

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request, or refuse it."""
        if scope["type"] == "lifespan":
            await self._inner(scope, receive, send)
            return
        if scope["type"] != "http":  # no websockets here
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = [(name.lower(), value.decode("latin-1")) for name, value in scope["headers"]]
        refused = self._refused(scope, headers)
        if refused is not None:
            await respond(send, *refused)
            return
        asked = _query_token(scope)
        if scope.get("client") is not None:
            self.known.add(tuple(scope["client"]))

        body = _Body(receive, self._limits.body)

        async def sent(message: Message) -> None:
            if body.too_large:  # whatever the application makes of a body that broke off
                return
            if message["type"] == "http.response.start":
                own = list(HEADERS)
                if asked is not None:
                    cookie = f"{self._cookie}={self._token}; HttpOnly; SameSite=Strict; Path=/"
                    own.append((b"set-cookie", cookie.encode()))
                message = {**message, "headers": [*message.get("headers", []), *own]}
            await send(message)

        with contextlib.suppress(_TooLargeError):
            await self._inner(scope, body.receive, sent)
        if body.too_large:
            await respond(send, 413, self._too_large())

    def _refused(self, scope: Message, headers: list[tuple[bytes, str]]) -> tuple[int, str] | None:
        """The status and the line of what is refused; None of what is not."""
        hosts = [value for name, value in headers if name == b"host"]
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return 421, f"Host: given {', '.join(hosts) or 'none'}, needs {' or '.join(sorted(self._hosts))}"
        for name, origin in headers:
            if name == b"origin" and origin != f"http://{hosts[0].lower()}":
                return 403, f"Origin: given {origin}, needs http://{hosts[0].lower()}"
        apart = any(name == b"sec-fetch-site" and value in ("cross-site", "same-site") for name, value in headers)
        # a link that was clicked elsewhere may be followed
        if apart and (scope["path"], scope["method"]) != ("/", "GET"):
            return 403, "Sec-Fetch-Site: this request comes from another site"
        if not self._known(scope, headers):
            return 401, CLOSED
        lengths = [value for name, value in headers if name == b"content-length"]
        if any(not length.isascii() or not length.isdigit() for length in lengths):
            return 400, f"Content-Length: given {lengths[0]}, needs a number of bytes"
        if any(int(length) > self._limits.body for length in lengths):
            return 413, self._too_large()
        return None

    def _known(self, scope: Message, headers: list[tuple[bytes, str]]) -> bool:
        given = [_query_token(scope)]
        for name, value in headers:
            if name == b"authorization" and value.startswith("Bearer "):
                given.append(value.removeprefix("Bearer "))
            if name == b"cookie":
                pairs = (each.strip().partition("=") for each in value.split(";"))
                given += [content for own, _, content in pairs if own == self._cookie]
        token = self._token.encode()
        return any(each is not None and hmac.compare_digest(each.encode("utf-8", "replace"), token) for each in given)

    def _too_large(self) -> str:
        return f"the request has more than {self._limits.body:,} bytes, which are the most"


class _TooLargeError(Exception):
    """A request of more bytes than it may have, found while it is read: it did not say how many."""


class _Body:
    """A request's body that counts its bytes while it is read."""

    def __init__(self, receive: Receive, most: int) -> None:
        self._receive, self._left = receive, most
        self.too_large = False

    async def receive(self) -> Message:
        """The next part. Raises _TooLargeError."""
        message = await self._receive()
        self._left -= len(message.get("body", b""))
        if self._left < 0:
            self.too_large = True
            raise _TooLargeError
        return message


def _query_token(scope: Message) -> str | None:
    """The token of the link `/?token=…`; None of any other request."""
    if scope["path"] != "/" or scope["method"] != "GET":
        return None
    found = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token", [])
    return found[0] if len(found) == 1 else None


async def respond(send: Send, status: int, line: str) -> None:
    """Send one line as a whole response."""
    body = line.encode("utf-8", "replace")
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode()), *HEADERS]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
