"""Estimates of patches, against small patches and against the measured sweep."""

from typing import Any

import numpy as np
import pytest

from regard.errors import RegardError
from regard.explain.causes.outcomes import cosine
from tests.support import generation

CLEAN, CORRUPTED = "The man sat by the river bank.", "The man sat by the money bank."


def test_it_ranks_patches_as_the_measured_sweep_does(minilm: Any) -> None:
    outcome = cosine("bank", minilm.trace(CLEAN)["bank"])
    found = minilm.attribution_patching(CLEAN, CORRUPTED, outcome)
    measured = minilm.patch_sweep(CLEAN, CORRUPTED, outcome)
    assert (found.layers, found.columns) == (measured.layers, measured.columns)
    assert (found.run, found.source) == pytest.approx((measured.run, measured.source), abs=1e-5)
    one, other = (np.array(each.outcomes) - each.run for each in (found, measured))
    assert np.corrcoef(one.ravel(), other.ravel())[0, 1] > 0.8
    same = [n for n, name in enumerate(found.columns) if name.split()[0] not in ("river", "money")]
    np.testing.assert_allclose(one[0, same], 0, atol=1e-6)  # nothing differs there before the first layer
    assert "estimated by gradients" in found.outcome
    word = CLEAN.split().index("river") + 1
    told = found.to_json()
    assert (told["method"], "method" in measured.to_json()) == ("attribution-patching", False)
    assert [each.model for each in found.about.statuses] == [minilm.name] * 2
    assert (told["texts"], len(told["statuses"])) == ([CLEAN, CORRUPTED], 2)  # type: ignore[arg-type]
    assert found.status == found.about.statuses[1]  # the corrupted text is the one that is read
    assert found.given == measured.given == ((0, word, "elsewhere"), (6, word + 1, "read"))


def test_texts_of_different_length_are_refused(minilm: Any) -> None:
    outcome = cosine("bank", minilm.trace(CLEAN)["bank"])
    with pytest.raises(RegardError, match="texts of one length are needed"):
        minilm.attribution_patching(CLEAN, "A bank.", outcome)


def test_it_is_for_texts(minilm: Any) -> None:
    model = generation.opened("llama")
    with pytest.raises(RegardError, match="no tokenizer"):
        model.attribution_patching("a", "b", cosine(1, minilm.trace("A text.").last_hidden_state[0]))
