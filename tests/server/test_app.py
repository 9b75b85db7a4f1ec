"""What a server says of itself, and the program that it serves."""

from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.support import RIVER
from tests.support.web_pages import SCRIPT, STYLE

pytestmark = pytest.mark.usefixtures("stand_in")


def test_the_state_says_what_there_is(client: TestClient, minilm: Any) -> None:
    state = client.get("/api/state").json()
    assert state["models"] == [{"name": minilm.name, "pairs": False, "limit": 512, "writes": False, "pictures": None}]
    assert state["texts"] == [RIVER]
    assert state["pages"] == [{"id": "file-0", "title": "a map"}]


def test_the_page_and_its_program_are_served(client: TestClient) -> None:
    assert 'src="/live.js"' in client.get("/").text
    script, style = (client.get(path) for path in ("/live.js", "/live.css"))
    assert (script.text, style.text) == (SCRIPT, STYLE)
    assert script.headers["content-type"].startswith("text/javascript")
    assert style.headers["content-type"].startswith("text/css")
