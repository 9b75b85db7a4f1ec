"""Tokens are grouped to words by the characters of their text, whatever their tokenizer."""

import json
import unicodedata
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
import tokenizers as library
import transformers
from hypothesis import given
from hypothesis import strategies as st

from regard import RegardError
from regard.explain.texts import highlights
from regard.text import tokenizers
from regard.text.tokens import Token, encode
from regard.text.word_pieces import PRONOUNS, is_content_word, spelling, word_tokens, wordlike, words
from regard.text.words import find_word, word_boundaries, words_of
from regard.textbook import dictionary
from regard.web.page import text_data
from tests.support import SHARED

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
SCRIPTS = {
    "Latin": "I can't believe it's 3 o'clock, the e-mail said: Nguyễn’s trèfle.",
    "Georgian": "დიდი მდინარის ნაპირი", "Armenian": "մեծ գետի ափ՝ այստեղ", "Amharic": "የወንዝ ዳርቻ፡ነው",
    "Hebrew": 'גדת הַנָּהָר של צה"ל',
    "Inuktitut": "ᑰᒃ ᓯᒡᔭᖓ ᐃᓄᒃᑎᑐᑦ", "Hindi": "नदी का किनारा और क्षत्रिय नमस्ते",
    "emoji": f"my {FAMILY}, her 👍🏽 and 🇩🇪🇫🇷 flags",
    "Korean": "큰 강의 강둑", "Vietnamese": "bờ sông Hồng lớn", "Persian": "می\u200cخواهم کنار رودخانه",
    "Han": "我坐在河岸上",
    "Thai": "ริมฝั่งแม่น้ำ", "Kana": "かわの ギシ", "signs": "co\xadoperate H₂O m² 3.14 a_b x\u200fy",
}  # fmt: skip
TEXT = "Life is short, eat dessert first"


def unigram(texts: list[str]) -> Any:
    whole = library.Tokenizer(library.models.Unigram())
    whole.normalizer, whole.pre_tokenizer = library.normalizers.NFKC(), library.pre_tokenizers.Metaspace()
    letters = sorted(set(unicodedata.normalize("NFKC", "".join(texts))))
    trainer = library.trainers.UnigramTrainer(
        vocab_size=600, special_tokens=["<unk>"], unk_token="<unk>", initial_alphabet=letters, show_progress=False
    )
    whole.train_from_iterator(texts, trainer)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=whole, unk_token="<unk>")


class WithoutPlaces:
    """A tokenizer that gives no characters, as slow ones."""

    is_fast = False

    def __init__(self, made: Any) -> None:
        self.made = made

    def __getattr__(self, name: str) -> Any:
        return getattr(self.made, name)

    def __call__(self, *texts: Any, **options: Any) -> Any:
        return self.made(*texts, **options)


def composing_bytes(texts: list[str]) -> Any:
    """Byte-level BPE as Qwen has it: texts are composed first."""
    made = tokenizers.byte_pairs("a river bank", size=290)
    made.backend_tokenizer.normalizer = library.normalizers.NFC()
    return made


def gpt2(_: list[str]) -> Any:
    folder = SHARED / "tokenizers"
    lines = (folder / "gpt2-merges.txt").read_text(encoding="utf-8").splitlines()
    merges = [tuple(line.split()) for line in lines if line and not line.startswith("#version")]
    whole = library.Tokenizer(library.models.BPE(json.loads((folder / "gpt2-vocab.json").read_text("utf-8")), merges))
    whole.pre_tokenizer = library.pre_tokenizers.ByteLevel(add_prefix_space=False)
    whole.decoder = library.decoders.ByteLevel()
    end = "<|endoftext|>"
    return transformers.PreTrainedTokenizerFast(tokenizer_object=whole, unk_token=end, bos_token=end, eos_token=end)


def bert(_: list[str]) -> Any:
    return transformers.BertTokenizerFast(str(SHARED / "tokenizers" / "bert-base-uncased-vocab.txt"))


lent = (
    pytest.mark.shared,
    pytest.mark.skipif(not (SHARED / "tokenizers").is_dir(), reason=f"no tokenizers in {SHARED}"),
)
KINDS = [
    lambda _: tokenizers.byte_pairs("a river bank", size=290), composing_bytes, unigram,
    lambda texts: WithoutPlaces(unigram(texts)),
    lambda texts: tokenizers.word_pieces(texts, size=400),
    pytest.param(gpt2, marks=lent), pytest.param(bert, marks=lent),
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_words_are_those_that_find_word_finds(kind: Callable[[list[str]], Any]) -> None:
    """Of composed and decomposed texts, whose every character may be several tokens, or of which one has several."""
    texts = [unicodedata.normalize(form, text) for text in SCRIPTS.values() for form in ("NFC", "NFD")]
    tokenizer = kind(texts)
    for text in texts:
        encoded = encode(tokenizer, text)
        own = [word for word in words(encoded.tokens) if wordlike(spelling(encoded.tokens, word))]
        own = [word for word in own if not encoded.tokens[word[0]].special]
        names = [spelling(encoded.tokens, word) for word in own]
        for name, word in zip(names, own, strict=True):
            assert tuple(word) in [each.tokens for each in find_word(text, encoded.tokens, name)], (text, name)
        for name in words_of(text):
            assert any({*each.tokens} <= {*word} for each in find_word(text, encoded.tokens, name) for word in own)
        if "我" not in text and "ริ" not in text and "か" not in text:  # there a token may be several words
            assert list(dict.fromkeys(names)) == words_of(text)
        if kind in (composing_bytes, KINDS[0]):
            assert encoded.dropped == encoded.unknown == ()


def test_unknown_words_of_a_tokenizer_without_places_have_their_own_characters() -> None:
    assert encode(WithoutPlaces(unigram(["a river bank"])), "የወንዝ ዳርቻ a").unknown == ("የወንዝ", "ዳርቻ")


CLUSTERS = ["a", "B", "7", "é", "e\u0301", "\u0915\u093f", "_", "水", "銀", "タ", "-", "'", ".", " ", "  ", "\n"]


DRAWN = st.tuples(
    st.lists(st.sampled_from(CLUSTERS), max_size=16), st.sets(st.integers(0, 32), max_size=6), st.booleans(),
    st.sampled_from([lambda n: None, lambda n: 0, lambda n: n]),
)  # fmt: skip


def cut(drawn: tuple[list[str], set[int], bool, Callable[[int], int | None]]) -> tuple[str, list[Token]]:
    """A text and its tokens: cut wherever words end, and anywhere else by chance; blanks in tokens or between them.

    The tokenizer's own numbers of words are of any kind: none, one for all, another for each token.
    """
    clusters, others, led, number = drawn
    text = "".join(clusters)
    edges = word_boundaries(text) | {at for at in others if at <= len(text)}
    between = [(start, end) for start, end in pairwise(sorted(edges)) if not text[start:end].isspace()]
    tokens = []
    for n, (start, end) in enumerate(between):
        blank = led and start > 0 and text[start - 1] == " "
        own = text[start - blank : end]
        tokens.append(Token(n, own, start - blank, end, number(n), False, text))
    return text, tokens


@given(DRAWN)
def test_words_end_by_the_text_however_a_tokenizer_cuts(drawn: Any) -> None:
    text, tokens = cut(drawn)
    found = [spelling(tokens, word) for word in words(tokens)]
    assert [*dict.fromkeys(filter(wordlike, found))] == words_of(text)


@given(DRAWN, st.sets(st.integers(0, 20), max_size=3))
def test_all_that_speaks_of_words_means_the_same(drawn: Any, special: set[int]) -> None:
    text, tokens = cut(drawn)
    tokens = [replace(token, special=n in special) for n, token in enumerate(tokens)]
    found = [tuple(word) for word in words(tokens)]
    assert [n for word in found for n in word] == list(range(len(tokens)))
    own = [word for word in found if not tokens[word[0]].special]
    assert highlights.words_of(tokens) == [list(word) for word in own]
    page = text_data("text 1", text, tokens)["tokens"]["word"]  # type: ignore[index, call-overload]
    assert [tuple(n for n, number in enumerate(page) if number == each) for each in range(len(own))] == own
    assert [n for n, number in enumerate(page) if number is None] == [n for n in range(len(tokens)) if n in special]


def test_the_bytes_of_one_character_are_together() -> None:
    text = "ab他銀"
    parts = [Token(n, f"\\xe{n}", 2, 3, None, False, text) for n in range(3)]
    found = [Token(9, "ab", 0, 2, None, False, text), *parts, Token(9, "銀", 3, 4, None, False, text)]
    assert words(found) == [range(1), range(1, 4), range(4, 5)]
    assert spelling(found, range(1, 4)) == "他"


def test_word_tokens_know_their_characters() -> None:
    tokens = word_tokens(TEXT, dictionary(TEXT))
    words = TEXT.replace(",", "").split()
    assert [TEXT[t.start : t.end].rstrip(",") for t in tokens] == [t.text for t in tokens] == words
    assert [t.id for t in tokens] == [0, 4, 5, 2, 1, 3]
    odd = "1,000 , eat,, x"
    assert [(t.text, t.start, t.end) for t in word_tokens(odd, dictionary(odd))] == [
        ("1000", 0, 5), ("eat", 8, 11), ("x", 14, 15),
    ]  # fmt: skip


def test_a_word_that_is_not_in_the_dictionary() -> None:
    with pytest.raises(RegardError, match=r"dictionary of 6 words has no 'cake'"):
        word_tokens("eat cake", dictionary(TEXT))


@pytest.mark.parametrize("word", ["tired", "animal", "2024", " Paris", "été"])
def test_content_words(word: str) -> None:
    assert is_content_word(word)


@pytest.mark.parametrize("word", ["the", "Because", "didn't", "didn’t", "can't", " of", "it", ".", "—"])
def test_function_words_and_marks(word: str) -> None:
    assert not is_content_word(word)


def test_pronouns_are_function_words() -> None:
    assert "it" in PRONOUNS
    assert not any(map(is_content_word, PRONOUNS))
