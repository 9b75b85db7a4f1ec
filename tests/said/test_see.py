"""What `see` says of a followed word is true of whole rows, states and updates, of random ones too."""

import re
from itertools import pairwise

import pytest

from regard.explain.texts.summary import summarise
from regard.questions.see.answer import seen
from regard.questions.see.sentences import findings
from tests.said.random_summaries import Drawn, drawn
from tests.said.reading import names_in, numbers_in, plain_and_few, reads, shown_with_its_numbers

SEEDS = range(60)
HEAD = r"\(([<>]?[\d.]+), layer (\d+), head (\d+)\)"


def linked(numbers: Drawn) -> list[tuple[str, str, str]]:
    """The weight, layer and head of each link that is named."""
    return re.findall(HEAD, " ".join(findings(numbers.summary)))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_heads_named_are_those_of_the_most_distinctive_links(seed: int) -> None:
    numbers = drawn(seed)
    plain_and_few(findings(numbers.summary))
    links = [own.link for own in numbers.summary.occurrences if own.link is not None]
    seen = numbers.summary.occurrences
    ends = [(pair.hidden_states[-1], pair.a, pair.b) for pair in numbers.summary.pairs]
    least = min(ends)[1:] if ends and None not in ends[0] else [own.label for own in seen[:2]]
    pair = [own.link for own in seen if own.link is not None and own.label in least]
    shown = pair if len(pair) == 2 else links[:1]
    named = linked(numbers)
    if len(numbers.summary.texts) == len(seen) == len(links) == 3:  # no room for heads
        sentence = next(sentence for sentence in findings(numbers.summary) if "unusually" in sentence)
        for (text, weight), own in zip(re.findall(r"in text (\S+) \(([^)]*)\)", sentence), seen, strict=True):
            assert text == own.label
            assert reads(weight, own.link.weight)
            assert own.link.text in sentence
        return
    assert len(named) == len(shown)
    for (weight, layer, head), link in zip(named, shown, strict=True):
        assert (int(layer), int(head)) == (link.layer, link.head)
        assert reads(weight, link.weight)
        assert link.text in " ".join(findings(numbers.summary))


@pytest.mark.parametrize("seed", SEEDS)
def test_cosines_are_those_of_the_last_states_and_the_layer_that_of_the_largest_drop(seed: int) -> None:
    numbers = drawn(seed)
    pairs, said = numbers.summary.pairs, findings(numbers.summary)
    ends = [pair.hidden_states[-1] for pair in pairs]
    about = [sentence for sentence in said if "cosine" in sentence and re.search(r" end (at|most) ", sentence)]
    if len(pairs) > 1 and None not in ends:
        assert reads(re.findall(r"cosine ([−<>]?[\d.]+\d)", about[0])[0], max(ends))
        assert reads(numbers_in(about[0])[-1], min(ends))
    if len(pairs) != 1 or None in pairs[0].hidden_states:
        return
    (sentence,) = about
    states = pairs[0].hidden_states
    assert reads(re.findall(r"end at cosine ([−<>]?[\d.]+\d)", sentence)[0], states[-1])
    lowest = min(states[1:-1], default=1.0)
    dip = re.search(r"fall to ([−<>]?[\d.]+) after layer (\d+) ", sentence)
    assert (dip is not None) == (lowest < min(states[0], states[-1]) - 0.05)
    if dip is not None:
        assert reads(dip[1], lowest)
        assert states[int(dip[2]) + 1] == lowest
        return
    drops = [before - after for before, after in pairwise(states)]
    layer = re.search(r"layer (\d+)\.$", sentence)
    assert (layer is not None) == (max(drops) >= 0.01)
    assert layer is None or drops[int(layer[1])] == max(drops)
    assert ("identical" in sentence) == (states[0] >= 1 - 1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_word_that_contributes_most_does(seed: int) -> None:
    numbers = drawn(seed)
    shares = {
        (update.occurrence, step.layer, part.token): part.share
        for update in numbers.summary.layer_updates
        for step in update.updates or []
        for part in step.attention.top
        if part.token in numbers.others(numbers.occurrence(update.occurrence))
    }
    said = [re.search(r"“(.+?)”.* (\d+%) of its update in layer (\d+)", each) for each in findings(numbers.summary)]
    for match in filter(None, said):
        most = max(shares, key=lambda each: shares[each])
        assert reads(match[2], shares[most])
        assert int(match[3]) == most[1]
        assert match[1] == numbers.summary.tokens[numbers.occurrence(most[0]).text][most[2]].text


def test_every_number_is_shown_with_the_sentences(minilm, bank) -> None:
    shown_with_its_numbers(seen(bank, "bank"))
    shown_with_its_numbers(seen(bank[:1], "bank"))
    shown_with_its_numbers(seen(bank, "bank", references=minilm.trace(["money", "river"])))
    shown_with_its_numbers(seen(minilm.trace(["a bank, a bank and a river bank"]), "bank"))
    shown_with_its_numbers(seen(minilm.trace(["The animal didn't cross the street because it was too tired."] * 2)))


def test_a_text_begins_with_the_link_that_says_something(minilm) -> None:
    """Not “was” to “because”: function words come last, whatever their weights."""
    said = findings(summarise([minilm.trace("The animal didn't cross the street because it was too tired.")]))
    assert names_in(said[0]) == ["it", "tired", "animal"]
    assert re.findall(HEAD, said[0]) == [("0.71", "2", "1"), ("0.68", "3", "1")]


def test_a_prediction_comes_before_the_links_only_if_it_is_likely(stories) -> None:
    for text, first, likely in (
        ("Once upon a", True, True),
        ("Tom and his mom saw a", False, False),
        ("Once upon a time", False, True),
    ):
        said = findings(summarise([stories.trace(text)]))
        place = next(n for n, sentence in enumerate(said) if "predicts" in sentence)
        assert (place == 0) is first
        assert likely is (float(re.findall(r"0\.\d\d", said[place].replace(">", ""))[-1]) >= 0.5)
    assert findings(summarise(stories.trace(["a bank and a bank"]), "bank"))[0].startswith("The first “bank” attends")


def test_a_word_alone_has_no_link_and_one_of_its_own_texts_no_drop(minilm) -> None:
    assert not re.findall(HEAD, " ".join(findings(summarise([minilm.trace("bank")], "bank"))))
    same = findings(summarise(minilm.trace(["a river bank"] * 2), "bank"))
    assert any("1.00" in sentence and "layer" not in sentence for sentence in same)


def test_parts_of_a_trace_speak_of_their_layers_alone(bank, tmp_path) -> None:
    import regard

    bank[0].save(tmp_path / "a.safetensors", layers=[0])
    opened = regard.open(tmp_path / "a.safetensors")
    for said in (findings(summarise([opened], "bank")), findings(summarise([opened]))):
        assert {layer for _, layer, _ in re.findall(HEAD, " ".join(said))} == {"0"}
