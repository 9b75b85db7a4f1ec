"""A sweep is as many single patches: each cell against a trace of its own, and the ends of the scale."""

import math
from typing import Any

import numpy as np
import pytest
import torch
import transformers

import regard
from regard.capture import many_ablations
from regard.capture.build_trace import FROM_WITHIN, WHOLE_TEXT
from regard.capture.interventions.activations import What
from regard.errors import RegardError
from regard.explain.causes.outcomes import Outcome, cosine, logit_difference
from regard.questions.patch.sweep import trivial_patches
from regard.text import tokenizers
from tests.support import generation, own_models

RIVER, MONEY = "We sat on the quiet river bank.", "We took it from a money bank."
ONE_WORD = "We sat on the quiet money bank."  # differs from RIVER in one word
CLEAN, CORRUPTED = "The man sat by the river bank.", "The man sat by the money bank."


@pytest.fixture(scope="module")
def river(minilm):
    return minilm.trace(RIVER)


def test_each_cell_is_one_patch(minilm, river) -> None:
    outcome = cosine("bank", river["bank"])
    for what in ("hidden_states", "feed_forward"):
        found = regard.patch_sweep(minilm, RIVER, MONEY, outcome, what=what)
        first = ["input"] if what == "hidden_states" else []
        assert (found.layers, len(found.columns), found.by) == ((*first, *range(6)), 10, "positions")
        for layer, place in ((2, 7), (5, 6), (5, 7), (0, 1)):
            patch = regard.patch(what, layer=layer, at=place, source=river)
            expected = outcome.of(minilm.trace(MONEY, interventions=[patch]))
            assert found.outcomes[found.layers.index(layer)][place] == pytest.approx(expected, abs=1e-5)
    assert found.columns[7] == "bank 7"


def test_heads_in_both_directions(minilm, river) -> None:
    money = minilm.trace(MONEY)
    outcome = cosine("bank", river["bank"])
    for direction, text, source in (("denoising", MONEY, river), ("noising", RIVER, money)):
        found = regard.patch_sweep(
            minilm, RIVER, MONEY, outcome, what="values", direction=direction, layers=[1, 4], at=["bank", 6]
        )
        assert (found.layers, found.columns, found.by) == ((1, 4), tuple(f"head {n}" for n in range(12)), "heads")
        patch = regard.patch("values", layer=4, head=7, at=["bank", 6], source=source)
        expected = outcome.of(minilm.trace(text, interventions=[patch]))
        assert found.outcomes[1][7] == pytest.approx(expected, abs=1e-5)
        assert (found.run, found.source) == tuple(
            pytest.approx(outcome.of(each), abs=1e-9) for each in ((money, river) if text == MONEY else (river, money))
        )


def test_the_ends_of_the_scale(minilm, river) -> None:
    """What leaves the last layer at the word is all of the outcome; elsewhere it is nothing of it."""
    found = regard.patch_sweep(minilm, RIVER, MONEY, cosine("bank", river["bank"]), layers=[5])
    assert found.shares[0][7] == pytest.approx(1.0, abs=1e-5)
    assert max(abs(each) for n, each in enumerate(found.shares[0]) if n != 7) <= 1e-5
    assert found.best(1) == [(0, 7)]
    same = regard.patch_sweep(minilm, RIVER, RIVER, cosine("bank", river["bank"]), layers=[5])
    assert all(math.isnan(each) for each in same.shares[0])


def test_texts_of_other_lengths_are_aligned_by_words(minilm, river) -> None:
    other = "The money is in a bank."
    outcome = cosine("bank", river["bank"])
    with pytest.raises(regard.RegardError, match="pass words of both as at="):
        regard.patch_sweep(minilm, RIVER, other, outcome)
    found = regard.patch_sweep(minilm, RIVER, other, outcome, at=["bank", "."], layers=[5])
    assert found.columns == ("“bank”", "“.”")
    assert found.shares[0] == [pytest.approx(1.0, abs=1e-5), pytest.approx(0.0, abs=1e-5)]


def test_a_decoder_and_an_encoder_decoder() -> None:
    model = own_models.opened("llama")
    outcome = logit_difference(model, "bank", "man")
    clean, corrupted = "A man is fishing", "She man is money"
    found = regard.patch_sweep(model, clean, corrupted, outcome, what="head_outputs")
    source = model.trace(clean)
    for layer in (0, 1):
        for head in range(3):
            patch = regard.patch("head_outputs", layer=layer, head=head, source=source)
            expected = outcome.of(model.trace(corrupted, interventions=[patch]))
            assert found.outcomes[layer][head] == pytest.approx(expected, abs=1e-5)
    pair = own_models.pair()
    norm = Outcome("norm", lambda trace: float(trace.sides[-1].last_hidden_state[-1].norm()))
    texts, targets = ("A bank", "A bank"), ("Une banque", "Elle prend")
    crossed = regard.patch_sweep(pair, *texts, norm, what="head_outputs", part="cross", targets=targets, at=[0])
    source = pair.trace(texts[0], target=targets[0])
    patch = regard.patch("head_outputs", layer=1, head=2, at=0, source=source, part="cross")
    expected = norm.of(pair.trace(texts[1], target=targets[1], interventions=[patch]))
    assert crossed.outcomes[1][2] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("what", ["hidden_states", "feed_forward", "values", "head_outputs"])
def test_a_decoder_of_transformers_begins_where_the_patch_is(what: What, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(many_ablations, "PASS_TOKENS", 0)  # else one batch of so short a text costs least
    torch.manual_seed(3)
    words = tokenizers.words(own_models.TEXTS)
    sizes = {"hidden_size": 24, "intermediate_size": 37, "num_hidden_layers": 3, "num_key_value_heads": 2}
    config = transformers.LlamaConfig(**sizes, vocab_size=len(words), num_attention_heads=4, initializer_range=0.3)
    model = regard.load(transformers.LlamaForCausalLM(config), tokenizer=words)
    outcome = logit_difference(model, "bank", "man")
    clean, corrupted = "A man is on a river bank.", "She takes money on a river bank."
    found = regard.patch_sweep(model, clean, corrupted, outcome, what=what, by="positions")
    assert FROM_WITHIN in found.status.notes
    source = model.trace(clean)
    for row, layer in enumerate(found.layers):
        for place in range(len(found.columns)):
            patch = regard.patch(what, layer=layer, at=place, source=source)
            expected = outcome.of(model.trace(corrupted, interventions=[patch]))
            assert found.outcomes[row][place] == pytest.approx(expected, abs=1e-5)
    if what in ("values", "head_outputs"):
        heads = regard.patch_sweep(model, clean, corrupted, outcome, what=what, at="river")
        assert FROM_WITHIN in heads.status.notes
        for row, layer in enumerate(heads.layers):
            for head in range(len(heads.columns)):
                patch = regard.patch(what, layer=layer, at="river", source=source, head=head)
                expected = outcome.of(model.trace(corrupted, interventions=[patch]))
                assert heads.outcomes[row][head] == pytest.approx(expected, abs=1e-5)


def test_an_encoder_s_status_says_that_all_tokens_were_computed(minilm, river) -> None:
    found = regard.patch_sweep(minilm, RIVER, MONEY, cosine("bank", river["bank"]), layers=[4, 5])
    assert WHOLE_TEXT in found.status.notes


@pytest.mark.usefixtures("no_checks_of_annotations")
def test_what_cannot_be_swept(minilm, river) -> None:
    outcome = cosine("bank", river["bank"])
    for arguments, says in (
        ({"direction": "both"}, "direction: got 'both', expected 'denoising' or 'noising'"),
        ({"what": "states"}, "what: got 'states', expected one of"),
        ({"by": "heads"}, "by: got 'heads', but hidden_states can be patched by 'positions'"),
        ({"layers": [6]}, r"layers: got \[6\], expected some of input, 0, 1"),
        ({"at": "lake"}, "word 'lake' is not in the text"),
        ({"targets": ("a", "b")}, "targets: .* needs no targets"),
    ):
        with pytest.raises(regard.RegardError, match=says):
            regard.patch_sweep(minilm, RIVER, MONEY, outcome, **arguments)
    with pytest.raises(regard.RegardError, match="outcome: got str, expected an Outcome"):
        regard.patch_sweep(minilm, RIVER, MONEY, "bank")


def test_it_ranks_patches_as_the_measured_sweep_does(minilm: Any) -> None:
    outcome = cosine("bank", minilm.trace(CLEAN)["bank"])
    found = regard.attribution_patching(minilm, CLEAN, CORRUPTED, outcome)
    measured = regard.patch_sweep(minilm, CLEAN, CORRUPTED, outcome)
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
    with pytest.raises(RegardError, match="they must have the same length"):
        regard.attribution_patching(minilm, CLEAN, "A bank.", outcome)


def test_it_is_for_texts(minilm: Any) -> None:
    model = generation.opened("llama")
    with pytest.raises(RegardError, match="no tokenizer"):
        regard.attribution_patching(model, "a", "b", cosine(1, minilm.trace("A text.").last_hidden_state[0]))


def test_where_texts_differ_and_where_the_outcome_is_read(minilm: Any) -> None:
    outcome = cosine("bank", minilm.trace(RIVER)["bank"])
    given = ((0, 0, "elsewhere"), (2, 1, "read"))
    found = regard.patch_sweep(minilm, RIVER, ONE_WORD, outcome, layers=["input", 0, 5], at=[6, 7], direction="noising")
    assert found.given == given
    assert [found.shares[row][column] for row, column, _ in given] == pytest.approx([1.0, 1.0], abs=1e-3)
    assert regard.patch_sweep(minilm, RIVER, ONE_WORD, outcome, what="feed_forward", layers=[5], at=[7]).given == ()


def test_texts_that_differ_twice_and_an_outcome_of_all_tokens(minilm: Any) -> None:
    everywhere = Outcome("mean", lambda trace: trace.last_hidden_state.mean(0).norm(), logits=False)
    twice = RIVER.replace("river", "money").replace("quiet", "noisy")
    assert regard.patch_sweep(minilm, RIVER, twice, everywhere, layers=["input", 5], at=[5, 6, 7]).given == ()


def test_before_the_last_word_of_a_decoder_all_is_the_same() -> None:
    model = own_models.opened("llama")
    outcome = logit_difference(model, "bank", "man")
    found = regard.patch_sweep(model, "A man is on a river", "A man is on a bank", outcome)
    depth, last = len(found.layers), len(found.columns) - 1
    assert found.given == tuple((row, last, "elsewhere") for row in range(depth))
    assert [row[last] for row in found.shares] == pytest.approx([1.0] * depth, abs=1e-3)


def test_of_an_encoder_decoder_what_is_read_across_counts() -> None:
    pair = own_models.pair()
    norm = Outcome("norm", lambda trace: float(trace.sides[-1].last_hidden_state[-1].norm()))
    targets = ("Une rive", "Une rive")
    encoder, decoder = (
        regard.patch_sweep(pair, "A bank", "She bank", norm, part=part, targets=targets)
        for part in ("encoder", "decoder")
    )
    assert encoder.given == ((0, 0, "elsewhere"),)
    assert decoder.given == ((len(decoder.layers) - 1, len(decoder.columns) - 1, "read"),)


def test_a_patch_that_does_not_reach_the_outcome_is_not_listed(minilm: Any) -> None:
    """Some families carry more from layer to layer than hidden states: their patches need not be all of it."""
    run, source = minilm.trace(ONE_WORD), minilm.trace(RIVER)
    places = [((6,), (6,))]
    assert trivial_patches(run, source, None, ["input"], places, [[0.9]], (0.0, 1.0)) == ()
    assert trivial_patches(run, source, None, ["input"], places, [[1.0]], (0.0, 1.0)) == ((0, 0, "elsewhere"),)
    assert trivial_patches(run, source, None, ["input"], places, [[1.0]], (1.0, 1.0)) == ()
    assert torch.equal(run.hidden_states[0][5], source.hidden_states[0][5])
