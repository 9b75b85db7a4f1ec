import os
from pathlib import Path
from typing import Any

import pandas
import pytest
import transformers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import normalizers, processors

from regard.errors import RegardError
from regard.explain.weights.head_means import content_or_position
from regard.generation.generator import continued
from regard.models.load import load_tokenizer
from regard.questions.tokens import tokens
from regard.text import tokenizers
from regard.text.neutral_sentences import neutral_sentences
from regard.text.quoting import display_text as spelled_token
from regard.text.tokens import Turn, check_text, encode, encoded_ids, readable_token, tokens_in_turns
from regard.text.words import find_word
from regard.verify.check import check
from tests.support import SHARED
from tests.support.own_models import opened, pair
from tests.text.test_words import gpt2 as published_gpt2

SMOLLM2 = os.environ.get("REGARD_SMOLLM2", "")


def test_tokens_carry_ids_characters_words_and_specials(minilm) -> None:
    encoded = encode(minilm.tokenizer, "Bank withdrawals!")
    assert [t.text for t in encoded.tokens] == ["[CLS]", "bank", "withdrawal", "##s", "!", "[SEP]"]
    assert [(t.start, t.end) for t in encoded.tokens[1:5]] == [(0, 4), (5, 15), (15, 16), (16, 17)]
    assert [t.word for t in encoded.tokens] == [None, 0, 1, 1, 2, None]
    assert [t.special for t in encoded.tokens] == [True, False, False, False, False, True]
    assert encoded.ids[0] == 101
    assert encoded.ids[-1] == 102


def test_unknown_and_dropped_characters_are_named(minilm) -> None:
    encoded = encode(minilm.tokenizer, "a \u0001\u0002 bank 銀")
    assert encoded.unknown == ("銀",)
    assert encoded.dropped == ("\u0001\u0002",)
    assert encode(minilm.tokenizer, "a bank").unknown == ()
    assert encode(minilm.tokenizer, "a bank").dropped == ()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "text is empty"),
        (" \n\t ", "text is blank"),
        ("a \ud83d b", r"character 2 is the lone surrogate U\+D83D"),
        (7, "got int, expected a string"),
    ],
)
def test_texts_that_are_none(text: object, says: str) -> None:
    with pytest.raises(RegardError, match=says):
        check_text(text)


@pytest.mark.usefixtures("no_checks_of_annotations")
@pytest.mark.parametrize(
    ("read", "says"),
    [
        (lambda minilm, given: minilm.trace(given), "as ids="),
        (lambda minilm, given: opened("gpt").generate(given), "as ids="),
        (lambda minilm, given: pair().trace("A bank", target=given), "as target_ids="),
        (lambda minilm, given: content_or_position(minilm, given), "a list of ids"),
        (lambda minilm, given: neutral_sentences("bank", given), "control"),
        (lambda minilm, given: tokens(given), "texts"),
        (lambda minilm, given: check(minilm, given), "check: texts"),
        (lambda minilm, given: tokenizers.words(given), "texts"),
        (lambda minilm, given: tokenizers.batch(minilm.tokenizer, given), "texts"),
    ],
)
def test_whatever_reads_texts_refuses_mappings_and_tables(minilm, read: Any, says: str) -> None:
    """They list their keys: "input_ids" and "attention_mask" were traced as texts."""
    given = minilm.tokenizer("A man is fishing.")
    for wrong in (given, dict(given), pandas.DataFrame({"text": ["A man is fishing."]})):
        with pytest.raises(RegardError, match=says) as caught:
            read(minilm, wrong)
        assert f"got {type(wrong).__name__}, expected a string or several of them" in str(caught.value)


def test_a_text_of_dropped_characters_only_is_refused(minilm) -> None:
    with pytest.raises(RegardError, match="no tokens are left"):
        encode(minilm.tokenizer, "\u0001\u0002")


def test_special_tokens_in_the_text_are_said(minilm) -> None:
    encoded = encode(minilm.tokenizer, "a [SEP] bank")
    assert encoded.tokens[2].special
    assert encoded.notes == ("Read as a special token: [SEP].",)
    with pytest.raises(RegardError, match="consists of special tokens"):
        encode(minilm.tokenizer, "[MASK]")


@pytest.mark.parametrize("frame", ["", "<|end|>"])
def test_an_unknown_token_that_also_begins_and_ends_texts_is_special(frame: str) -> None:
    """As GPT-2's is: of byte-level vocabularies, which know every text."""
    made = tokenizers.byte_pairs("a bank", size=300)
    roles = dict.fromkeys(("bos_token", "eos_token", "unk_token"), "<|end|>")
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=made.backend_tokenizer, **roles)
    end = tokenizer.eos_token_id
    if frame:
        tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{frame} $A", special_tokens=[(frame, end)]
        )
    encoded = encode(tokenizer, "a<|end|> bank")
    assert encoded.unknown == ()
    assert encoded.notes == ("Read as a special token: <|end|>.",)
    assert [token.special for token in encoded.tokens if token.id == end] == [True] * (1 + bool(frame))
    whole = continued(tokenizer, encoded, [end])
    assert (whole.text, whole.tokens[-1].special) == ("a<|end|> bank", True)


def test_dropped_marks_are_those_that_the_normalised_text_lacks(minilm) -> None:
    made = tokenizers.byte_pairs("a bank", size=300)
    made.backend_tokenizer.normalizer = normalizers.NFC()
    assert encode(made, "tre\u0300s \u1100\u1161\u11a8").dropped == ()
    assert encode(minilm.tokenizer, "cafe\u0301").dropped == ("\u0301",)


def test_ids_are_words_of_their_own() -> None:
    encoded = encoded_ids([17, 5, 17])
    assert encoded.ids == [17, 5, 17]
    assert [w.tokens for w in find_word(encoded.text, encoded.tokens, "17")] == [(0,), (2,)]


MIXED = "Hi  you\n\n\tcafé\xa0✓ 🙂 他\n end"  # blanks, line breaks, a tab, a no-break space, an emoji, Chinese


def shown(tokenizer, text: str = MIXED) -> list[str]:
    return [spelled_token(token.text, 100) for token in encode(tokenizer, text).tokens]


def test_a_byte_level_tokenizer_is_read_as_text_and_bytes() -> None:
    """Trained here: no merge of the text's rare characters, so each of them is spelled by its bytes."""
    tokenizer = tokenizers.byte_pairs(["the end, the end"], size=300)
    assert shown(tokenizer) == [
        *"Hi", "␣", "␣", *"you", "↵", "↵", "\\t", *"caf", "\\xc3", "\\xa9", "\\xc2", "\\xa0", "\\xe2", "\\x9c", "\\x93",
        "␣", "\\xf0", "\\x9f", "\\x99", "\\x82", "␣", "\\xe4", "\\xbb", "\\x96", "↵", "␣end",
    ]  # fmt: skip
    pieces = {readable_token(tokenizer, n) for n in range(len(tokenizer))}
    assert not {"Ġ", "Ċ", "Â", "ð"} & pieces
    assert {" ", "\n", "\t", "\\xf0", "\\xc2", "a"} <= pieces
    long = tokenizers.byte_pairs(["a\xa0b\xa0c ", "é 他\n\n他\n\n"], size=300)
    assert {"⍽", "é", "他", "↵↵"} <= set(shown(long, "a\xa0b é他 他\n\n"))


def test_word_pieces_keep_their_spelling(minilm) -> None:
    assert shown(minilm.tokenizer, "withdrawals,\n\xa0a 🙂") == [
        "[CLS]",
        "withdrawal",
        "##s",
        ",",
        "a",
        "[UNK]",
        "[SEP]",
    ]


@pytest.mark.shared
@pytest.mark.skipif(not (SHARED / "tokenizers").is_dir(), reason=f"no tokenizers in {SHARED} (REGARD_SHARED names it)")
def test_gpt2s_tokens() -> None:
    gpt2 = published_gpt2([])
    assert shown(gpt2) == [
        "Hi", "␣", "␣you", "↵↵", "\\t", "c", "af", "é", "⍽", "\\xe2\\x9c", "\\x93", "␣🙂", "␣", "\\xe4\\xbb", "\\x96",
        "↵", "␣end",
    ]  # fmt: skip
    # Of the whole vocabulary: what spells characters is decoded, what spells parts of such is bytes.
    for number in range(len(gpt2)):
        text = readable_token(gpt2, number)
        piece = gpt2.convert_ids_to_tokens(number)
        if piece == "<|endoftext|>":
            continue
        spelling = bytes(int(b, 16) for b in text.split("\\x")[1:]) if text.startswith("\\x") else text.encode()
        assert len(spelling) == len(piece), piece  # a character of a byte-level vocabulary is a byte


@pytest.mark.shared
@pytest.mark.skipif(
    not (SHARED / "models" / "stories260K").is_dir(), reason=f"no model folder in {SHARED} (REGARD_SHARED names it)"
)
def test_sentencepieces_blanks_and_bytes() -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(SHARED / "models" / "stories260K")
    got = shown(tokenizer)
    assert not [text for text in got if "▁" in text or text.startswith("<0x")]
    assert got == [
        "<s>", "H", "i", "␣", "you", "↵", "↵", "\\t", "c", "a", "f", "é", "⍽", "\\xe2", "\\x9c", "\\x93", "␣",
        "\\xf0", "\\x9f", "\\x99", "\\x82", "␣", "\\xe4", "\\xbb", "\\x96", "↵", "e", "nd",
    ]  # fmt: skip


@pytest.mark.real
@pytest.mark.skipif(
    not SMOLLM2 or not list(Path(SMOLLM2).glob("*.gguf")), reason=f"no GGUF file in REGARD_SMOLLM2={SMOLLM2!r}"
)
def test_smollm2s_tokens() -> None:
    got = shown(load_tokenizer(SMOLLM2))
    assert got[:9] == ["Hi", "␣", "␣you", "↵↵", "\\t", "c", "af", "é", "⍽"]
    assert not [text for text in got if set(text) & set("ĠĊÂðâ")]


@given(st.lists(st.tuples(st.sampled_from(["user", "assistant", "tool"]), st.integers(0, 3), st.integers(0, 2))))
def test_each_token_of_a_message_knows_whose_it_is(messages: list[tuple[str, int, int]]) -> None:
    """Of each message: the role, how many tokens it has, and how many of the template's stand before it."""
    turns, expected = [], []
    for n, (role, count, before) in enumerate(messages):
        expected += [""] * before
        turns.append(Turn(role, 0, 0, tuple(range(len(expected), len(expected) + count))))
        expected += [f"{role} {[each for each, _, _ in messages[: n + 1]].count(role)}"] * count
    plain = encoded_ids(range(len(expected))).tokens
    found = tokens_in_turns(plain, turns)
    assert [each.turn for each in found] == expected
    assert [(each.id, each.text, each.start, each.end, each.word, each.special) for each in found] == [
        (each.id, each.text, each.start, each.end, each.word, each.special) for each in plain
    ]
    assert [each is own for each, own in zip(found, plain, strict=True)] == [not name for name in expected]
