"""Make the server's application: the page's program, what the server has, all routes. A refusal is one line of JSON."""

import asyncio
import hashlib
import json
import logging
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from fastapi import APIRouter, FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.routing import Route

from regard.errors import RegardError
from regard.models.model import Model
from regard.server.page_cache import CachedPage, PageCache, ZoomMap
from regard.server.requests import (
    CorpusRequest,
    ExperimentRequest,
    GenerationRequest,
    HeadNumber,
    Index,
    JobName,
    Level,
    Name,
    PictureRequest,
    Question,
    TraceRequest,
)
from regard.server.tasks import Limits, Task, TaskQueues
from regard.server.traces import check_sizes, experiment_page, generation_page, picture_bytes, picture_page, trace_page
from regard.version import __version__
from regard.web.built_page import built_program, built_shell, check_page_built
from regard.web.html_file import html_parts
from regard.web.page import FORMAT, VERSION

if TYPE_CHECKING:
    from regard.corpus.store import Store


def asking_routes(
    models: Sequence[Model], stores: "Sequence[Store]", limits: Limits, work: TaskQueues, shelf: PageCache
) -> APIRouter:
    """Make the routes of questions to models and stores, whose pages come to a shelf, and of what answers."""
    routes = APIRouter()

    async def made(asked: Question, make: Callable[[Task], CachedPage], request: Request, job: str | None) -> Response:
        """The page of what was requested; the same question is answered once."""
        question = json.dumps([type(asked).__name__, asked.model_dump()], sort_keys=True)
        name = hashlib.sha256(question.encode("ascii")).hexdigest()[:24]
        kept = shelf.find(name)
        if kept is None:
            kept = await work.do("model", make, job, request.is_disconnected, question=name)
            shelf.put(name, kept)
        return Response(kept.data, media_type="application/json", headers={"x-page": name})

    @routes.post("/api/traces")
    async def trace(asked: TraceRequest, request: Request, x_job: JobName = None) -> Response:
        """Trace texts; gives the page, whose id is X-Page."""
        model = check_sizes(asked, models, limits)
        other = None if asked.other is None else models[asked.other]
        return await made(asked, partial(trace_page, model, asked, limits, other=other), request, x_job)

    @routes.post("/api/pictures")
    async def picture(asked: PictureRequest, request: Request, x_job: JobName = None) -> Response:
        """Look at a picture; gives the page of where the model looks."""
        model = check_sizes(asked, models, limits)
        make = partial(picture_page, model, asked, picture_bytes(asked, limits), limits)
        return await made(asked, make, request, x_job)

    @routes.post("/api/generations")
    async def generate(asked: GenerationRequest, request: Request, x_job: JobName = None) -> Response:
        """Let a model continue a text; gives the page of all its tokens. What is written so far, its task says."""
        model = check_sizes(asked, models, limits)
        return await made(asked, partial(generation_page, model, asked, limits), request, x_job)

    @routes.post("/api/experiments")
    async def experiment(asked: ExperimentRequest, request: Request, x_job: JobName = None) -> Response:
        """Patch, split an outcome or a score; gives the page of what was found."""
        model = check_sizes(asked, models, limits)
        return await made(asked, partial(experiment_page, model, asked, limits), request, x_job)

    @routes.post("/api/corpora")
    async def corpus(asked: CorpusRequest, request: Request, x_job: JobName = None) -> Response:
        """Ask a corpus store; gives the page of the answer."""
        if not stores:
            raise HTTPException(422, "this server was started without a store: regard serve --store FOLDER")
        from regard.server.corpora import corpus_page  # of what servers without a store do without

        return await made(asked, lambda _: corpus_page(stores, asked, models), request, x_job)

    @routes.get("/api/jobs/{name}")
    async def progress(name: Name) -> dict[str, Any]:
        """A job's progress: the completed fraction, and whether it is waiting. One not known has not come yet."""
        waiter = work.waiter(name)
        if waiter is None:
            return {"known": False, "done": 0.0, "waits": True, "said": ""}
        return {"known": True, "done": waiter.task.done, "waits": waiter.task.waits, "said": waiter.task.said}

    @routes.delete("/api/jobs/{name}")
    async def stop(name: Name) -> dict[str, bool]:
        """Stop a job."""
        waiter = work.waiter(name)
        if waiter is not None:
            waiter.stop()
        return {"stopped": waiter is not None}

    return routes


BYTES = "application/octet-stream"

Count = Annotated[int, Query(ge=1, le=500)]  # of places that one request may ask for
FirstIndex = Annotated[int, Query(ge=0, le=1 << 40)]


def page_routes(page_of: Callable[[str], CachedPage], models: Sequence[Model], work: TaskQueues) -> APIRouter:
    """Make the routes of pages by their names. page_of: finds one. models: what reads the texts of a corpus."""
    routes = APIRouter()
    check_page_built()

    @routes.get("/api/pages/{name}/file")
    async def file(name: Name) -> Response:
        """The page as one file that works offline. Refused of pages whose weights are computed here."""
        kept = page_of(name)
        if kept.maps:
            raise HTTPException(422, "the server computes this page's weights: to save it, choose a shorter text")
        alone = kept.page if kept.alone is None else await asyncio.to_thread(kept.alone)
        content = await asyncio.to_thread(lambda: b"".join(html_parts(alone, built_shell(alone))))
        headers = {"content-disposition": 'attachment; filename="regard.html"'}
        return Response(content, media_type="text/html", headers=headers)

    @routes.get("/api/pages/{name}")
    async def page(name: Name) -> Response:
        """A page that is kept."""
        return Response(page_of(name).data, media_type="application/json", headers={"x-page": name})

    @routes.get("/api/pages/{name}/numbers/{at}")
    async def numbers(name: Name, at: Index) -> Response:
        """Numbers of a page: deflated byte planes."""
        return Response(page_of(name).numbers(at), media_type=BYTES)

    @routes.get("/api/pages/{name}/panels/{panel}/places")
    async def places(name: Name, panel: Index, first: FirstIndex = 0, count: Count = 1) -> dict[str, Any]:
        """The positions of a panel's points or rows in a store's texts, each with the words around it."""
        found = page_of(name).places_of(panel)
        return {"total": len(found), "places": await work.do("regions", lambda _: found.told(first, count))}

    @routes.get("/api/pages/{name}/panels/{panel}/places/{number}/text")
    async def passage(
        name: Name, panel: Index, number: Index, request: Request, x_job: JobName = None
    ) -> dict[str, Any]:
        """The text that a place was read in, and which of this server's models reads it."""
        found = page_of(name).places_of(panel)
        return await work.do("model", lambda _: found.passage(number, models), x_job, request.is_disconnected)

    @routes.post("/api/pages/{name}/calls/{call}/pass")
    async def whole_pass(name: Name, call: Index, request: Request, x_job: JobName = None) -> dict[str, bool]:
        """Make the pass over a served matrix; who asks while it runs waits for the one that runs."""
        await passed(name, call, page_of(name).map(call), request, x_job)
        return {"ready": True}

    @routes.get("/api/pages/{name}/calls/{call}/tiles/{level}/{row}/{col}")
    async def tile(
        name: Name, call: Index, level: Level, row: Index, col: Index, request: Request, head: HeadNumber = None
    ) -> Response:
        """128 × 128 means of 2^level × 2^level weights, float32, in C order, once the pass is made."""
        found = page_of(name).map(call)
        found.check_tile(head, level, row, col)
        await passed(name, call, found, request)
        return await numbers_of(lambda _: found.tile(head, level, row, col))

    @routes.get("/api/pages/{name}/calls/{call}/rows/{query}")
    async def row_of(name: Name, call: Index, query: Index, head: HeadNumber = None) -> Response:
        """The weights from a query to every key, float32."""
        found = page_of(name).map(call)
        return await numbers_of(lambda _: found.row(head, query))

    @routes.get("/api/pages/{name}/calls/{call}/columns/{key}")
    async def column_of(name: Name, call: Index, key: Index, head: HeadNumber = None) -> Response:
        """The weights from every query to a key, float32."""
        found = page_of(name).map(call)
        return await numbers_of(lambda _: found.column(head, key))

    async def passed(name: str, call: int, found: ZoomMap, request: Request, job: str | None = None) -> None:
        def make(own: Task) -> None:
            own.advance(found.done)
            found.prepare(own.advance)

        if not found.ready:
            await work.do("model", make, job, request.is_disconnected, f"{name} {call}")

    async def numbers_of(read: Callable[[Task], np.ndarray]) -> Response:
        found = await work.do("regions", read)
        return Response(np.ascontiguousarray(found, "<f4").tobytes(), media_type=BYTES)

    return routes


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
<div id="regard-live"><noscript>This page needs JavaScript.</noscript></div>
</body>
</html>
"""


def make_app(
    models: Sequence[Model],
    texts: Sequence[str] = (),
    opened: Sequence[CachedPage] = (),
    limits: Limits | None = None,
    stores: "Sequence[Store]" = (),
) -> FastAPI:
    """Make the application; `AuthMiddleware` stands around it."""
    program = built_program("live")
    limits = limits or Limits()
    work, shelf = TaskQueues(limits), PageCache(limits.kept)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        work.close()

    pages = {f"file-{number}": page for number, page in enumerate(opened)}
    app = FastAPI(title="regard", version=__version__, docs_url=None, redoc_url=None, lifespan=lifespan)
    app.state.work = work
    _refusals(app)

    def page_of(name: str) -> CachedPage:
        return pages[name] if name in pages else shelf.get(name)

    files = {"/": (SHELL, "html"), "/live.js": (program.script, "javascript"), "/live.css": (program.style, "css")}
    for path, (content, kind) in files.items():
        app.router.routes.append(Route(path, Response(content, media_type=f"text/{kind}"), methods=["GET"]))

    @app.get("/api/state")
    async def state() -> dict[str, Any]:
        """Report what this server has: models, the texts that it opens with, pages of files, limits."""
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
            "pages": [{"id": name, "title": each.page.title} for name, each in pages.items()],
            "limits": {name: getattr(limits, name) for name in ("characters", "texts", "picture", "seconds")},
        }

    app.include_router(asking_routes(models, stores, limits, work, shelf))
    app.include_router(page_routes(page_of, models, work))
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

    async def refused(request: Request, error: Exception) -> JSONResponse:
        status, line = 500, f"a fault of this server: {type(error).__name__}"
        if isinstance(error, HTTPException):
            status, line = error.status_code, str(error.detail)
        elif isinstance(error, RegardError):
            status, line = 422, str(error)
        elif isinstance(error, RequestValidationError):
            first = error.errors()[0]
            status, line = 422, f"{'.'.join(map(str, first['loc'][1:] or first['loc']))}: {first['msg']}"
        else:
            log.error("%s %s: %r", request.method, request.url.path, error)
        shown = " ".join(line.split()).encode("utf-8", "backslashreplace").decode()
        return JSONResponse({"error": shown}, status)

    for kind in (HTTPException, RegardError, RequestValidationError, Exception):
        app.add_exception_handler(kind, refused)
