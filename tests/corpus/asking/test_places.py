import numpy as np
import pytest

from regard.corpus.asking.places import POOLINGS, Place, embed_places
from regard.errors import RegardError
from tests.support import MONEY, RIVER


def test_embeddings_are_those_of_the_trace(minilm) -> None:
    text = "He was withdrawing unfathomably."
    start = text.index("unfath")
    places = [
        Place(RIVER, RIVER.index("bank"), RIVER.index("bank") + 4),
        Place(text, start, start + len("unfathomably")),
    ]
    found = embed_places(minilm, places, [2, 5])
    assert found.shape == (2, 2, len(POOLINGS), 384)
    trace = minilm.trace(RIVER)
    for pooling in range(3):  # a word of one token
        np.testing.assert_allclose(found[0, 1, pooling], trace["bank"].numpy(), atol=1e-5)
    trace = minilm.trace(text)
    (word,) = trace.word("unfathomably")
    assert len(word.tokens) > 1
    rows = trace.hidden_states[3][list(word.tokens)].numpy()
    np.testing.assert_allclose(found[1, 0], [rows.mean(0), rows[0], rows[-1]], atol=1e-5)


def test_many_places_keep_their_order(minilm) -> None:
    one, other = Place(RIVER, 6, 7), Place(MONEY, 8, 12)
    found = embed_places(minilm, [one, other] * 20, [5])
    np.testing.assert_allclose(found[::2], np.broadcast_to(found[:1], found[::2].shape), atol=1e-5)
    np.testing.assert_allclose(found[1::2], np.broadcast_to(found[1:2], found[1::2].shape), atol=1e-5)
    assert np.abs(found[0] - found[1]).max() > 0.1


def test_a_word_without_a_token_is_refused(minilm) -> None:
    with pytest.raises(RegardError, match="reached no token"):
        embed_places(minilm, [Place("a \u200b b", 2, 3)], [5])
