from regard.text.tokens import Token
from regard.web.texts import text_data

TOKENS = [Token(1, "[CLS]", 0, 0, None, True), Token(2, "play", 0, 4, 0, False), Token(3, "ing", 4, 7, 0, False)]


def test_a_text_has_its_tokens_by_columns() -> None:
    assert text_data("text 1", "playing", TOKENS, {2}) == {
        "name": "text 1",
        "text": "playing",
        "direction": "ltr",
        "tokens": {
            "text": ["[CLS]", "play", "ing"],
            "start": [0, 0, 4],
            "end": [0, 4, 7],
            "special": [0],
            "sinks": [2],
            "word": [None, 0, 0],
        },
    }
