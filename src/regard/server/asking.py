"""Answer what is asked: texts are traced, gone on with, experimented on, a corpus is asked; and say how far each is."""

import hashlib
import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from regard.models.model import Model
from regard.server.asked import (
    CorpusAsked,
    ExperimentAsked,
    GenerationAsked,
    JobName,
    Name,
    PictureAsked,
    Question,
    TraceAsked,
)
from regard.server.kept import Kept, Shelf
from regard.server.traces import check_sizes, experiment_page, generation_page, picture_bytes, picture_page, trace_page
from regard.server.work import Job, Limits, RefusedError, Work

if TYPE_CHECKING:
    from regard.corpus.store import Store


def asking_routes(
    models: Sequence[Model], stores: "Sequence[Store]", limits: Limits, work: Work, shelf: Shelf
) -> APIRouter:
    """Make the routes of questions to models and stores, and of what answers.

    models, stores: what may be asked, by number. shelf: where the answers' pages come to.
    """
    routes = APIRouter()

    async def made(asked: Question, make: Callable[[Job], Kept], request: Request, job: str | None) -> Response:
        """The page of what was asked for; the same question is answered once."""
        question = json.dumps([type(asked).__name__, asked.model_dump()], sort_keys=True)
        name = hashlib.sha256(question.encode("ascii")).hexdigest()[:24]
        kept = shelf.find(name)
        if kept is None:
            kept = await work.do("model", make, job, request.is_disconnected, question=name)
            shelf.put(name, kept)
        return Response(kept.data, media_type="application/json", headers={"x-page": name})

    @routes.post("/api/traces")
    async def trace(asked: TraceAsked, request: Request, x_job: JobName = None) -> Response:
        """Trace texts; gives the page, whose id is X-Page."""
        model = check_sizes(asked, models, limits)
        return await made(asked, partial(trace_page, model, asked, limits), request, x_job)

    @routes.post("/api/pictures")
    async def picture(asked: PictureAsked, request: Request, x_job: JobName = None) -> Response:
        """Look at a picture; gives the page of where the model looks."""
        model = check_sizes(asked, models, limits)
        make = partial(picture_page, model, asked, picture_bytes(asked, limits), limits)
        return await made(asked, make, request, x_job)

    @routes.post("/api/generations")
    async def generate(asked: GenerationAsked, request: Request, x_job: JobName = None) -> Response:
        """Let a model go on with a text; gives the page of all its tokens. What is written so far, its job says."""
        model = check_sizes(asked, models, limits)
        return await made(asked, partial(generation_page, model, asked, limits), request, x_job)

    @routes.post("/api/experiments")
    async def experiment(asked: ExperimentAsked, request: Request, x_job: JobName = None) -> Response:
        """Patch, split an outcome or a score; gives the page of what was found."""
        model = check_sizes(asked, models, limits)
        return await made(asked, partial(experiment_page, model, asked, limits), request, x_job)

    @routes.post("/api/corpora")
    async def corpus(asked: CorpusAsked, request: Request, x_job: JobName = None) -> Response:
        """Ask a corpus store; gives the page of the answer."""
        if not stores:
            raise RefusedError(422, "this server was started without a store: regard serve --store FOLDER")
        from regard.server.corpora import corpus_page  # of what servers without a store do without

        return await made(asked, lambda _: corpus_page(stores, asked, models), request, x_job)

    @routes.get("/api/jobs/{name}")
    async def progress(name: Name) -> dict[str, Any]:
        """How far a job is: the share that is done, and whether it waits. One not known has not come yet."""
        asker = work.asker(name)
        if asker is None:
            return {"known": False, "done": 0.0, "waits": True, "said": ""}
        return {"known": True, "done": asker.job.done, "waits": asker.job.waits, "said": asker.job.said}

    @routes.delete("/api/jobs/{name}")
    async def stop(name: Name) -> dict[str, bool]:
        """Stop a job."""
        asker = work.asker(name)
        if asker is not None:
            asker.stop()
        return {"stopped": asker is not None}

    return routes
