"""Define the server's FastAPI application and its routes. Every error is sent as one line of JSON."""

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
from regard.web.html_file import built_program, check_page_built, html_parts
from regard.web.page import FORMAT, VERSION

if TYPE_CHECKING:
    from regard.corpus.store import Store


def question_routes(
    models: Sequence[Model], stores: "Sequence[Store]", limits: Limits, work: TaskQueues, cache: PageCache
) -> APIRouter:
    """Return the routes that answer questions to models and embedding indexes, and report or stop running jobs."""
    routes = APIRouter()

    async def reply(query: Question, make: Callable[[Task], CachedPage], request: Request, job: str | None) -> Response:
        """Return the page that answers a question, from the cache if the question was asked before."""
        question = json.dumps([type(query).__name__, query.model_dump()], sort_keys=True)
        name = hashlib.sha256(question.encode("ascii")).hexdigest()[:24]
        cached = cache.find(name)
        if cached is None:
            cached = await work.run("model", make, job, request.is_disconnected, question=name)
            cache.put(name, cached)
        return Response(cached.data, media_type="application/json", headers={"x-page": name})

    @routes.post("/api/traces")
    async def trace(query: TraceRequest, request: Request, x_job: JobName = None) -> Response:
        """Trace texts and return their page. The header X-Page has its id."""
        model = check_sizes(query, models, limits)
        other = None if query.other is None else models[query.other]
        return await reply(query, partial(trace_page, model, query, limits, other=other), request, x_job)

    @routes.post("/api/pictures")
    async def picture(query: PictureRequest, request: Request, x_job: JobName = None) -> Response:
        """Trace an image and return a page that shows where the model attends."""
        model = check_sizes(query, models, limits)
        make = partial(picture_page, model, query, picture_bytes(query, limits), limits)
        return await reply(query, make, request, x_job)

    @routes.post("/api/generations")
    async def generate(query: GenerationRequest, request: Request, x_job: JobName = None) -> Response:
        """Generate a continuation of a text and return a page with all its tokens."""
        model = check_sizes(query, models, limits)
        return await reply(query, partial(generation_page, model, query, limits), request, x_job)

    @routes.post("/api/experiments")
    async def experiment(query: ExperimentRequest, request: Request, x_job: JobName = None) -> Response:
        """Answer a question with a model, such as patching or attribution, and return its page."""
        model = check_sizes(query, models, limits)
        return await reply(query, partial(experiment_page, model, query, limits), request, x_job)

    @routes.post("/api/corpora")
    async def corpus(query: CorpusRequest, request: Request, x_job: JobName = None) -> Response:
        """Query an embedding index and return the page of the answer."""
        if not stores:
            raise HTTPException(422, "this server was started without a store: regard serve --store FOLDER")
        from regard.server.corpora import corpus_page  # servers without an index don't need it

        return await reply(query, lambda _: corpus_page(stores, query, models), request, x_job)

    @routes.get("/api/jobs/{name}")
    async def progress(name: Name) -> dict[str, Any]:
        """Return a job's completed fraction, and whether it is waiting or still unknown."""
        waiter = work.waiter(name)
        if waiter is None:
            return {"known": False, "done": 0.0, "waits": True, "said": ""}
        return {"known": True, "done": waiter.task.done, "waits": waiter.task.waits, "said": waiter.task.text}

    @routes.delete("/api/jobs/{name}")
    async def stop(name: Name) -> dict[str, bool]:
        """Stop a running job."""
        waiter = work.waiter(name)
        if waiter is not None:
            waiter.stop()
        return {"stopped": waiter is not None}

    return routes


BYTES = "application/octet-stream"

Count = Annotated[int, Query(ge=1, le=500)]  # positions per request
FirstIndex = Annotated[int, Query(ge=0, le=1 << 40)]


def page_routes(page_of: Callable[[str], CachedPage], models: Sequence[Model], work: TaskQueues) -> APIRouter:
    """Return the routes of cached pages and their numbers. page_of: returns a page by its name."""
    routes = APIRouter()
    check_page_built()

    @routes.get("/api/pages/{name}/file")
    async def file(name: Name) -> Response:
        """Return a page as one offline HTML file. Pages whose weights the server computes have none."""
        cached = page_of(name)
        if cached.maps:
            raise HTTPException(422, "the server computes this page's weights: to save it, choose a shorter text")
        offline_page = cached.page if cached.alone is None else await asyncio.to_thread(cached.alone)
        content = await asyncio.to_thread(lambda: b"".join(html_parts(offline_page)))
        headers = {"content-disposition": 'attachment; filename="regard.html"'}
        return Response(content, media_type="text/html", headers=headers)

    @routes.get("/api/pages/{name}")
    async def page(name: Name) -> Response:
        """Return the JSON of a cached page."""
        return Response(page_of(name).data, media_type="application/json", headers={"x-page": name})

    @routes.get("/api/pages/{name}/numbers/{at}")
    async def numbers(name: Name, at: Index) -> Response:
        """Return an array of a page as deflated byte planes."""
        return Response(page_of(name).numbers(at), media_type=BYTES)

    @routes.get("/api/pages/{name}/panels/{panel}/places")
    async def places(name: Name, panel: Index, first: FirstIndex = 0, count: Count = 1) -> dict[str, Any]:
        """Return the positions of a panel's points or rows in the texts of an index, with their contexts."""
        items = page_of(name).places_of(panel)
        return {"total": len(items), "places": await work.run("regions", lambda _: items.with_context(first, count))}

    @routes.get("/api/pages/{name}/panels/{panel}/places/{number}/text")
    async def text_of_place(
        name: Name, panel: Index, number: Index, request: Request, x_job: JobName = None
    ) -> dict[str, Any]:
        """Return the text around a position in an index, and the number of the model for it."""
        occurrences = page_of(name).places_of(panel)
        return await work.run("model", lambda _: occurrences.passage(number, models), x_job, request.is_disconnected)

    @routes.post("/api/pages/{name}/calls/{call}/pass")
    async def compute_means(name: Name, call: Index, request: Request, x_job: JobName = None) -> dict[str, bool]:
        """Compute the cell means of a long attention matrix, or wait for a running computation."""
        await prepare_map(name, call, page_of(name).map(call), request, x_job)
        return {"ready": True}

    @routes.get("/api/pages/{name}/calls/{call}/tiles/{level}/{row}/{col}")
    async def tile(
        name: Name, call: Index, level: Level, row: Index, col: Index, request: Request, head: HeadNumber = None
    ) -> Response:
        """Return a tile of 128 × 128 means of 2^level × 2^level weights, as float32 in C order."""
        zoom_map = page_of(name).map(call)
        zoom_map.check_tile(head, level, row, col)
        await prepare_map(name, call, zoom_map, request)
        return await float_response(lambda _: zoom_map.tile(head, level, row, col))

    @routes.get("/api/pages/{name}/calls/{call}/rows/{query}")
    async def weights_of_query(name: Name, call: Index, query: Index, head: HeadNumber = None) -> Response:
        """Return the weights from one query to every key, as float32."""
        zoom_map = page_of(name).map(call)
        return await float_response(lambda _: zoom_map.row(head, query))

    @routes.get("/api/pages/{name}/calls/{call}/columns/{key}")
    async def weights_of_key(name: Name, call: Index, key: Index, head: HeadNumber = None) -> Response:
        """Return the weights from every query to one key, as float32."""
        zoom_map = page_of(name).map(call)
        return await float_response(lambda _: zoom_map.column(head, key))

    async def prepare_map(name: str, call: int, zoom_map: ZoomMap, request: Request, job: str | None = None) -> None:
        def compute(task: Task) -> None:
            task.advance(zoom_map.done)
            zoom_map.prepare(task.advance)

        if not zoom_map.ready:
            await work.run("model", compute, job, request.is_disconnected, f"{name} {call}")

    async def float_response(read: Callable[[Task], np.ndarray]) -> Response:
        values = await work.run("regions", read)
        return Response(np.ascontiguousarray(values, "<f4").tobytes(), media_type=BYTES)

    return routes


log = logging.getLogger("regard.server")
# The first response to a browser. It loads the program and its style sheet.
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
    """Return the server's FastAPI application, without `AuthMiddleware`."""
    script, style = built_program("live")
    limits = limits or Limits()
    work, cache = TaskQueues(limits), PageCache(limits.kept)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        work.close()

    pages = {f"file-{number}": page for number, page in enumerate(opened)}
    app = FastAPI(title="regard", version=__version__, docs_url=None, redoc_url=None, lifespan=lifespan)
    app.state.work = work
    _add_error_handlers(app)

    def page_of(name: str) -> CachedPage:
        return pages[name] if name in pages else cache.get(name)

    files = {"/": (SHELL, "html"), "/live.js": (script, "javascript"), "/live.css": (style, "css")}
    for path, (content, kind) in files.items():
        app.router.routes.append(Route(path, Response(content, media_type=f"text/{kind}"), methods=["GET"]))

    @app.get("/api/state")
    async def state() -> dict[str, Any]:
        """Return the server's models, stores, opened pages, texts and limits for the start page."""
        return {
            "version": __version__,
            "format": [FORMAT, VERSION],
            "models": [
                {name: getattr(model, name) for name in ("name", "pairs", "limit", "writes", "pictures")}
                for model in models
            ],
            "texts": list(texts),
            "stores": [
                {"name": name, "rows": sum(shard.rows for shard in store.manifest.shards), "unit": store.manifest.unit}
                for name, store in zip(distinct_names([store.path for store in stores]), stores, strict=True)
            ],
            "pages": [{"id": name, "title": page.page.title} for name, page in pages.items()],
            "limits": {name: getattr(limits, name) for name in ("characters", "texts", "picture", "seconds")},
        }

    app.include_router(question_routes(models, stores, limits, work, cache))
    app.include_router(page_routes(page_of, models, work))
    return app


def distinct_names(paths: Sequence[Path]) -> list[str]:
    """Return the names of files or folders. If some are equal, they include parent folders."""
    if len({path.name for path in paths}) == len(paths):
        return [path.name for path in paths]
    resolved = [path.resolve() for path in paths]
    shared = os.path.commonpath([path.parent for path in resolved])
    return [path.relative_to(shared).as_posix() for path in resolved]


def _add_error_handlers(app: FastAPI) -> None:
    """Register handlers that answer every error as {"error": line}, with status 500 for server faults."""

    async def error_response(request: Request, error: Exception) -> JSONResponse:
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
        message = " ".join(line.split()).encode("utf-8", "backslashreplace").decode()
        return JSONResponse({"error": message}, status)

    for kind in (HTTPException, RegardError, RequestValidationError, Exception):
        app.add_exception_handler(kind, error_response)
