import pytest

from regard.errors import RegardError
from regard.tokens import Token, check_text, encode, encoded_ids, find_word, words_of


def spelled(model, text: str, word: str) -> list[tuple[str, list[str]]]:
    encoded = encode(model.tokenizer, text)
    return [(w.text, [encoded.tokens[n].text for n in w.tokens]) for w in find_word(text, encoded.tokens, word)]


def test_tokens_carry_ids_characters_words_and_specials(minilm) -> None:
    encoded = encode(minilm.tokenizer, "Bank withdrawals!")
    assert [t.text for t in encoded.tokens] == ["[CLS]", "bank", "withdrawal", "##s", "!", "[SEP]"]
    assert [(t.start, t.end) for t in encoded.tokens[1:5]] == [(0, 4), (5, 15), (15, 16), (16, 17)]
    assert [t.word for t in encoded.tokens] == [None, 0, 1, 1, 2, None]
    assert [t.special for t in encoded.tokens] == [True, False, False, False, False, True]
    assert encoded.ids[0] == 101
    assert encoded.ids[-1] == 102


@pytest.mark.parametrize(
    ("text", "word", "found"),
    [
        ("two withdrawals there", "withdrawals", [("withdrawals", ["withdrawal", "##s"])]),
        ("the bank by the bank", "bank", [("bank", ["bank"]), ("bank", ["bank"])]),
        ("The Bank is a bank, not a banker", "bank", [("Bank", ["bank"]), ("bank", ["bank"])]),
        ("The Bank is a bank", "Bank", [("Bank", ["bank"])]),
        ("only a bank", "Bank", [("bank", ["bank"])]),
        ("a café there", "café", [("café", ["cafe"])]),
        ("a cafe\u0301 there", "café", [("cafe\u0301", ["cafe"])]),
        ("a café there", "cafe\u0301", [("café", ["cafe"])]),
        ("I saw 🙂 there", "🙂", [("🙂", ["[UNK]"])]),
        ("他在河边", "河", [("河", ["河"])]),
        ("他在山上水", "山上", [("山上", ["山", "上"])]),
        ("Bob's cake", "Bob's", [("Bob's", ["bob", "'", "s"])]),
        ("Bob's cake", "Bob", [("Bob", ["bob"])]),
        ("a river bank", "river bank", [("river bank", ["river", "bank"])]),
        ("GROSSE STRASSE", "straße", [("STRASSE", ["strasse"])]),
        ("e-mail and mail", "mail", [("mail", ["mail"]), ("mail", ["mail"])]),
    ],
)
def test_word_finds_the_right_spans(minilm, text: str, word: str, found: list[tuple[str, list[str]]]) -> None:
    got = spelled(minilm, text, word)
    assert [w for w, _ in got] == [w for w, _ in found]
    assert ["".join(p.removeprefix("##") for p in t) for _, t in got] == [
        "".join(p.removeprefix("##") for p in t) for _, t in found
    ]


def test_a_family_emoji_is_no_man(minilm) -> None:
    text = "the 👨‍👩‍👧 and the 👨"
    encoded = encode(minilm.tokenizer, text)
    assert [w.start for w in find_word(text, encoded.tokens, "👨")] == [text.rindex("👨")]


def test_a_word_that_is_not_there_names_the_nearest(minilm) -> None:
    text = "a fisherman on the river bank"
    encoded = encode(minilm.tokenizer, text)
    with pytest.raises(RegardError, match=r"'bunk' is not in the text .*nearest are 'bank'"):
        find_word(text, encoded.tokens, "bunk")
    with pytest.raises(RegardError, match=r"its words are 'a', 'fisherman'"):
        find_word(text, encoded.tokens, "zzzz")
    with pytest.raises(RegardError, match="word is empty"):
        find_word(text, encoded.tokens, "  ")


def test_a_word_whose_characters_are_dropped() -> None:
    tokens = [Token(1, "a", 0, 1, 0, False)]
    with pytest.raises(RegardError, match="reached no token"):
        find_word("a b", tokens, "b")


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
        (7, "given int, needs to be a string"),
    ],
)
def test_texts_that_are_none(text: object, says: str) -> None:
    with pytest.raises(RegardError, match=says):
        check_text(text)


def test_a_text_of_dropped_characters_only_is_refused(minilm) -> None:
    with pytest.raises(RegardError, match="no token of its own is left"):
        encode(minilm.tokenizer, "\u0001\u0002")


def test_special_tokens_in_the_text_are_said(minilm) -> None:
    encoded = encode(minilm.tokenizer, "a [SEP] bank")
    assert encoded.tokens[2].special
    assert encoded.notes == ("[SEP] in the text is read as a special token",)
    with pytest.raises(RegardError, match="made of special tokens alone"):
        encode(minilm.tokenizer, "[MASK]")


def test_ids_are_words_of_their_own() -> None:
    encoded = encoded_ids([17, 5, 17])
    assert encoded.ids == [17, 5, 17]
    assert [w.tokens for w in find_word(encoded.text, encoded.tokens, "17")] == [(0,), (2,)]


def test_words_of_a_text() -> None:
    assert words_of("Bob's e-mail, Bob's bank!") == ["Bob's", "e-mail", "bank"]
