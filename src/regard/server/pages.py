"""Give pages that are kept, and what they ask for bit by bit: numbers, places of a corpus, tiles of long matrices."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response

from regard.models.model import Model
from regard.server.asked import HeadNumber, Index, JobName, Name
from regard.server.kept import Kept
from regard.server.tiles import ZoomMap
from regard.server.work import Job, RefusedError, Work
from regard.web.built_page import built_shell, check_page_built
from regard.web.html_file import html_parts

BYTES = "application/octet-stream"

Count = Annotated[int, Query(ge=1, le=500)]  # of places that one request may ask for
FirstIndex = Annotated[int, Query(ge=0, le=1 << 40)]
Level = Annotated[int, Path(ge=0, le=40)]


def page_routes(page_of: Callable[[str], Kept], models: Sequence[Model], work: Work) -> APIRouter:
    """Make the routes of pages by their names. page_of: finds one. models: what reads the texts of a corpus."""
    routes = APIRouter()
    check_page_built()

    @routes.get("/api/pages/{name}/file")
    async def file(name: Name) -> Response:
        """The page as one file that works offline. Refused of pages whose weights are computed here."""
        kept = page_of(name)
        if kept.maps:
            raise RefusedError(422, "a page whose weights are computed here is no file: choose a shorter text")
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
        """What points or rows of a panel are: places in a store's texts, each with the words around it."""
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
        """What a query gives to every key, float32."""
        found = page_of(name).map(call)
        return await numbers_of(lambda _: found.row(head, query))

    @routes.get("/api/pages/{name}/calls/{call}/columns/{key}")
    async def column_of(name: Name, call: Index, key: Index, head: HeadNumber = None) -> Response:
        """What a key gets from every query, float32."""
        found = page_of(name).map(call)
        return await numbers_of(lambda _: found.column(head, key))

    async def passed(name: str, call: int, found: ZoomMap, request: Request, job: str | None = None) -> None:
        def make(own: Job) -> None:
            own.advance(found.done)
            found.prepare(own.advance)

        if not found.ready:
            await work.do("model", make, job, request.is_disconnected, f"{name} {call}")

    async def numbers_of(read: Callable[[Job], np.ndarray]) -> Response:
        found = await work.do("regions", read)
        return Response(np.ascontiguousarray(found, "<f4").tobytes(), media_type=BYTES)

    return routes
