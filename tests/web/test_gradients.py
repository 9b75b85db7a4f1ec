"""The page of tokens' scores by gradients, held against the scores."""

from typing import Any

import pytest
import torch

from regard.explain.causes.gradients import TokenAttribution
from regard.explain.findings.attribution import attribution_findings
from regard.text.tokens import encoded_ids
from regard.web.gradients import gradients_page
from regard.web.html_file import script_json


def made(**changes: Any) -> TokenAttribution:
    given: dict[str, Any] = {
        "method": "integrated gradients", "outcome_name": "cosine of “bank” and river", "outcome": 0.9,
        "baseline": -0.1, "gap": 2e-5, "steps": 32, "scores": torch.tensor([0.25, -0.5, 1.25], dtype=torch.float64),
        "tokens": tuple(encoded_ids([5, 6, 7]).tokens), "texts": ("",), "sides": (3,),
        "norms": torch.tensor([1.0, 1.0, 2.0], dtype=torch.float64),
    }  # fmt: skip
    return TokenAttribution(**(given | changes))


def test_every_token_has_its_score_and_the_gap_is_told() -> None:
    found = made()
    page: Any = gradients_page(found).data()
    script_json(page)
    assert page["title"] == "What each token brings to the cosine of “bank” and river"
    assert page["findings"] == attribution_findings(found)
    assert page["findings"][2].endswith("a gap of 2.0e-05.")
    names = [token.text for token in found.tokens]
    assert f"most was brought by “{names[2].strip()}” (2) (+1.25) and" in page["findings"][1]
    strip, table = page["panels"]
    assert (strip["tokens"], strip["values"]) == (names, [0.25, -0.5, 1.25])
    assert table["rows"] == [[names[2], 2, 1.25], [names[1], 1, -0.5], [names[0], 0, 0.25]]


def test_without_a_baseline_and_of_two_texts() -> None:
    page: Any = gradients_page(made(method="gradient x input", baseline=None, gap=None, sides=(1, 2))).data()
    assert "at this text alone" in page["findings"][-1]
    source, target, table = page["panels"]
    assert (source["values"], target["values"]) == ([0.25], [-0.5, 1.25])
    assert (source["name"], target["name"]) == ("Tokens of the source", "Tokens of the target")
    assert [row[1:] for row in table["rows"]] == [
        ["target", 1, 1.25], ["target", 0, -0.5], ["source", 0, pytest.approx(0.25)],
    ]  # fmt: skip
