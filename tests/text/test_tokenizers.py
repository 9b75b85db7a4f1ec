"""Tokenizers of one's own: their vocabularies by hand, texts there and back, padding, and their files."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from regard.models.load import load_tokenizer
from regard.text import tokenizers
from regard.text.tokenizers import BertTokenizer
from regard.text.tokens import encode, encode_all, encode_parts
from regard.text.words import find_word

TEXTS = ["Life is short, eat dessert first!", "A man is fishing on a river bank."]
KINDS: dict[str, Callable[..., Any]] = {
    "words": tokenizers.words,
    "characters": tokenizers.characters,
    "byte_pairs": lambda texts, **rest: tokenizers.byte_pairs(texts, size=400, **rest),
    "word_pieces": lambda texts, **rest: tokenizers.word_pieces(texts, **({"size": 120, "frame": "none"} | rest)),
}


def test_words_are_the_textbooks_dictionary() -> None:
    """Sorted words, numbered from 0, as the books have it: {s: i for i, s in enumerate(sorted(set(words)))}."""
    sentence = "Life is short eat dessert first"
    tokenizer = tokenizers.words(sentence)
    book = {word: n for n, word in enumerate(sorted(sentence.split()))}
    assert tokenizer("Life is short eat dessert first")["input_ids"] == [book[word] for word in sentence.split()]
    assert {word: n for word, n in tokenizer.get_vocab().items() if n < 6} == book
    assert (tokenizer.pad_token_id, tokenizer.unk_token_id, len(tokenizer)) == (6, 7, 8)


def test_words_of_a_text() -> None:
    tokenizer = tokenizers.words([*TEXTS, "a river, a river"], lower=True, most=3)
    assert [token for token, n in sorted(tokenizer.get_vocab().items(), key=lambda t: t[1])] == [
        ",",
        "a",
        "river",
        "[PAD]",
        "[UNK]",
    ]
    encoded = encode(tokenizer, "A River, a brook")
    assert encoded.unknown == ("brook",)
    assert [(t.text, t.start, t.end, t.special) for t in encoded.tokens] == [
        ("a", 0, 1, False),
        ("river", 2, 7, False),
        (",", 7, 8, False),
        ("a", 9, 10, False),
        ("[UNK]", 11, 16, False),
    ]


def test_characters() -> None:
    text = "To be,\n or  not?"
    tokenizer = tokenizers.characters(text)
    ids = tokenizer(text)["input_ids"]
    assert ids == [sorted(set(text)).index(character) for character in text]
    assert tokenizer.decode(ids) == text
    encoded = encode(tokenizer, "not Zo")
    assert encoded.unknown == ("Z",)
    assert [t.word for t in encoded.tokens] == [0, 0, 0, 1, 2, 2]
    assert find_word("not Zo", encoded.tokens, "not")[0].tokens == (0, 1, 2)


@pytest.mark.parametrize("text", ["ab cd", "  Ünïcode 漢字 \n\t🙂 line", "de­f\x00g"])
def test_bytes_know_every_text(text: str) -> None:
    tokenizer = tokenizers.byte_pairs(TEXTS, size=300)
    ids = tokenizer(text)["input_ids"]
    assert tokenizer.decode(ids) == text
    assert encode(tokenizer, text).unknown == ()
    assert len(tokenizer) <= 300
    assert len(tokenizers.byte_pairs("is is is is", size=300)("is is")["input_ids"]) == 2  # merges were learned


def test_word_pieces() -> None:
    tokenizer = tokenizers.word_pieces(["fishing fisher fish", "Working worker work"] * 3, size=60)
    encoded = encode(tokenizer, "Fish works Ω")
    assert (encoded.tokens[0].text, encoded.tokens[0].special) == ("[CLS]", True)
    assert [t.text for t in encoded.tokens][-2:] == ["[UNK]", "[SEP]"]
    assert any(t.text.startswith("##") for t in encoded.tokens)
    assert encoded.segments == (0,) * len(encoded.tokens)
    pair = tokenizer("fish", "work")
    assert pair["token_type_ids"][0] == 0
    assert pair["token_type_ids"][-1] == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("frame", "around"), [("none", ([], [])), ("end", ([], ["[EOS]"])), ("both", (["[BOS]"], ["[EOS]"]))]
)
def test_what_stands_round_a_text(kind: str, frame: str, around: tuple[list[str], list[str]]) -> None:
    bare, framed = KINDS[kind](TEXTS), KINDS[kind](TEXTS, frame=frame)
    inside = bare.convert_ids_to_tokens(bare(TEXTS[1])["input_ids"])
    assert framed.convert_ids_to_tokens(framed(TEXTS[1])["input_ids"]) == [*around[0], *inside, *around[1]]
    special = [t.text for t in encode(framed, TEXTS[1]).tokens if t.special]
    assert special == [*around[0], *around[1]]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("frame", ["none", "both", "bert"])
def test_files_there_and_back(kind: str, frame: str, tmp_path: Path) -> None:
    made = KINDS[kind](TEXTS, frame=frame)
    for name, text in tokenizers.tokenizer_files(made).items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    read = tokenizers.read_tokenizer(tmp_path)
    text = "A man is fishing, 漢!"
    assert encode(read, text) == encode(made, text)
    assert read.get_vocab() == made.get_vocab()
    assert read.special_tokens_map == made.special_tokens_map
    (tmp_path / "tokenizer_config.json").unlink()  # its usual tokens are known by their names
    assert tokenizers.read_tokenizer(tmp_path).special_tokens_map == made.special_tokens_map


@pytest.mark.parametrize("kind", KINDS)
def test_training_twice_gives_the_same(kind: str) -> None:
    assert KINDS[kind](TEXTS * 5).get_vocab() == KINDS[kind](TEXTS * 5).get_vocab()


def test_padding_is_told_by_the_mask() -> None:
    tokenizer = tokenizers.words(TEXTS, frame="end")
    batch = tokenizers.batch(tokenizer, ["is short", "A"])
    is_, short, a, end, pad = (tokenizer.convert_tokens_to_ids(t) for t in ("is", "short", "A", "[EOS]", "[PAD]"))
    assert batch.ids.tolist() == [[is_, short, end], [a, end, pad]]
    assert batch.mask.tolist() == [[True, True, True], [True, True, False]]
    literal = tokenizers.batch(tokenizer, ["is [PAD]"])  # a text may say it; it is still one of its tokens
    assert literal.mask.all()
    assert torch.equal(literal.ids, torch.tensor([[is_, pad, end]]))


@pytest.mark.parametrize(
    ("act", "says"),
    [
        (
            lambda: tokenizers.word_pieces(TEXTS, size=20),
            "there is room for 15 pieces, but the texts have",
        ),
        (lambda: tokenizers.words([]), "got only blanks"),
        (lambda: tokenizers.characters([" ", "\n"]), "got only blanks"),
        (lambda: tokenizers.byte_pairs(["a", b"b"]), "text 2: got bytes, expected a string"),
        (
            lambda: tokenizers.byte_pairs(TEXTS, size=200),
            "size: got 200, expected an integer of 257 or more, for the 256",
        ),
        (lambda: tokenizers.word_pieces(TEXTS, size=5), "size: got 5, expected an integer of 6 or more, for 5 special"),
        (lambda: tokenizers.words(TEXTS, most=0), "most: got 0, expected an integer of 1 or more"),
        (lambda: tokenizers.batch(tokenizers.words(TEXTS), []), "texts: got none"),
        (lambda: tokenizers.batch(tokenizers.words(TEXTS), ["is", " "]), "text 2: it has no tokens left"),
    ],
)
@pytest.mark.usefixtures("no_checks_of_annotations")
def test_what_does_not_fit_is_refused(act: Callable[[], Any], says: str) -> None:
    with pytest.raises(regard.RegardError, match=says):
        act()


@pytest.mark.usefixtures("no_checks_of_annotations")
def test_a_broken_file_is_named(tmp_path: Path) -> None:
    files = tokenizers.tokenizer_files(tokenizers.words(TEXTS))
    (tmp_path / "tokenizer.json").write_text(files["tokenizer.json"][:100])
    with pytest.raises(regard.RegardError, match="tokenizer.json' cannot be read"):
        tokenizers.read_tokenizer(tmp_path)
    (tmp_path / "tokenizer.json").write_text(files["tokenizer.json"])
    (tmp_path / "tokenizer_config.json").write_text("{")
    with pytest.raises(regard.RegardError, match="tokenizer_config.json' cannot be read"):
        tokenizers.read_tokenizer(tmp_path)
    with pytest.raises(regard.RegardError, match="got a int, expected a fast tokenizer"):
        tokenizers.tokenizer_files(3)
    with pytest.raises(regard.RegardError, match="frame: got 'begin', expected 'none' or 'end' or 'both' or"):
        tokenizers.words(TEXTS, frame="begin")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAA"}}, "tokenizer.json' cannot be read"),
        ({"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "("}, "behavior": "Isolated", "invert": False}},
         "Oniguruma error"),
        ({"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a+)+Z"}, "behavior": "Isolated", "invert": False}},
         "the tokenizer cannot read the text: "),
        ({"model": {"type": "WordPiece"}}, "tokenizer.json' cannot be read"),
    ],
)  # fmt: skip
def test_a_panic_of_the_library_is_one_line(tmp_path: Path, changes: dict[str, Any], says: str) -> None:
    for name, content in tokenizers.tokenizer_files(tokenizers.words(TEXTS)).items():
        (tmp_path / name).write_text(content, "utf-8")
    file = tmp_path / "tokenizer.json"
    file.write_text(json.dumps(json.loads(file.read_text("utf-8")) | changes), "utf-8")
    with pytest.raises(regard.RegardError, match=says) as error:
        encode(tokenizers.read_tokenizer(tmp_path), f"A bank {'a' * 40}")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("settings", [{"unk_token": 5}, {"cls_token": ["x"]}, {"model_input_names": 5}, []])
def test_settings_of_other_types_are_one_line(tmp_path: Path, settings: object) -> None:
    for name, content in tokenizers.tokenizer_files(tokenizers.words(TEXTS)).items():
        (tmp_path / name).write_text(content, "utf-8")
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    with pytest.raises(regard.RegardError) as error:
        encode(tokenizers.read_tokenizer(tmp_path), "the bank")
    assert "\n" not in str(error.value)


ODD = ["Zürich, ﬁne İstanbul ΑΣ", "e\u0301cole 銀行\t\u200b x 3.14", "A [MASK] b [SEP] c", "x" * 150, "🙂 ☃ \ufffd"]


def test_texts_are_read_as_transformers_reads_them(minilm: Any) -> None:
    ours, theirs = load_tokenizer(), minilm.tokenizer
    assert isinstance(ours, BertTokenizer)
    assert encode_all(ours, ODD) == encode_all(theirs, ODD)
    for pair in (True, False):
        assert encode_parts(ours, ODD[:2], pair=pair) == encode_parts(theirs, ODD[:2], pair=pair)
    assert ours.num_special_tokens_to_add(pair=True) == theirs.num_special_tokens_to_add(pair=True) == 3
