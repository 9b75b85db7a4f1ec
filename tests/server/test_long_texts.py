"""Pages of long texts: tokens and rules are there, numbers are not."""

from pathlib import Path
from typing import Any

import pytest
import torch

from regard import attend
from regard.attention.masks import function
from regard.errors import RegardError
from regard.server.long_texts import long_page, map_page
from regard.server.requests import TraceRequest
from regard.server.serve import open_file
from regard.server.tasks import Limits, Task
from regard.server.traces import trace_page
from tests.support import RIVER
from tests.support.own_models import opened

TEXT = "A man is fishing on a river"


def test_a_text_has_its_tokens_and_a_served_call_for_each_layer() -> None:
    trace = opened("gpt").trace(TEXT)
    kept = long_page([trace])
    data = kept.page.data()
    texts, calls = data["texts"], data["calls"]
    assert isinstance(texts, list)
    assert isinstance(calls, list)
    assert texts[0]["tokens"]["text"] == [token.text for token in trace.tokens]
    assert len(calls) == len(trace.attention) == len(kept.maps)
    for number, call in enumerate(calls):
        heads, length, _ = trace.attention[number].shape
        assert (call["served"], call["heads"], call["query"]["values"]["shape"][1]) == (True, heads, length)
        assert call["mask"] == {"kind": "band", "low": None, "high": 0}
        assert kept.map(number).weights is trace.attention[number]
    assert kept.page.numbers.blobs == []


def test_a_long_text_opens_with_a_token_chosen() -> None:
    gpt = opened("gpt")
    plain, other = gpt.trace(TEXT), gpt.trace("The bank of a river")
    data = long_page([plain]).page.opening
    assert plain.tokens[data["token"]].text.strip() == "river"  # its last word
    data = long_page([plain, other], "bank").page
    assert data.opening["token"] == other.word("bank")[0].tokens[0]
    assert data.calls[data.opening["call"]]["queries"] == 1  # of the text that has it
    assert long_page([plain], "money").page.opening["token"] is not None


def test_windows_are_refused(minilm: Any) -> None:
    with pytest.raises(RegardError, match="leave out windows"):
        long_page([minilm.trace(RIVER, window=6)])


@pytest.mark.parametrize("size", [7, 11])
def test_a_map_without_a_text_has_numbers_for_names(size: int) -> None:
    query, key = torch.randn(2, 7, 4), torch.randn(2, size, 4)
    weights = attend(query, key, key, mask=function(lambda i, j: i + j > 2)).weights
    data = map_page(weights, "a map").page.data()
    texts, calls = data["texts"], data["calls"]
    assert isinstance(texts, list)
    assert isinstance(calls, list)
    assert [len(text["tokens"]["text"]) for text in texts] == ([7] if size == 7 else [7, 11])
    assert calls[0]["keys"] == len(texts) - 1
    assert data["opening"] == {"view": "map", "call": 0, "head": 0, "token": 6}  # its last row: none opens empty
    assert calls[0]["mask"] is None  # one that is no band is applied where the weights are computed


def test_saved_maps_and_traces_are_opened_and_nothing_else(tmp_path: Path, bank: Any) -> None:
    query = torch.randn(1, 2, 9, 4)
    weights = attend(query, query, query).weights
    weights.save(tmp_path / "map.safetensors")
    kept = open_file(tmp_path / "map.safetensors", Limits())
    assert kept.page.title == "map.safetensors"
    torch.testing.assert_close(kept.map(0).weights.dense(), weights.dense()[0])
    bank[0].save(tmp_path / "trace.safetensors")
    small = open_file(tmp_path / "trace.safetensors", Limits())
    assert small.maps == {}
    assert small.page.numbers.blobs
    long = open_file(tmp_path / "trace.safetensors", Limits(whole=5))
    assert len(long.maps) == 6
    (tmp_path / "text.txt").write_text("no trace")
    for name in ("text.txt", "nothing.safetensors"):
        with pytest.raises(RegardError, match=name):
            open_file(tmp_path / name, Limits())


def test_a_long_text_is_traced_without_what_its_page_does_not_show(monkeypatch: Any) -> None:
    model, kept = opened("gpt"), []
    trace = type(model).trace

    def watched(*args: Any, **options: Any) -> Any:
        kept.append(options["attention_outputs"])
        return trace(*args, **options)

    monkeypatch.setattr(type(model), "trace", watched)
    tokens = len(model.trace(TEXT, attention_outputs=True).tokens)
    for whole, served in ((tokens, 0), (tokens - 1, len(model.trace(TEXT, attention_outputs=True).attention))):
        page = trace_page(model, TraceRequest(texts=[TEXT]), Limits(whole=whole), Task(60.0))
        assert (len(page.maps), kept[-1]) == (served, served == 0)


def test_a_long_text_of_no_unicode_is_refused() -> None:
    with pytest.raises(RegardError, match="surrogate"):
        trace_page(opened("gpt"), TraceRequest(texts=[TEXT + "\ud800"]), Limits(whole=5), Task(60.0))
