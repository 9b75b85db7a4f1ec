"""Let in the browser that was given the link, and nobody else: token, cookie, Host, Origin, and the size of a request.

A page of another site may send requests to 127.0.0.1 from the same browser. It has no cookie that is SameSite=Strict,
its Origin is another, and a name of its own that leads here (DNS rebinding) is not among the hosts.
"""

import contextlib
import hmac

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from regard.server.tasks import Limits

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
    """A request of more bytes than it may have, found while it is read: it did not say how many."""


class AuthMiddleware:
    """An ASGI application around another one that answers only requests which may be answered.

    token: what the printed link carries. Once a request brought it, a cookie carries it (HttpOnly, SameSite=Strict);
    a program may send it as `Authorization: Bearer`.
    """

    def __init__(self, inner: ASGIApp, token: str, port: int, limits: Limits) -> None:
        self._inner, self._token, self._most = inner, token, limits.body
        self._hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}
        self._cookie = f"regard-{port}"  # cookies know no ports: two servers would take each other's
        self.known: set[tuple[str, int] | None] = set()  # the ends of connections on which the token came

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or refuse it."""
        if scope["type"] == "lifespan":
            await self._inner(scope, receive, send)
            return
        if scope["type"] != "http":  # no websockets here
            await send({"type": "websocket.close", "code": 1008})
            return
        request, size = Request(scope), 0
        refused = self._refused(request)
        if refused is not None:
            await PlainTextResponse(refused[1], refused[0], HEADERS)(scope, receive, send)
            return
        if scope.get("client") is not None:
            self.known.add(tuple(scope["client"]))

        async def received() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > self._most:
                raise TooLargeError
            return message

        async def sent(message: Message) -> None:
            if size > self._most:  # whatever the application makes of a body that broke off
                return
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                if link_token(request) is not None:
                    cookie = f"{self._cookie}={self._token}; HttpOnly; SameSite=Strict; Path=/"
                    headers.append("set-cookie", cookie)
            await send(message)

        with contextlib.suppress(TooLargeError):
            await self._inner(scope, received, sent)
        if size > self._most:
            await PlainTextResponse(self._too_large(), 413, HEADERS)(scope, receive, send)

    def _refused(self, request: Request) -> tuple[int, str] | None:
        """The status and the line of what is refused; None of what is not."""
        headers = request.headers
        hosts = [host.lower() for host in headers.getlist("host")]
        if len(hosts) != 1 or hosts[0] not in self._hosts:
            return 421, f"Host: given {', '.join(hosts) or 'none'}, needs {' or '.join(sorted(self._hosts))}"
        for origin in headers.getlist("origin"):
            if origin != f"http://{hosts[0]}":
                return 403, f"Origin: given {origin}, needs http://{hosts[0]}"
        apart = not {"cross-site", "same-site"}.isdisjoint(headers.getlist("sec-fetch-site"))
        # a link that was clicked elsewhere may be followed
        if apart and (request.scope["path"], request.method) != ("/", "GET"):
            return 403, "Sec-Fetch-Site: this request comes from another site"
        if not self._knows(request):
            return 401, CLOSED
        for length in headers.getlist("content-length"):
            if not length.isascii() or not length.isdigit():
                return 400, f"Content-Length: given {length}, needs a number of bytes"
            if int(length) > self._most:
                return 413, self._too_large()
        return None

    def _knows(self, request: Request) -> bool:
        """Whether a request brings the token: in the link, in the cookie, or as a program sends it."""
        bearers = [each[7:] for each in request.headers.getlist("authorization") if each.startswith("Bearer ")]
        tokens = [link_token(request), request.cookies.get(self._cookie), *bearers]
        own = self._token.encode()
        return any(each is not None and hmac.compare_digest(each.encode("utf-8", "replace"), own) for each in tokens)

    def _too_large(self) -> str:
        return f"the request has more than {self._most:,} bytes, which are the most"


def link_token(request: Request) -> str | None:
    """Return the token of the link `/?token=…`; None of any other request."""
    if request.scope["path"] != "/" or request.method != "GET":
        return None
    found = request.query_params.getlist("token")
    return found[0] if len(found) == 1 else None
