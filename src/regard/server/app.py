"""Make the server's application: the page's program, what the server has, all routes. A refusal is one line of JSON."""

import logging
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from regard import __version__
from regard.errors import RegardError
from regard.models.model import Model
from regard.server.asking import asking_routes
from regard.server.kept import Kept, Shelf
from regard.server.pages import page_routes
from regard.server.runs import run_routes
from regard.server.work import Limits, RefusedError, Work
from regard.train.progress import FollowedRun
from regard.web.built_page import built_program
from regard.web.page import FORMAT, VERSION

if TYPE_CHECKING:
    from regard.corpus.store import Store

log = logging.getLogger("regard.server")
# What a browser gets first: it carries nothing but the names of the program and its style sheet.
SHELL = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>regard</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/live.css">
<script defer src="/live.js"></script>
</head>
<body>
<div id="regard-live"><noscript><p>JavaScript is off: with it, texts typed here are traced, and this page shows what
every token of them pays attention to. It loads nothing from anywhere but this machine.</p></noscript></div>
</body>
</html>
"""


def make_app(
    models: Sequence[Model],
    texts: Sequence[str] = (),
    opened: Sequence[Kept] = (),
    limits: Limits | None = None,
    stores: "Sequence[Store]" = (),
    runs: Sequence[FollowedRun] = (),
) -> FastAPI:
    """Make the application; `Gate` stands around it."""
    program = built_program("live")
    limits = limits or Limits()
    work, shelf = Work(limits), Shelf(limits.kept)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        work.close()

    pages = {f"file-{number}": page for number, page in enumerate(opened)}
    app = FastAPI(title="regard", version=__version__, docs_url=None, redoc_url=None, lifespan=lifespan)
    app.state.work = work
    _refusals(app)

    def page_of(name: str) -> Kept:
        return pages[name] if name in pages else shelf.get(name)

    @app.get("/", include_in_schema=False)
    async def shell() -> Response:
        return Response(SHELL, media_type="text/html")

    @app.get("/live.js", include_in_schema=False)
    async def script() -> Response:
        return Response(program.script, media_type="text/javascript")

    @app.get("/live.css", include_in_schema=False)
    async def style() -> Response:
        return Response(program.style, media_type="text/css")

    @app.get("/api/state")
    async def state() -> dict[str, Any]:
        """Say what this server has: models, the texts that it opens with, pages of files, limits."""
        return {
            "version": __version__,
            "format": [FORMAT, VERSION],
            "models": [
                {name: getattr(each, name) for name in ("name", "pairs", "limit", "writes", "pictures")}
                for each in models
            ],
            "texts": list(texts),
            "stores": [
                {"name": name, "rows": sum(shard.rows for shard in each.manifest.shards), "unit": each.manifest.unit}
                for name, each in zip(names_apart([each.path for each in stores]), stores, strict=True)
            ],
            "runs": [{"name": name} for name in names_apart([each.folder for each in runs])],
            "pages": [{"id": name, "title": each.page.title} for name, each in pages.items()],
            "limits": {name: getattr(limits, name) for name in ("characters", "texts", "picture", "seconds")},
        }

    app.include_router(asking_routes(models, stores, limits, work, shelf))
    app.include_router(page_routes(page_of, models, work))
    app.include_router(run_routes(runs, limits, work, shelf))
    return app


def names_apart(paths: Sequence[Path]) -> list[str]:
    """Name files or folders by their last part or, if some have the same, by their paths from the folder they share."""
    if len({path.name for path in paths}) == len(paths):
        return [path.name for path in paths]
    places = [path.resolve() for path in paths]
    shared = os.path.commonpath([place.parent for place in places])
    return [place.relative_to(shared).as_posix() for place in places]


def _refusals(app: FastAPI) -> None:
    """Answer every error as {"error": line}: 4xx for what was asked, 500 for what is a fault of ours."""

    @app.exception_handler(RefusedError)
    async def refused(_: Request, error: RefusedError) -> JSONResponse:
        return _error_response_line(error.status, error.line)

    @app.exception_handler(RegardError)
    async def wrong(_: Request, error: RegardError) -> JSONResponse:
        return _error_response_line(422, str(error))

    @app.exception_handler(RequestValidationError)
    async def malformed(_: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"][1:] or first["loc"]))
        return _error_response_line(422, f"{place}: {first['msg']}")

    @app.exception_handler(HTTPException)
    async def other(_: Request, error: HTTPException) -> JSONResponse:
        return _error_response_line(error.status_code, str(error.detail))

    @app.exception_handler(Exception)
    async def fault(request: Request, error: Exception) -> JSONResponse:
        log.error("%s %s: %r", request.method, request.url.path, error)
        return _error_response_line(500, f"a fault of this server: {type(error).__name__}")


def _error_response_line(status: int, line: str) -> JSONResponse:
    shown = " ".join(line.split()).encode("utf-8", "backslashreplace").decode()
    return JSONResponse({"error": shown}, status)
