"""A server with a text model and a map, and one with a store; a page that shows nothing stands in for the real one."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import torch
from starlette.testclient import TestClient

from regard import attend
from regard.server.app import make_app
from regard.server.tasks import Limits
from regard.server.traces import map_page
from tests.support import RIVER
from tests.support.served import served
from tests.web.conftest import Opened

EXPECTED = "the server responded with a status of 4"  # Chromium tells of every refusal


@pytest.fixture(scope="module")
def weights() -> Any:
    draws = torch.Generator().manual_seed(0)
    query, key, value = (torch.randn(2, 301, 16, generator=draws) for _ in range(3))
    return attend(query, key, value, causal=True).weights


@pytest.fixture(scope="module")
def client(minilm: Any, weights: Any, stand_in: None) -> Iterator[TestClient]:
    app = make_app([minilm], [RIVER], [map_page(weights, "a map")], Limits(texts=3, characters=5000))
    with TestClient(app, raise_server_exceptions=False) as found:
        yield found


@pytest.fixture
def asking(minilm: Any, bank_store: Any, stand_in: None) -> Iterator[TestClient]:
    """A server with a store and the model that made it."""
    with TestClient(make_app([minilm], stores=[bank_store]), raise_server_exceptions=False) as found:
        yield found


@pytest.fixture
def serve() -> Iterator[Callable[..., tuple[subprocess.Popen[str], int, str]]]:
    """Run servers of the test's own, which end after its pages are closed: Chromium tells of answers cut off."""
    with ExitStack() as servers:
        yield lambda *arguments: servers.enter_context(served(*arguments))


@pytest.fixture
def visit(chromium: Any, serve: Any) -> Iterator[Callable[..., Opened]]:
    """Open a link: visit(link, width=, height=). A page whose console complained, but of a refusal, fails its test."""
    opened: list[Opened] = []

    def go(link: str, width: int = 1000, height: int = 900, refusal: str = EXPECTED) -> Opened:
        tab = chromium.new_context(viewport={"width": width, "height": height}).new_page()
        page = Opened(tab, Path())
        tab.on("console", lambda m: page.errors.append(m.text) if m.type == "error" and refusal not in m.text else None)
        tab.on("pageerror", lambda error: page.errors.append(str(error)))
        opened.append(page)
        tab.goto(link)
        return page

    yield go
    for page in opened:
        page.tab.context.close()
        assert page.errors == []
