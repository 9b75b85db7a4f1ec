"""A thousand requests made up from the server's own description: refused or answered, never a fault of ours."""

from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings

from regard import attend
from regard.server.app import make_app
from regard.server.tasks import Limits
from regard.server.traces import map_page
from tests.support.own_models import opened
from tests.support.web_pages import build_nothing

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed: make test-all brings it")
pytestmark = pytest.mark.long
REQUESTS = 1000


def test_no_request_is_a_fault(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    build_nothing(tmp_path / "built", monkeypatch)
    query = torch.randn(2, 67, 8)
    limits = Limits(characters=500, texts=2, seconds=20.0)
    maps = [map_page(attend(query, query, query).weights, "a map")]
    app = make_app([opened("gpt")], [], maps, limits)
    schema = schemathesis.openapi.from_asgi("/openapi.json", app)
    operations = [found.ok() for found in schema.get_all_operations()]
    modes = (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE)
    each = -(-REQUESTS // (len(operations) * len(modes)))
    statuses: list[int] = []
    for operation in operations:
        for mode in modes:
            if mode is modes[1] and not (operation.path_parameters or operation.body):
                continue  # nothing about it can be wrong

            @settings(max_examples=each, deadline=None, suppress_health_check=list(HealthCheck), database=None)
            @given(case=operation.as_strategy(generation_mode=mode))
            def ask(case: Any) -> None:
                answer = case.call()
                statuses.append(answer.status_code)
                assert answer.status_code < 500, (case.as_curl_command(), answer.text)
                if answer.status_code >= 400 and answer.status_code != 405:
                    assert answer.json()["error"]

            ask()
    assert len(statuses) >= 0.8 * REQUESTS
    assert {200, 404, 422} <= set(statuses)
