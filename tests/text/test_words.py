"""Words found in a text by their characters, with the tokens that spell them."""

import json
import re
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

from regard.errors import RegardError
from regard.explain.texts import highlights
from regard.text import tokenizers
from regard.text.tokens import Token, encode
from regard.text.words import (
    PRONOUNS,
    boundaries,
    find_spans,
    find_word,
    is_content_word,
    spelling,
    which_text,
    word_in_neither_text,
    word_spans,
    word_tokens,
    wordlike,
    words,
    words_of,
)
from regard.textbook import dictionary
from regard.web.page import text_data
from tests.support import SHARED


@pytest.mark.parametrize(
    ("text", "word", "spans"),
    [
        ("a bank, the Bank", "bank", [(2, 6), (12, 16)]),  # any case
        ("a bank, the Bank", "Bank", [(12, 16)]),  # its own spelling
        ("a bank", "Bank", [(2, 6)]),  # any case where its own does not occur
        ("banks bank embank", "bank", [(6, 10)]),  # letters before or behind make another word
        ("bank_note bank", "bank", [(10, 14)]),
        ("caf\u00e9 cafe\u0301", "cafe\u0301", [(0, 4), (5, 10)]),  # composed and decomposed
        ("cafe\u0301", "cafe", None),
        ("Stra\u00dfe", "strasse", [(0, 6)]),
        ("河岸的銀行", "銀行", [(3, 5)]),  # no blanks between words
        ("a river bank", "river bank", [(2, 12)]),
        ("👩\u200d🚀 went", "👩", None),  # a joined sign is one
        ("I don’t, don't", "don't", [(2, 7), (9, 14)]),  # typographic signs
        ("I don't", "don’t", [(2, 7)]),
        ("Bob’s e‑mail", "e-mail", [(6, 12)]),
        ("Bob's e-mail", "Bob", [(0, 3)]),
        ("צה״ל נע", 'צה"ל', [(0, 4)]),
        ("a river \xa0\n bank", "river  bank", [(2, 15)]),  # any blanks
        ("co\xadoperate", "cooperate", [(0, 10)]),  # a soft hyphen is not seen, and ends no word
        ("co\xadoperate", "operate", None),
        ("می\u200cخواهم", "خواهم", None),  # nor does a joiner that joins no letters
        ("x\u200f y", "x", [(0, 2)]),
        (unicodedata.normalize("NFD", "강둑"), "강둑", [(0, 6)]),
        ("カメラ", "メ", [(1, 2)]),
        ("ค้ำ", "ค้", None),  # nor a vowel a character of its own
        ("", "a", None),
    ],
)
def test_spans(text: str, word: str, spans: list[tuple[int, int]] | None) -> None:
    if spans is None:
        with pytest.raises(RegardError, match="is not in the text"):
            find_spans(text, word)
    else:
        assert find_spans(text, word) == spans


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("bunk", "word 'bunk' is not in the text 'A river bank': the nearest are 'bank'"),
        ("xyz", "its words are 'A', 'river', 'bank'"),
        (" ", "word is empty: pass a word of the text"),
    ],
)
def test_what_is_refused(word: str, says: str) -> None:
    with pytest.raises(RegardError, match=says):
        find_spans("A river bank", word)


def test_tokens_of_a_word_are_those_that_share_a_character() -> None:
    text = "embankment"
    tokens = [Token(n, text[a:b], a, b, 0, False) for n, (a, b) in enumerate([(0, 2), (2, 6), (6, 10)])]
    (found,) = find_word(text, tokens, "embankment")
    assert (found.start, found.end, found.tokens) == (0, 10, (0, 1, 2))
    with pytest.raises(RegardError, match="word 'embankment' has no token"):
        find_word(text, [Token(0, "", 0, 0, None, True)], "embankment")


def test_names_in_messages() -> None:
    assert (which_text(2, 3), which_text(1, 1)) == (" 2", "")
    assert str(word_in_neither_text("a", "b", " 2")) == "text 2: a; target 2: b"
    assert words_of("It's a well-known bank, a bank") == ["It's", "a", "well", "known", "bank"]


@given(st.text(alphabet="aBz é_1²\u0301\xad\u200d\u200f.'’:-🇩👩水คำタ한ᄒ\u1161", max_size=12))
def test_every_word_that_is_suggested_is_found(text: str) -> None:
    for word in words_of(text):
        assert word in [text[start:end] for start, end in find_spans(text, word)]


@given(st.text(alphabet="aB é_1 .'\n-", max_size=60))
def test_words_of_an_index_are_runs_as_a_search_finds_them(text: str) -> None:
    assert list(word_spans(text)) == [match.span() for match in re.finditer(r"\w+", text)]


def test_marks_belong_to_words_and_scripts_without_blanks_have_a_word_for_each_character() -> None:
    text = "cafe\u0301 हिन्दी 東京の x東 می\u200cخواهم don’t タク"
    assert [text[start:end] for start, end in word_spans(text)] == [
        "cafe\u0301", "हिन्दी", "東", "京", "の", "x", "東", "می\u200cخواهم", "don", "t", "タ", "ク",
    ]  # fmt: skip


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
    edges = boundaries(text) | {at for at in others if at <= len(text)}
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
