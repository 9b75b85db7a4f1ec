"""The server's routes: the page, what may be asked for, numbers as bytes. Every refusal is one line of JSON."""

import asyncio
import hashlib
import json
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from fastapi import FastAPI, Header, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from regard import __version__
from regard.capture.interventions.names import Part
from regard.errors import RegardError
from regard.models.model import Model
from regard.server.asked import CorpusAsked, ExperimentAsked, GenerationAsked, Question, TraceAsked
from regard.server.experiments import experiment_page
from regard.server.kept import Kept, Shelf
from regard.server.limits import Limits
from regard.server.runs import Head, run_of, run_state, watched_page
from regard.server.shell import shell_html
from regard.server.traces import check_sizes, generation_page, trace_page
from regard.server.work import Job, RefusedError, Work
from regard.train.progress import FollowedRun
from regard.web.built_page import built_live, built_shell
from regard.web.html_file import html_parts
from regard.web.page import FORMAT, VERSION

if TYPE_CHECKING:
    from regard.corpus.store import Store

log = logging.getLogger("regard.server")
BYTES = "application/octet-stream"

Name = Annotated[str, Path(pattern=r"^[0-9a-z-]{1,64}$")]
Count = Annotated[int, Query(ge=1, le=500)]  # of places that one request may ask for
Place = Annotated[int, Path(ge=0, le=1 << 40)]
PlaceNumber = Annotated[int, Query(ge=0, le=1 << 40)]
HeadNumber = Annotated[int | None, Query(ge=0, le=1 << 20)]  # None for the mean of heads
JobName = Annotated[str | None, Header(pattern=r"^[0-9a-z-]{1,64}$")]


def make_app(
    models: Sequence[Model],
    texts: Sequence[str] = (),
    opened: Sequence[Kept] = (),
    limits: Limits | None = None,
    stores: "Sequence[Store]" = (),
    runs: Sequence[FollowedRun] = (),
) -> FastAPI:
    """Make the application; `Gate` stands around it.

    models: what may be asked for, by number. texts: that the page opens with. opened: pages made before, of files.
    stores: corpora that may be asked. runs: training that may be followed.

    Raises:
        RegardError: the page is not built.
    """
    program, shown = built_live(), built_shell()
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
        return Response(shell_html(), media_type="text/html")

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
                {"name": each.name, "pairs": each.pairs, "limit": each.limit, "writes": each.writes} for each in models
            ],
            "texts": list(texts),
            "stores": [
                {"name": each.path.name, "rows": sum(shard.rows for shard in each.manifest.shards)} for each in stores
            ],
            "runs": [{"name": each.folder.resolve().name} for each in runs],
            "pages": [{"id": name, "title": each.page.title} for name, each in pages.items()],
            "limits": {"characters": limits.characters, "texts": limits.texts, "seconds": limits.seconds},
        }

    @app.post("/api/traces")
    async def trace(asked: TraceAsked, request: Request, x_job: JobName = None) -> Response:
        """Trace texts; gives the page, whose id is X-Page."""
        model = check_sizes(asked, models, limits)
        return await made(asked, partial(trace_page, model, asked, limits), request, x_job)

    @app.post("/api/generations")
    async def generate(asked: GenerationAsked, request: Request, x_job: JobName = None) -> Response:
        """Let a model go on with a text; gives the page of all its tokens. What is written so far, its job says."""
        model = check_sizes(asked, models, limits)
        return await made(asked, partial(generation_page, model, asked, limits), request, x_job)

    @app.post("/api/experiments")
    async def experiment(asked: ExperimentAsked, request: Request, x_job: JobName = None) -> Response:
        """Patch, split an outcome or a score; gives the page of what was found."""
        model = check_sizes(asked, models, limits)
        return await made(asked, partial(experiment_page, model, asked, limits), request, x_job)

    @app.post("/api/corpora")
    async def corpus(asked: CorpusAsked, request: Request, x_job: JobName = None) -> Response:
        """Ask a corpus store; gives the page of the answer."""
        if not stores:
            raise RefusedError(422, "this server was started without a store: regard serve --store FOLDER")
        from regard.server.corpora import corpus_page  # of what servers without a store do without

        return await made(asked, partial(corpus_page, stores, asked, models=models), request, x_job)

    @app.get("/api/runs/{number}")
    async def run(number: Place) -> Response:
        """How far a training run is: words, the loss as a curve, samples, and which traces of the watched sentence."""
        own = run_of(runs, number)
        return JSONResponse(await work.do("regions", lambda _: run_state(own)))

    @app.get("/api/runs/{number}/watched")
    async def watched(
        number: Place, layer: HeadNumber = None, head: HeadNumber = None, part: Part | None = None
    ) -> Response:
        """How the attention of a run's watched sentence forms: its page, and which head that is of."""
        own, asked = run_of(runs, number), Head(layer, head, part)
        found = await work.do("regions", lambda job: watched_page(own, number, asked, shelf, limits, job))
        return Response(found, media_type="application/json")

    @app.get("/api/pages/{name}/file")
    async def file(name: Name) -> Response:
        """The page as one file that works offline. Refused of pages whose weights are computed here."""
        kept = page_of(name)
        if kept.maps:
            raise RefusedError(422, "a page whose weights are computed here is no file: choose a shorter text")
        alone = kept.alone or (lambda: kept.page)
        content = await asyncio.to_thread(lambda: b"".join(html_parts(alone(), shown)))
        headers = {"content-disposition": 'attachment; filename="regard.html"'}
        return Response(content, media_type="text/html", headers=headers)

    @app.get("/api/pages/{name}")
    async def page(name: Name) -> Response:
        """A page that is kept."""
        return Response(page_of(name).data, media_type="application/json", headers={"x-page": name})

    @app.get("/api/pages/{name}/numbers/{at}")
    async def numbers(name: Name, at: Place) -> Response:
        """Numbers of a page: deflated byte planes."""
        return Response(page_of(name).numbers(at), media_type=BYTES)

    @app.get("/api/pages/{name}/panels/{panel}/places")
    async def places(name: Name, panel: Place, first: PlaceNumber = 0, count: Count = 1) -> dict[str, Any]:
        """What points or rows of a panel are: places in a store's texts, each with the words around it."""
        found = page_of(name).places_of(panel)
        return {"total": len(found), "places": await work.do("regions", lambda _: found.told(first, count))}

    @app.get("/api/pages/{name}/panels/{panel}/places/{number}/text")
    async def passage(
        name: Name, panel: Place, number: Place, request: Request, x_job: JobName = None
    ) -> dict[str, Any]:
        """The text that a place was read in, and which of this server's models reads it."""
        found = page_of(name).places_of(panel)
        return await work.do("model", lambda _: found.passage(number, models), x_job, request.is_disconnected)

    @app.post("/api/pages/{name}/calls/{call}/pass")
    async def whole_pass(name: Name, call: Place, request: Request, x_job: JobName = None) -> dict[str, bool]:
        """Make the pass over a served matrix, after which its tiles can be asked for."""
        found = page_of(name).map(call)
        if not found.ready:
            await work.do(
                "model", lambda job: found.prepare(job.advance), x_job, request.is_disconnected, f"{name} {call}"
            )
        return {"ready": True}

    @app.get("/api/pages/{name}/calls/{call}/tiles/{level}/{row}/{col}")
    async def tile(
        name: Name,
        call: Place,
        level: Annotated[int, Path(ge=0, le=40)],
        row: Place,
        col: Place,
        head: HeadNumber = None,
    ) -> Response:
        """128 × 128 means of 2^level × 2^level weights, float32, in C order."""
        found = page_of(name).map(call)
        return await numbers_of(lambda _: found.tile(head, level, row, col))

    @app.get("/api/pages/{name}/calls/{call}/rows/{query}")
    async def row_of(name: Name, call: Place, query: Place, head: HeadNumber = None) -> Response:
        """What a query gives to every key, float32."""
        found = page_of(name).map(call)
        return await numbers_of(lambda _: found.row(head, query))

    @app.get("/api/pages/{name}/calls/{call}/columns/{key}")
    async def column_of(name: Name, call: Place, key: Place, head: HeadNumber = None) -> Response:
        """What a key gets from every query, float32."""
        found = page_of(name).map(call)
        return await numbers_of(lambda _: found.column(head, key))

    @app.get("/api/jobs/{name}")
    async def progress(name: Name) -> dict[str, Any]:
        """How far a job is: the share that is done, and whether it waits. One not known has not come yet."""
        asker = work.asker(name)
        if asker is None:
            return {"known": False, "done": 0.0, "waits": True, "said": ""}
        return {"known": True, "done": asker.job.done, "waits": asker.job.waits, "said": asker.job.said}

    @app.delete("/api/jobs/{name}")
    async def stop(name: Name) -> dict[str, bool]:
        """Stop a job."""
        asker = work.asker(name)
        if asker is not None:
            asker.stop()
        return {"stopped": asker is not None}

    async def made(
        asked: Question,
        make: Callable[[Job], Kept],
        request: Request,
        job: str | None,
    ) -> Response:
        """The page of what was asked for; the same question is answered once."""
        question = json.dumps([type(asked).__name__, asked.model_dump()], sort_keys=True)
        name = hashlib.sha256(question.encode("ascii")).hexdigest()[:24]
        kept = shelf.find(name)
        if kept is None:
            kept = await work.do("model", make, job, request.is_disconnected, question=name)
            shelf.put(name, kept)
        return Response(kept.data, media_type="application/json", headers={"x-page": name})

    async def numbers_of(read: Callable[[Job], np.ndarray]) -> Response:
        found = await work.do("regions", read)
        return Response(np.ascontiguousarray(found, "<f4").tobytes(), media_type=BYTES)

    return app


def _refusals(app: FastAPI) -> None:
    """Answer every error as {"error": line}: 4xx for what was asked, 500 for what is a fault of ours."""

    @app.exception_handler(RefusedError)
    async def refused(_: Request, error: RefusedError) -> JSONResponse:
        return _line(error.status, error.line)

    @app.exception_handler(RegardError)
    async def wrong(_: Request, error: RegardError) -> JSONResponse:
        return _line(422, str(error))

    @app.exception_handler(RequestValidationError)
    async def malformed(_: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"][1:] or first["loc"]))
        return _line(422, f"{place}: {first['msg']}")

    @app.exception_handler(HTTPException)
    async def other(_: Request, error: HTTPException) -> JSONResponse:
        return _line(error.status_code, str(error.detail))

    @app.exception_handler(Exception)
    async def fault(request: Request, error: Exception) -> JSONResponse:
        log.error("%s %s: %r", request.method, request.url.path, error)
        return _line(500, f"a fault of this server: {type(error).__name__}")


def _line(status: int, line: str) -> JSONResponse:
    shown = " ".join(line.split()).encode("utf-8", "backslashreplace").decode()
    return JSONResponse({"error": shown}, status)
