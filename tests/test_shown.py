"""Objects that print as a few lines, and tables as data frames, in pandas where it is installed."""

import importlib.util
import sys
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import regard
from regard.display.terminal_parts import plain_text_of_parts
from regard.explain.causes.layer_updates import layer_updates
from regard.explain.logits import logit_lens
from regard.explain.weights.head_scores import NAMES, head_scores
from regard.shown import Tabular, to_frame
from tests.support.own_models import opened

PANDAS = importlib.util.find_spec("pandas") is not None


@pytest.fixture
def trace(minilm: Any) -> Any:
    return minilm.trace("a river bank")


@pytest.fixture
def as_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for pandas whose frames are the rows that it is given."""
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=list))


def one_kind(rows: list[dict[str, Any]], *columns: str) -> None:
    """All rows have these columns, in plain Python."""
    assert {tuple(row) for row in rows} == {columns}
    assert {type(value) for row in rows for value in row.values()} <= {int, float, str, bool, type(None)}


def test_head_scores(trace: Any) -> None:
    found = head_scores(trace)
    rows = found.rows()
    one_kind(rows, "layer", "call", "head", *NAMES)
    assert [(row["layer"], row["head"]) for row in rows] == [(n, h) for n in range(6) for h in range(12)]
    assert rows[27]["previous"] == float(found.previous[2, 3])


def test_the_ranking(minilm: Any, trace: Any) -> None:
    found = regard.why(minilm, trace, "bank")
    rows = found.rows()
    measures = (
        "weight",
        "contribution",
        "effect",
        "divergence",
        "part",
        "sink",
        "special",
        "own",
        "logit",
        "probability",
    )
    one_kind(rows, "word", "kind", "name", "token", "layer", "head", *measures)
    assert [row["kind"] for row in rows] == ["token"] * 5 + ["head"] * 72
    assert [row["effect"] for row in rows[5:]] == [cause.effect for cause in found.heads]


def test_layer_updates(trace: Any, tiny_pair: Any) -> None:
    found = layer_updates(trace, "bank")
    (row,) = found[2].rows()
    assert (row["layer"], row["length"], row["cross_share"]) == (2, found[2].length, None)
    assert row["attention_share"] + row["feed_forward_share"] == pytest.approx(1)
    assert row["attention_norm_share"] == found[2].attention.norm_share
    pair = tiny_pair.trace("a river bank", target="la rive")
    (row,) = layer_updates(pair, "rive")[1].rows()
    assert row["attention_share"] + row["cross_share"] + row["feed_forward_share"] == pytest.approx(1)


def test_the_logit_lens() -> None:
    model = opened("llama")
    trace = model.trace("She takes money.")
    found = logit_lens(model, trace, "takes", top=3)
    rows = found.rows()
    one_kind(rows, "occurrence", "token", "at", "state", "place", "id", "candidate", "probability")
    assert [(row["state"], row["place"]) for row in rows] == [(n, k) for n in range(3) for k in (1, 2, 3)]
    assert rows[4]["probability"] == found.layers[1].candidates[1].probability


@pytest.mark.usefixtures("no_checks_of_annotations")
def test_one_table_and_several(trace: Any, as_lists: None) -> None:
    scores, updates = head_scores(trace), layer_updates(trace, "bank")
    assert (
        str(scores) == repr(scores) == plain_text_of_parts(scores.shown(80))
    )  # print and Python's own prompt show the table
    assert repr(to_frame(scores)) == repr(scores.to_frame()) == repr(scores.rows())  # NaN is no equal of itself
    assert to_frame(updates) == [row for update in updates for row in update.rows()]
    assert to_frame(iter(updates)) == to_frame(updates)
    with pytest.raises(regard.RegardError, match="to_frame: got str, expected a result of regard.explain"):
        to_frame(["rows"])  # type: ignore[list-item]
    with pytest.raises(NotImplementedError):
        Tabular().rows()


def test_without_pandas(trace: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    says = r"^to_frame needs pandas, which is not installed: pip install 'regard\[pandas\]'$"
    with pytest.raises(regard.RegardError, match=says):
        head_scores(trace).to_frame()


@pytest.mark.skipif(not PANDAS, reason="pandas is not installed (extra pandas)")
def test_in_pandas(trace: Any) -> None:
    found = head_scores(trace)
    frame = found.to_frame()
    assert list(frame.columns) == ["layer", "call", "head", *NAMES]
    assert torch.equal(torch.tensor(frame["same"].to_numpy()).view(6, 12), found.same)


def test_nothing_prints_whole_tensors_or_texts(minilm) -> None:
    trace = minilm.trace(40 * "A man sat on the river bank. ")
    assert repr(trace).startswith("Trace('A man sat")
    assert repr(trace).endswith("…', 322 tokens, 6 layers, all-MiniLM-L6-v2)")
    assert repr(trace.attention) == "Layers('attention', 6 × LabelledMap)"
    with regard.record() as calls:
        for _ in range(12):
            found = regard.attend(*torch.randn(3, 1, 2, 5, 4))
    kept = "output=Tensor(1, 2, 5, 4), logsumexp=Tensor(1, 2, 5), weights=AttentionMap(1, 2, 5, 5)"
    assert repr(found) == f"Attention({kept}, kernel={found.kernel!r})"
    assert repr(calls).splitlines()[0] == "Calls: 12"
    summary = regard.see("A bank by a river.", word="bank", model=minilm).summary
    for each in (trace, trace.values, trace.attention_outputs[0], calls, calls["", 0], summary, *summary.occurrences):
        lines = [part for line in repr(each).splitlines() for part in range(0, len(line), 120)]
        assert len(lines) <= 10, repr(each)
