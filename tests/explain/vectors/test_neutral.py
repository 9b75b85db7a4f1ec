"""A word in neutral sentences beside reference words: mean and range of every state, in one space."""

import math
from copy import copy

import pytest
import torch

from regard import RegardError
from regard.explain.texts.summary import summarise
from regard.explain.vectors.neutral import massive_activations, neutral, not_special, state_lengths_over_median
from regard.text.neutral_sentences import MIN_SENTENCES
from regard.text.tokens import Token
from regard.text.words import Word
from regard.trace.status import Status
from regard.trace.trace import Trace

SENTENCES = [f"{begin} the bank{end}" for begin in ("They saw", "We spoke of", "It was", "I know")
             for end in (".", " today.", ", he said.")]  # fmt: skip


@pytest.fixture(scope="module")
def control(minilm):
    return minilm.trace(SENTENCES, logits=False, attention_outputs=False)


@pytest.fixture(scope="module")
def references(minilm):
    return minilm.trace(["river", "pawnbroking"])  # one token, and several


def placed(traces):
    return [(str(n), trace, trace.word("bank")[0]) for n, trace in enumerate(traces, 1)]


def test_mean_and_range_are_those_of_every_sentence(bank, control, references) -> None:
    river, pawn = neutral("bank", placed(bank), control, references)[0]
    assert (river.word, pawn.word, river.sentences, len(river.mean)) == ("river", "pawnbroking", MIN_SENTENCES, 7)
    tokens = {"river": [1], "pawnbroking": list(range(1, len(references[1].tokens) - 1))}
    for reference, found in zip(references, (river, pawn), strict=True):
        for state in range(7):
            beside = reference.hidden_states[state][tokens[found.word]].mean(0)
            each = torch.tensor([
                float(torch.cosine_similarity(t.hidden_states[state][t.word("bank")[0].tokens[0]], beside, dim=0))
                for t in control
            ])  # fmt: skip
            assert found.mean[state] == pytest.approx(float(each.mean()), abs=1e-5)
            assert found.low[state] == pytest.approx(float(each.min()), abs=1e-5)
            assert found.high[state] == pytest.approx(float(each.max()), abs=1e-5)


def test_what_is_no_control_is_said(minilm, bank, control, references) -> None:
    found, made, _ = neutral("bank", placed(bank), control[:3], references)
    assert (found, made.sentences, made.otherwise) == ([], [], [])
    assert made.refused == f"3 of 3 neutral sentences have “bank”, {MIN_SENTENCES} are needed"
    with pytest.raises(RegardError, match="control: sentence 2: word 'bank' is not in"):
        neutral("bank", placed(bank), [control[0], minilm.trace("No such word.")], references)


def test_other_tokens_are_no_control(bank, control, references) -> None:
    """As byte-level tokenizers make of a word at a text's start: another token than behind a blank."""
    label, trace, word = placed(bank)[1]
    other = type(word)(word.text, word.start, word.end, (word.tokens[0] - 1, *word.tokens))
    found, made, _ = neutral("bank", [placed(bank)[0], (label, trace, other)], control, references)
    assert (len(found), made.refused, made.otherwise) == (2, None, ["2"])
    found, made, _ = neutral("bank", [(label, trace, other)], control, references)
    assert (found, made.sentences, made.otherwise) == ([], [], [])
    there = "neutral sentences have “bank” as the tokens that it is in a text"
    assert made.refused == f"0 of {MIN_SENTENCES} {there}, {MIN_SENTENCES} are needed"


def test_one_sentence_with_its_tokens_is_no_range(minilm, references) -> None:
    """Two spellings of a word, of other tokens each: twelve sentences have the one, a single one the other."""
    texts = minilm.trace(["Die Strasse.", "Die Straße."])
    control = minilm.trace([f"{n} Strasse." for n in range(MIN_SENTENCES)] + ["Eine Straße."], logits=False)
    occurrences = [(str(n), trace, trace.word("straße")[0]) for n, trace in enumerate(texts, 1)]
    found, made, _ = neutral("straße", occurrences, control, references)
    assert (made.otherwise, made.refused, len(made.sentences)) == (["2"], None, MIN_SENTENCES)
    assert found[0].sentences == MIN_SENTENCES
    found, made, _ = neutral("straße", occurrences[1:], control, references)
    assert (found, made.refused) == (
        [], "1 of 13 neutral sentences has “straße” as the tokens that it is in a text, 12 are needed"
    )  # fmt: skip


def test_a_summary_has_it_where_there_is_a_word_and_something_to_compare_it_with(bank, control, references) -> None:
    seen = summarise(bank, "bank", references=references, control=control)
    assert [each.word for each in seen.neutral] == ["river", "pawnbroking"]
    assert seen.control is not None
    assert seen.control.sentences == SENTENCES
    assert all(math.isfinite(each.mean[-1]) for each in seen.neutral)
    assert summarise(bank, "bank", references=references).control is None
    assert summarise(bank, "bank", control=control).neutral == []


def text(trace: Trace, *lengths: list[float], special: tuple[int, ...] = ()) -> Trace:
    """A trace whose states have these lengths, one list a state."""
    made = copy(trace)
    made.tokens = [Token(n, "", n, n + 1, None, n in special) for n in range(len(lengths[0]))]
    made.hidden_states = [torch.tensor(each)[:, None] * torch.tensor([[0.6, 0.8]]) for each in lengths]
    return made


def test_the_layer_where_it_is_most_counts_and_special_tokens_are_not_in_the_median(bank) -> None:
    trace = text(bank[0], [9.0, 1.0, 2.0, 3.0], [9.0, 2.0, 2.0, 60.0], special=(0,))
    assert not_special(trace) == [1, 2, 3]
    found = state_lengths_over_median([trace])
    torch.testing.assert_close(found[id(trace)], torch.tensor([4.5, 1.0, 1.0, 30.0]).double())


def test_others_are_measured_by_the_same_median(bank) -> None:
    trace, other = text(bank[0], [1.0, 2.0, 3.0]), text(bank[0], [8.0, 1.0])
    found = state_lengths_over_median([trace], [other])
    torch.testing.assert_close(found[id(other)], torch.tensor([4.0, 0.5]).double())


def made_up(states: list[torch.Tensor]) -> Trace:
    """A trace of these states (L, M), one token a row."""
    tokens = tuple(Token(n, f"word{n}", n, n + 1, n, False) for n in range(len(states[0])))
    status = Status("made up", (), "cpu", "float32", None, 0, None)
    return Trace("x" * len(tokens), tokens, None, None, None, None, tuple(states), states[-1], None, (), (), status)


def test_massive_activations_are_named() -> None:
    generator = torch.Generator().manual_seed(3)
    states = [torch.randn(7, 24, generator=generator) for _ in range(4)]
    words = [Word(f"word{token}", token, token + 1, (token,)) for token in (0, 4)]
    text = made_up(states)
    labelled = [("1a", text, words[0]), ("1b", text, words[1])]
    assert massive_activations(labelled, [text], [text]) == []
    states[1][0] *= 400 / states[1][0].norm()  # in one layer alone
    text, median = made_up(states), float(states[1].norm(dim=1).median())
    (found,) = massive_activations([(label, text, word) for label, _, word in labelled], [text], [])
    assert (found.kind, found.name, found.of) == ("word", "word0", "1a")
    assert found.times == pytest.approx(400 / median, rel=1e-5)
    (found,) = massive_activations([], [text], [text])
    assert (found.kind, found.name, found.of) == ("reference", text.text, "")
