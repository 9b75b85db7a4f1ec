"""What may be asked about tokens that nobody looks at: what is refused, and the same answer in every medium."""

import csv
import inspect
import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from regard.errors import RegardError
from regard.questions.unseen.answer import Unseen, unseen
from regard.questions.unseen.asked import UnseenAsked
from regard.server.asked import ExperimentAsked
from regard.server.traces import experiment_page
from regard.server.work import Job, Limits
from tests.support import run_all_in_process
from tests.support.own_models import TEXTS, opened, pair


def test_what_is_refused() -> None:
    both = pair()
    with pytest.raises(RegardError, match="^unseen: .* is an encoder-decoder, it is for models of one stack"):
        UnseenAsked().answer(both, [both.trace(TEXTS[0], target="Un homme")])
    for least in (0.0, -1.0, 1.5, float("nan")):
        with pytest.raises(RegardError, match="least: given .*, needs more than 0 and 1 at most"):
            UnseenAsked(least=least).check(1)
    with pytest.raises(RegardError, match="given 2 texts, needs one"):
        UnseenAsked().check(2)


def test_the_function_has_the_fields_as_its_parameters() -> None:
    assert {each.name for each in fields(UnseenAsked)} <= set(inspect.signature(unseen).parameters)


@pytest.mark.usefixtures("some_page")
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
