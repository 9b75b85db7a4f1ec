"""Sentences say what the summary's numbers are, and nothing where these do not bear it."""

import itertools
import re
from dataclasses import replace

import pytest
import torch

import regard
from regard.explain.findings import findings, layer_looked_at
from regard.explain.texts.summary import Summary, summarise
from regard.explain.weights.sinks import Sink
from regard.trace.trace import PairTrace


def said(summary: Summary, start: str) -> str:
    """The one sentence that begins so."""
    (sentence,) = [each for each in findings(summary) if each.startswith(start)]
    return sentence


def test_the_numbers_are_the_summarys(bank, minilm) -> None:
    summary = summarise(bank, "bank", references=minilm.trace(["money", "river", "water", "loan"]))
    sentences = findings(summary)
    assert sentences[0] == "Both “bank” start as the same vector."
    first, second = summary.occurrences
    place = layer_looked_at(summary)
    assert place == 0
    for occurrence, label in ((first, "text 1's"), (second, "text 2's")):
        top = [share for share in occurrence.attends[place].top if share.token not in occurrence.tokens][:2]
        looks = " and ".join(f"“{share.text}” ({share.weight:.2f})" for share in top)
        assert f"{label} looks most at {looks}" in sentences[1]
    states = summary.pairs[0].hidden_states
    falls = [(before - after, n) for n, (before, after) in enumerate(itertools.pairwise(states))]
    layer = max(falls)[1]
    assert sentences[2] == (
        f"They end at cosine {states[-1]:.2f} after layer 5; layer {layer} sets them apart most "
        f"({states[layer]:.2f} → {states[layer + 1]:.2f})."
    )
    for label in "12":
        best = max((r for r in summary.references if r.occurrence == label), key=lambda r: r.contextual)
        assert (
            f"text {label}'s ends nearest to “{best.word}” (cosine {best.learned:.2f} → {best.contextual:.2f})"
            in (sentences[3])
        )
    share, layer, text = max(
        (source.share, step.layer, source.text)
        for step in summary.layer_updates[0].updates or ()
        for source in step.attention.top
        if source.text not in ("[CLS]", "[SEP]", "bank")
    )
    assert f"text 1's most through “{text}” ({share:.0%} of its step in layer {layer})" in sentences[4]


def test_one_word_alone(minilm) -> None:
    summary = summarise([minilm.trace("bank")], "bank")
    assert "There is no other word that it could look at." in findings(summary)
    assert not any("most through" in sentence for sentence in findings(summary))


def test_equal_texts_are_not_set_apart(minilm) -> None:
    traces = minilm.trace(["a river bank", "a river bank"])
    assert said(summarise(traces, "bank"), "They end") == (
        "They end at cosine 1.00 after layer 5: no layer sets them apart."
    )


def test_a_word_of_several_tokens_and_other_spellings(minilm) -> None:
    sentences = findings(summarise([minilm.trace("an unwatchable film")], "unwatchable"))
    assert re.match(r"“unwatchable” is read as \d tokens: ", sentences[0])


def test_repeated_words_are_another(minilm) -> None:
    sentences = findings(summarise([minilm.trace("bank bank")], "bank"))
    assert sentences[0].startswith("Both “bank” start as the same learned embedding; their positions set them apart")
    assert "another “bank”" in " ".join(sentences)
    three = findings(summarise([minilm.trace("a bank, a bank and a bank")], "bank"))
    assert three[0].startswith("All 3 “bank”")
    assert re.search(r"After layer 5 1[abc] and 1[abc] are least alike", " ".join(three))


def test_references(minilm) -> None:
    trace = minilm.trace("a river bank")
    one = summarise([trace], "bank", references=[minilm.trace("money")])
    reference = one.references[0]
    assert said(one, "Before and after attention") == (
        f"Before and after attention, it is at cosine {reference.learned:.2f} → {reference.contextual:.2f} to “money”."
    )
    alike = [replace(reference, word=word, contextual=reference.contextual) for word in ("money", "coin")]
    assert "ends about as near to “money”" in said(replace(one, references=alike), "Of the reference words")


def test_weights_that_are_nothing_are_not_named(minilm) -> None:
    summary = summarise([minilm.trace("a river bank")], "bank")
    (occurrence,) = summary.occurrences
    faint = [
        replace(row, top=[replace(share, weight=0.001) for share in row.top], special=0.99)
        for row in occurrence.attends
    ]
    summary = replace(summary, occurrences=[replace(occurrence, attends=faint)])
    assert said(summary, "In layer").endswith("it hardly looks at other words.")


def test_without_a_word(minilm) -> None:
    summary = summarise(minilm.trace(["The cat sat on the mat.", "hello"]))
    found = summary.highlights[0]
    sentences = findings(summary)
    assert sentences[0].startswith(f"In text 1 “{found.moved[0].word}” moves most")
    assert f"{found.moved[0].cosine:.2f}" in sentences[0]
    link = found.links[0]
    assert f"“{link.query_text}” looks at “{link.key_text}” in layer {link.layer}, head {link.head}" in sentences[1]
    assert next(sentence for sentence in sentences if sentence.startswith("In text 2")).startswith(
        "In text 2 “hello” moves most"
    )
    assert len(sentences) == 3  # a text of one word has no links


def test_parts_of_a_trace(bank, tmp_path) -> None:
    file = tmp_path / "a.safetensors"
    bank[0].save(file, layers=[3])
    opened = regard.open(file)
    assert any(
        sentence.startswith("In layer 3 (mean of its heads)") for sentence in findings(summarise([opened], "bank"))
    )


def test_a_translation_says_where_its_words_come_from(pair_of_texts) -> None:
    summary = summarise([pair_of_texts], None)
    sentence = findings(summary)[-1]
    alignment = summary.target.alignments[0]
    assert f"in layer {alignment.written_layer}" in sentence
    best = max(each.written.top[0].weight for each in alignment.tokens if each.written and each.written.top)
    assert f"({best:.2f})" in sentence


@pytest.fixture
def pair_of_texts() -> PairTrace:
    from regard.text import tokenizers

    text, target = "a bank of a river", "la rive"
    torch.manual_seed(5)
    words = tokenizers.words([text, target], frame="end")
    sizes = regard.TransformerConfig.translator(len(words), start=words.bos_token_id, d_model=32, layers=2)
    return regard.load(regard.Transformer(sizes), tokenizer=words).trace(text, target=target)


def test_sinks_are_not_what_moved_a_word(bank) -> None:
    summary = summarise([bank[0]], "bank")
    plain = said(summary, "Attention moved")
    assert "“river”" in plain
    river = next(n for n, token in enumerate(summary.tokens[0]) if token.text == "river")
    summary = replace(summary, sinks=[[Sink(river, "river", 0.5, 0.9)]])
    assert "“river”" not in said(summary, "Attention moved")


def test_repeated_tokens_of_links_have_their_numbers(minilm) -> None:
    sentence = next(
        s for s in findings(summarise([minilm.trace("the cat saw the dog and the dog ran")])) if "links" in s
    )
    for name, number in re.findall(r"“(\w+)”( \d+)?", sentence):
        assert bool(number) == (name in ("the", "dog"))
