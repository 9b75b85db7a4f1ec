import pytest

from regard.explain.wording import (
    agreement,
    as_among,
    called,
    in_plot,
    listed,
    named,
    number,
    numbered,
    quoted,
    signed,
    word_numbered,
)
from regard.text.tokens import Token, Turn, tokens_in_turns
from tests.support import in_text


def test_lists_and_quotes() -> None:
    assert [listed(list("abc"[:n])) for n in range(4)] == ["", "a", "a and b", "a, b and c"]
    assert [quoted(text) for text in (" bank", "  ", "\n ")] == ["“bank”", "a blank", "a line break"]


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.0, "0.00"), (0.31, "0.31"), (3.14159, "3.14"), (0.0602, "0.060"), (0.00313, "0.0031"), (1e-12, "<0.000000001")],
)
def test_small_numbers_keep_two_digits(value: float, shown: str) -> None:
    assert number(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (10.93, "10.93"),
        (20.004, "20.00"),
        (100.0, "100.00"),
        (-0.5, "−.50"),
        (0.5, ".50"),
        (-10.02, "−10.02"),
        (0.0, ".00"),
    ],
)
def test_a_cell_of_a_plot_leaves_out_the_zero_before_the_point_alone(value: float, shown: str) -> None:
    assert in_plot(value, 2) == shown
    assert [in_plot(0.997, 2), in_plot(0.004, 2)] == [">.99", "<.01"]


def test_signs() -> None:
    assert [signed(each) for each in (0.5, -0.004, 0.0, -0.0)] == ["+0.50", "−0.0040", "0.00", "0.00"]
    assert [signed(each, ".2f") for each in (0.5, -0.006, 0.004, -0.004)] == ["+0.50", "−0.01", "0.00", "0.00"]


def test_an_entropy_is_a_count_of_equal_weights() -> None:
    assert as_among(0.0) == "1.0"
    assert as_among(2.302585) == "10.0"


def test_how_well_rankings_agree() -> None:
    assert [agreement(c) for c in (0.95, 0.6, 0.3, 0.0)] == [
        "nearly as", "roughly as", "only loosely as", "quite otherwise than"
    ]  # fmt: skip


def test_pieces_are_named_with_their_words() -> None:
    pieces = (("Le", 0), ("d", 3), ("or", 4), ("t", 6), (".", 7), ("d", 9))
    found = in_text([Token(n, text, start, start + len(text), None, False) for n, (text, start) in enumerate(pieces)])
    assert [named(found, n) for n in (0, 2, 4)] == ["“Le”", "“or” of “dort”", "“.”"]
    assert [numbered(found, n) for n in (0, 1, 5)] == ["“Le”", "“d” of “dort” (1)", "“d” (5)"]


def test_a_token_of_a_chat_is_named_with_its_message(minilm) -> None:
    plain = minilm.trace("the bank by the bank").tokens
    tokens = tokens_in_turns(plain, [Turn("user", 0, 8, (1, 2)), Turn("assistant", 12, 20, (4, 5))])
    assert [called(n, tokens) for n in (1, 3, 5)] == ["the (1, user 1)", "by", "bank (5, assistant 1)"]
    assert [numbered(tokens, n) for n in (2, 3)] == ["“bank” (2, user 1)", "“by”"]
    assert word_numbered(tokens, (5,), "bank") == "“bank” (5, assistant 1)"
    single = tokens_in_turns(plain[:4], [Turn("user", 0, 8, (1, 2))])
    assert [called(2, single), numbered(single, 2)] == ["bank (user 1)", "“bank” (user 1)"]


def test_a_token_has_a_number_where_another_is_spelled_the_same(minilm) -> None:
    tokens = minilm.trace("the bank by the bank").tokens
    assert [called(n, tokens) for n in (1, 2, 3, 5)] == ["the (1)", "bank (2)", "by", "bank (5)"]
