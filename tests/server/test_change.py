"""Sentences on what an ablation changed, against the vectors themselves."""

import re
from typing import Any

import torch

from regard import ablate, edge, head
from regard.server.change import change_sentences
from tests.support import RIVER


def test_the_most_changed_tokens_are_named_with_their_cosines(minilm: Any) -> None:
    before, after = minilm.trace(RIVER), minilm.trace(RIVER, interventions=[ablate(head(0, 3))])
    (line,) = change_sentences(before, after)
    assert line.startswith("ablated: head 3 of layer 0: “")
    cosines = torch.cosine_similarity(before.contextual.double(), after.contextual.double(), dim=-1)
    found = re.findall(r"“([^”]+)” \((\d+)\) (?:leaves the last layer )?at (?:cosine )?(\d\.\d{3})", line)
    assert [int(n) for _, n, _ in found] == cosines.argsort()[:3].tolist()
    for text, n, shown in found:
        assert text == before.tokens[int(n)].text
        assert abs(float(shown) - float(cosines[int(n)])) <= 5.1e-4


def test_only_what_changed_is_named(minilm: Any) -> None:
    before = minilm.trace(RIVER)
    assert change_sentences(before, before) == []
    last = minilm.trace(
        RIVER, interventions=[ablate(edge(1, 2, layers=5))]
    )  # reaches no other token behind the last layer
    (line,) = change_sentences(before, last)
    assert line.count("“") == 1
    assert "(1)" in line
