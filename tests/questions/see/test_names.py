from regard.explain.vectors.neutral import Neutral
from regard.questions.see.names import called, name_of, ranged, state_name


def test_a_token_has_a_number_where_another_is_spelled_the_same(minilm) -> None:
    tokens = minilm.trace("the bank by the bank").tokens
    assert [called(n, tokens) for n in (1, 2, 3, 5)] == ["the (1)", "bank (2)", "by", "bank (5)"]


def test_ranges_states_and_tables() -> None:
    neutral = Neutral("river", 12, [0.1, 0.34], [0.0, 0.285], [0.2, -0.0001])
    assert ranged(neutral, 2) == "0.34 (0.28 to 0.00)"
    assert ranged(Neutral("river", 12, [None], [None], [None]), 2) == "– (– to –)"
    assert [state_name(n) for n in (0, 1, 6)] == ["enters layer 0", "after layer 0", "after layer 5"]
    assert [name_of("Says", side) for side in ("text", "target")] == ["Says", "Says of targets"]
