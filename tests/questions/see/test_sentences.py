"""Sentences say what the summary's numbers are, and nothing where these do not bear it."""

import itertools
import re
from dataclasses import replace

import pytest
import torch

import regard
from regard.explain.texts.summary import Summary, summarise
from regard.questions.see.sentences import findings
from regard.trace.trace import PairTrace


def said(summary: Summary, start: str) -> str:
    """The one sentence that begins so."""
    (sentence,) = [each for each in findings(summary) if each.startswith(start)]
    return sentence


def test_the_numbers_are_the_summarys(bank, minilm) -> None:
    summary = summarise(bank, "bank", references=minilm.trace(["money", "river", "water", "loan"]))
    sentences = findings(summary)
    assert sentences[2] == "Both “bank” start as the same vector."
    states = summary.pairs[0].hidden_states
    falls = [(before - after, n) for n, (before, after) in enumerate(itertools.pairwise(states))]
    layer = max(falls)[1]
    assert sentences[3] == (
        f"They end at cosine {states[-1]:.2f} after layer 5; layer {layer} parts them most "
        f"({states[layer]:.2f} → {states[layer + 1]:.2f})."
    )
    assert sentences[4].startswith("Whether a text moves “bank” is not told: ")
    assert sentences[5].startswith("Between the texts “river” differs most: ")


def test_one_word_alone(minilm) -> None:
    summary = summarise([minilm.trace("bank")], "bank")
    assert "There is no other word that “bank” could look at." in findings(summary)
    assert not any("with the largest share" in sentence for sentence in findings(summary))


def test_equal_texts_are_not_set_apart(minilm) -> None:
    traces = minilm.trace(["a river bank", "a river bank"])
    assert said(summarise(traces, "bank"), "They end") == (
        "They end at cosine 1.00 after layer 5: no layer parts them by 0.01."
    )


def test_three_equal_texts_have_no_least_and_no_most(minilm) -> None:
    summary = summarise(minilm.trace(["a river bank"] * 3), "bank")
    assert "After layer 5 any two of them are about as alike (cosine 1.00)." in findings(summary)


def test_what_ends_nearer_than_it_began_is_told_so(bank) -> None:
    summary = summarise(bank, "bank")
    apart = replace(summary.pairs[0], hidden_states=[0.5, *summary.pairs[0].hidden_states[1:]])
    assert said(replace(summary, pairs=[apart]), "They end").startswith(
        "They end at cosine 0.85 after layer 5, nearer than they began (0.50); layer 5 parts them most"
    )


def test_a_word_of_several_tokens_and_other_spellings(minilm) -> None:
    sentences = findings(summarise([minilm.trace("an unwatchable film")], "unwatchable"))
    assert any(re.match(r"“unwatchable” is read as \d tokens: ", sentence) for sentence in sentences)


def test_repeated_words_are_another(minilm) -> None:
    sentences = findings(summarise([minilm.trace("bank bank")], "bank"))
    assert sentences[1].startswith("Both “bank” start as the same learned embedding; their positions set them apart")
    assert "another “bank”" in " ".join(sentences)
    three = findings(summarise([minilm.trace("a bank, a bank and a bank")], "bank"))
    assert any(sentence.startswith("All 3 “bank”") for sentence in three)
    assert re.search(r"After layer 5, 1[abc] and 1[abc] are least alike", " ".join(three))


def test_without_a_word(minilm) -> None:
    summary = summarise(minilm.trace(["The cat sat on the mat.", "hello"]))
    found = summary.highlights[0]
    sentences = findings(summary)
    assert sentences[0].startswith("In text 1, of all words “the” (5) moves most")  # and "The" (1)
    assert f"{found.moved[0].cosine:.2f} to what entered layer 0, then “The” (1) 0.29" in sentences[0]
    link = found.links[0]
    assert f"“{link.query_text}” looks at “{link.key_text}” in layer {link.layer}, head {link.head}" in sentences[1]
    assert next(sentence for sentence in sentences if sentence.startswith("In text 2")).startswith(
        "In text 2, of all words “hello” moves most"
    )
    assert len(sentences) == 3  # a text of one word has no links


def test_parts_of_a_trace(bank, tmp_path) -> None:
    file = tmp_path / "a.safetensors"
    bank[0].save(file, layers=[3])
    opened = regard.open(file)
    assert any(
        sentence.startswith("What “bank” looks at most in layer 3 (mean of its heads)")
        for sentence in findings(summarise([opened], "bank"))
    )
    assert "in the layers held between words that are no neighbours" in findings(summarise([opened]))[-1]


def test_a_translation_says_where_its_words_come_from(pair_of_texts) -> None:
    summary = summarise([pair_of_texts], None)
    sentence = findings(summary)[-1]
    alignment = summary.target.alignments[0]
    assert f"(layer {alignment.written_layer}, mean of heads; special tokens aside)" in sentence
    best = max(each.written.top[0].weight for each in alignment.tokens if each.written and each.written.top)
    assert f" {best:.2f}," in sentence


@pytest.fixture
def pair_of_texts() -> PairTrace:
    from regard.text import tokenizers

    text, target = "a bank of a river", "la rive"
    torch.manual_seed(5)
    words = tokenizers.words([text, target], frame="end")
    sizes = regard.TransformerConfig.translator(len(words), start=words.bos_token_id, d_model=32, layers=2)
    return regard.load(regard.Transformer(sizes), tokenizer=words).trace(text, target=target)


def test_repeated_tokens_of_links_have_their_numbers(minilm) -> None:
    sentence = next(
        s for s in findings(summarise([minilm.trace("the cat saw the dog and the dog ran")])) if "links" in s
    )
    for name, number in re.findall(r"“(\w+)”( \(\d+\))?", sentence):
        assert bool(number) == (name in ("the", "dog"))
