"""Tokens that nobody looks at: the numbers by plain loops over dense weights, what is refused, and every medium."""

import csv
import inspect
import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import torch

from regard.errors import RegardError
from regard.questions.unseen import answer
from regard.questions.unseen.answer import Unseen, unseen
from regard.questions.unseen.asked import UnseenAsked
from regard.server.asked import ExperimentAsked
from regard.server.experiments import experiment_page
from regard.server.limits import Limits
from regard.server.work import Job
from tests.support import run_all_in_process
from tests.support.own_models import TEXTS, no_checks_of_annotations, opened, pair

__all__ = ["no_checks_of_annotations"]  # the fixture


@pytest.mark.parametrize("block", [1, 100, 1 << 22])
@pytest.mark.parametrize("kind", ["gpt", "bert", "alibi"])
def test_numbers_are_those_of_plain_loops(kind: str, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer, "BLOCK", block)
    trace = opened(kind).trace(TEXTS[0])
    maps, size = [weights.dense().double() for weights in trace.attention], len(trace.tokens)
    found = unseen(trace, 0.2)
    heads = [(n, h) for n, weights in enumerate(maps) for h in range(len(weights))]
    assert (found.heads, len(found.calls)) == (len(heads), len(maps))
    for k in range(size):
        others = [q for q in range(size) if q != k and (kind == "bert" or q > k)]  # others are causal
        assert found.may[k] == len(others)
        if not others:
            assert (k, found.most[k], found.mean[k], found.head[k]) == (size - 1, None, None, None)
            continue
        given = {q: sum(float(maps[n][h, q, k]) for n, h in heads) / len(heads) for q in others}
        single = {(n, h, q): float(maps[n][h, q, k]) for n, h in heads for q in others}
        most, head, mean = found.most[k], found.head[k], found.mean[k]
        assert most is not None
        assert head is not None
        assert most.weight == pytest.approx(max(given.values())) == pytest.approx(given[most.query])
        assert head.weight == max(single.values()) == single[head.layer, head.head, head.query]  # type: ignore[index]
        assert mean == pytest.approx(sum(given.values()) / len(others))
        for n, weights in enumerate(maps):
            assert found.layers[n][k] == pytest.approx(max(float(weights[:, q, k].mean()) for q in others))
    assert found.unseen == [k for k in found.order if (look := found.most[k]) and look.weight < 0.2]
    assert 0 < len(found.unseen) < len(found.order)


def test_where_no_other_token_may_look_a_token_is_told_apart() -> None:
    model = opened("gpt")
    trace = model.trace(TEXTS[0])
    found, last = unseen(trace, 1.0), len(trace.tokens) - 1
    assert sorted(found.unseen) == list(range(last))
    assert found.findings()[-1] == f"No other token may look at “.” ({last}): it is not counted."
    row = found.rows()[last]
    assert (row["unseen"], row["may_look"], row["most"], row["layer"]) == (False, 0, None, None)
    alone = unseen(model.trace("bank"))
    assert alone.findings() == ["No other token may look at “bank” (0): it is not counted."]
    assert alone.plot() is not None
    assert len(alone.page().panels) == 3


@pytest.mark.usefixtures("no_checks_of_annotations")
def test_bad_input_is_refused() -> None:
    model, both = opened("bert"), pair()
    trace = both.trace(TEXTS[0], target="Un homme")
    with pytest.raises(RegardError, match="is an encoder-decoder: give its trace's .encoder or .decoder"):
        unseen(trace)  # type: ignore[arg-type]
    assert unseen(trace.encoder).heads == 6
    with pytest.raises(RegardError, match="^unseen: .* is an encoder-decoder, it is for models of one stack"):
        UnseenAsked().answer(both, [trace])
    for least in (0.0, -1.0, 1.5, float("nan")):
        with pytest.raises(RegardError, match="least: given .*, needs more than 0 and 1 at most"):
            UnseenAsked(least=least).check(1)
    broken = model.trace(TEXTS[0])
    broken.attention[1].query[0, 1, 2] = torch.nan
    with pytest.raises(RegardError, match=r"weights that are no numbers \(NaN\)"):
        unseen(broken)
    broken.attention = ()
    with pytest.raises(RegardError, match="holds no attention"):
        unseen(broken)


def test_the_function_has_the_fields_as_its_parameters() -> None:
    assert {each.name for each in fields(UnseenAsked)} <= set(inspect.signature(unseen).parameters)


def test_the_command_tells_it_everywhere(tmp_path: Path) -> None:
    model = opened("bert")
    model.save(tmp_path / "m")
    pair().save(tmp_path / "pairs")
    (tmp_path / "pairs" / "model.safetensors").write_bytes(b"no weights: it is refused before they are read")
    call = ["unseen", TEXTS[0], "--model", "m"]
    files = ["--json", "a.json", "--csv", "a.csv", "--html", "a.html", "--figure", "a.png"]
    done = run_all_in_process(
        tmp_path,
        [
            [*call, "--least", "0.2", *files],
            [*call, "--least", "2"],
            [*call, TEXTS[1]],
            [*call[:3], "pairs"],
            ["unseen"],
        ],
    )
    found = unseen(model.trace(TEXTS[0]), 0.2)
    (code, out, error), *refused = done
    assert code == 0, error
    assert " ".join(found.findings()[0].split()) in " ".join(out.replace("•", " ").split())
    told = json.loads((tmp_path / "a.json").read_text("utf-8"))
    assert (told["format"], told["findings"], told["rows"]) == ("regard unseen", found.findings(), found.rows())
    with (tmp_path / "a.csv").open(encoding="utf-8", newline="") as file:
        assert [row["token"] for row in csv.DictReader(file)] == [str(k) for k in range(len(found.tokens))]
    assert (tmp_path / "a.html").stat().st_size > 1000 < (tmp_path / "a.png").stat().st_size
    for (code, _, error), says in zip(
        refused,
        [
            "--least: given 2, needs more than 0",
            "given 2 texts, needs one",
            "pairs is an encoder-decoder",
            "regard unseen TEXT\n",
        ],
        strict=True,
    ):
        assert code == 2
        assert says in error


def test_the_library_and_the_server_tell_the_same() -> None:
    model = opened("bert")
    found = UnseenAsked(least=0.2).answer(model, [model.trace(TEXTS[0])])
    assert isinstance(found, Unseen)
    assert found.findings()[0] in " ".join(str(found).replace("•", " ").split())
    assert {axes.get_title() for axes in found.plot().axes} >= {panel.title for panel in found.panels()[:2]}
    assert list(found.to_frame()["most"]) == [look and look.weight for look in found.most]
    asked: dict[str, Any] = {"experiment": {"kind": "unseen", "texts": [TEXTS[0]], "asked": {"least": 0.2}}}
    job = Job(1000.0)
    kept = experiment_page(model, ExperimentAsked.model_validate_json(json.dumps(asked)), Limits(), job)
    assert found.findings() == kept.page.findings
