"""The reason that is printed has the figures of the page that it names."""

import re

import pytest

import regard
from regard.explain.causes.token_rankings import (
    AGREEMENTS,
    MODELS,
    PAGE,
    TOKENS_BY,
    check_tokens_by,
    token_ranking_reason,
)
from tests.support import ROOT

ROWS = {
    "edges": "cutting the word's own edges",
    "contribution": "contribution, share",
    "weight": "attention weight, mean of layers",
}


def test_the_figures_are_those_of_the_page() -> None:
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    (head,) = re.findall(r"^\| method \| (.*) \| what it takes \|$", page, re.M)
    columns = {"effect": ("MiniLM, moved",), "divergence": ("SmolLM2", "opus-mt")}
    for by, headings in columns.items():
        assert tuple(each.partition(",")[0] for each in headings) == MODELS[by]
        places = [head.split(" | ").index(each) for each in headings]
        for tokens_by, name in ROWS.items():
            cells = re.findall(rf"^\| {re.escape(name)} \| (.*) \|$", page, re.M)[0].split(" | ")
            means = tuple(float(re.match(r"\**(-?[\d.]+)", cells[place])[1]) for place in places)
            assert means == AGREEMENTS[by][tokens_by], (name, by)


@pytest.mark.parametrize("by", ["effect", "divergence"])
@pytest.mark.parametrize("tokens_by", TOKENS_BY)
def test_the_reason_names_the_page_and_has_every_figure(tokens_by, by) -> None:
    said = token_ranking_reason(tokens_by, by)
    assert said.endswith(f"{PAGE})")
    assert "\n" not in said
    assert ("measured" in said) == (tokens_by in ("removal", "edges"))
    for name, figures in AGREEMENTS[by].items():
        assert f"{name} {' and '.join(f'{each:.2f}' for each in figures)}" in said


def test_what_tokens_are_not_ranked_by() -> None:
    with pytest.raises(regard.RegardError, match="tokens_by: given 'rollout', needs one of 'removal'"):
        check_tokens_by("rollout")
