"""Follow training runs: how far each is, in words and as a curve, and how the attention of its watched sentence forms.

The folders are named when the server is started. Nothing is written to them.
"""

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fastapi import APIRouter
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from regard.capture.interventions.names import Part
from regard.display.answer import panel_data
from regard.server.page_cache import CachedPage, PageCache
from regard.server.requests import HeadNumber, Index
from regard.server.tasks import Limits, Task, TaskQueues
from regard.train.evolve.answer import evolution, open_watched
from regard.train.progress import FollowedRun, RunProgress
from regard.train.training import training_of, training_of_log

WATCHED = 64  # watched traces that are read for a page that is made again and again
SAMPLES = 20
Watched = tuple[int | None, int | None, str | None]  # layer, None for any; head, None for the mean; part


def run_routes(runs: Sequence[FollowedRun], limits: Limits, work: TaskQueues, shelf: PageCache) -> APIRouter:
    """Make the routes of training runs, whose pages come to a shelf."""
    routes = APIRouter()

    @routes.get("/api/runs/{number}")
    async def run(number: Index) -> Response:
        """How far a training run is: words, the loss as a curve, samples, and which traces of the watched sentence."""
        own = _run_of(runs, number)
        return JSONResponse(await work.do("regions", lambda _: _run_state(own)))

    @routes.get("/api/runs/{number}/watched")
    async def watched(
        number: Index, layer: HeadNumber = None, head: HeadNumber = None, part: Part | None = None
    ) -> Response:
        """How the attention of a run's watched sentence forms: its page, and which head that is of."""
        own, asked = _run_of(runs, number), (layer, head, part)
        found = await work.do("regions", lambda task: _watched_page(own, number, asked, shelf, limits, task))
        return Response(found, media_type="application/json")

    return routes


def _run_of(runs: Sequence[FollowedRun], number: int) -> FollowedRun:
    """The run of a number. Raises HTTPException where there is none."""
    if number >= len(runs):
        raise HTTPException(404, f"run: given {number}, this server follows {len(runs)}, numbered from 0")
    return runs[number]


def _several(count: int, name: str) -> str:
    return f"{count:,} {name}{'' if count == 1 else 's'}"


def _run_state(run: FollowedRun) -> dict[str, Any]:
    """Say how far a run is now: a small page of numbers and words, whatever its length."""
    now = run.look()
    settings, config = now.info.settings, now.info.config
    log = [row if row["validation"] is None else row | {"validation": _finite(row["validation"])} for row in now.log]
    measured = [each for each in now.log if each["validation"] is not None]
    went = training_of_log(log, config, settings)
    pairs = now.info.kind == "pairs"
    return {
        "name": run.folder.resolve().name,
        "model": f"{_several(config.layers, 'layer')} of {_several(config.heads, 'head')}, {config.d_model} wide, "
        f"{_several(config.vocabulary, 'token')}",
        "sources": [source.name for source in now.info.sources], "going": now.going, "says": _going_words(now),
        "step": now.step, "steps": settings.steps, "left": now.left, "speed": now.speed,
        "rate": log[-1]["rate"] if log else None, "loss": _finite(log[-1]["loss"]) if log else None,
        "validation": [measured[-1]["step"], _finite(measured[-1]["validation"])] if measured else None,
        "findings": went.findings(),
        "curve": panel_data(went.loss()),
        "samples": [{"step": each.step, "text": each.text} for each in reversed(now.samples[-SAMPLES:])],
        "more_samples": now.samples_cut or len(now.samples) > SAMPLES,
        "watched": {
            "mark": now.mark, "count": len(now.watched), "step": now.watched[-1], "layers": config.layers,
            "heads": config.heads, "parts": ["cross", "encoder", "decoder"] if pairs else [],
        } if now.watched else None,
    }  # fmt: skip


def _watched_page(run: FollowedRun, number: int, asked: Watched, shelf: PageCache, limits: Limits, task: Task) -> bytes:
    """Put the page of the watched sentence together, as `regard evolve --html` does, and keep it to be asked for.

    Returns JSON: the page, the name that it is kept by, its last step, which head it is of, and which one formed.

    The page has no more traces than WATCHED, and says so. Where no layer is asked for it is that of the head that
    attends by induction, or the first.
    """
    now = run.look()
    question = f"{run.folder} {now.mark} {asked}"
    watched = open_watched(run.folder, WATCHED)
    layer, head, part = asked
    found = evolution(watched, layer or 0, head, part=part)
    formed = found.formed_head()
    if layer is None and formed is not None:
        found = evolution(watched, *formed, part=part)
    task.go_on()
    name = f"run-{number}-{hashlib.sha256(question.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
    kept = shelf.find(name)
    if kept is None:
        page = replace(found, training=training_of(run.folder)).page()
        if len(watched) < len(now.watched):
            some = f"Of {len(now.watched)} watched traces {len(watched)} are here, evenly, and the last"
            page.status.append(f"{some}: regard evolve has all.")
        kept = CachedPage(page)
        if kept.size > limits.kept:
            raise HTTPException(413, f"the watched traces are too large to be kept: {kept.size:,} bytes")
        shelf.put(name, kept)
    about = {
        "id": name, "step": watched[-1][0], "layer": found.layer, "head": found.head,
        "formed": None if formed is None else list(formed),
    }  # fmt: skip
    return json.dumps(about).encode("ascii")[:-1] + b', "page": ' + kept.data + b"}"


def _finite(loss: float | None) -> float | None:
    return loss if loss is not None and math.isfinite(loss) else None


def _going_words(now: RunProgress) -> str:
    """Say in words whether a run goes on, ended, or stands still."""
    steps = now.info.settings.steps
    at = f"step {now.step:,} of {steps:,}"
    resumed = "There is no checkpoint yet: regard train --resume begins anew."
    if now.checkpoint is not None:
        resumed = f"The newest checkpoint is of step {now.checkpoint:,}: regard train --resume goes on from there."
    if now.going == "trains":
        if now.step == 0:
            return "It has begun; no step is done yet."
        if now.step >= steps:
            return f"All {steps:,} steps are done; the last files are being written."
        left = "" if now.left is None else f", about {run_time_in_words(now.left)} left as the last steps went"
        return f"It trains now: {at}{left}."
    if now.going == "silent":
        nothing = f"wrote nothing for {run_time_in_words(now.silence)}"
        return f"A process holds the folder, but {nothing}: it evaluates or saves for long, or stands still, at {at}."
    if now.going == "ended":
        return f"It ended: all {steps:,} steps are done."
    if now.going == "stopped":
        return f"It was stopped after {at}, and saved there: regard train --resume goes on from there."
    if now.going == "not begun":
        return f"No step is done, and nothing trains into the folder: it was stopped, killed, or failed. {resumed}"
    if now.going == "broken off":
        return f"It broke off after {at} without saving: it was killed, or failed. {resumed}"
    nothing = f"nothing was written for {run_time_in_words(now.silence)}"
    return f"After {at} {nothing}; whether a process trains cannot be told here: the file system has no locks."


def run_time_in_words(seconds: float) -> str:
    """Say a time in the two largest of its units."""
    whole = max(1, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600:,} h {whole % 3600 // 60} min"
