from regard.explain.findings.pieces import named, numbered
from regard.text.tokens import Token


def test_pieces_are_named_with_their_words() -> None:
    pieces = (("Le", 0), ("d", 3), ("or", 4), ("t", 6), (".", 7), ("d", 9))
    found = [Token(n, text, start, start + len(text), None, False) for n, (text, start) in enumerate(pieces)]
    assert [named(found, n) for n in (0, 2, 4)] == ["“Le”", "“or” of “dort”", "“.”"]
    assert [numbered(found, n) for n in (0, 1, 5)] == ["“Le”", "“d” of “dort” (1)", "“d” (5)"]
