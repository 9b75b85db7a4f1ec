"""Words embedded at places of texts, and what is computed from many vectors at once."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from regard.corpus.asking.occurrences import look_up
from regard.corpus.asking.vectors import (
    BLOCK,
    WordSpan,
    cosines,
    embed_spans,
    find_nearest_rows,
    largest,
    principal_axes,
    read_passage,
    unit,
)
from regard.corpus.embed_texts import embed
from regard.corpus.settings import Settings
from regard.corpus.store import Store
from regard.corpus.writing.cut_windows import WindowSize, cut_texts
from regard.errors import RegardError
from regard.explain.vectors.similarity import plane
from tests.support import MONEY, RIVER
from tests.support.stores import Document, write_store


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("count", [0, 1, BLOCK - 1, BLOCK, 2 * BLOCK + 3])
def test_cosines_are_exact_in_every_block(dtype: type, count: int) -> None:
    random = np.random.default_rng(0)
    whole = random.standard_normal((count, 2, 13)).astype(dtype)
    vectors, query = whole[:, 1], random.standard_normal(13).astype(np.float32)
    exact = vectors.astype(np.float64) @ query / np.linalg.norm(query)
    exact /= np.maximum(np.linalg.norm(vectors.astype(np.float64), axis=1), 1e-30)
    np.testing.assert_allclose(cosines(vectors, query), exact, atol=1e-6)


def test_zero_vectors_have_cosine_zero() -> None:
    assert cosines(np.zeros((2, 3), np.float16), np.ones(3, np.float32)).tolist() == [0, 0]
    assert cosines(np.ones((2, 3), np.float16), np.zeros(3, np.float32)).tolist() == [0, 0]


def test_the_largest_come_first_and_ties_keep_their_order() -> None:
    scores = np.array([1, 5, 3, 5, 2, 5], np.float32)
    assert [largest(scores, top).tolist() for top in (0, 1, 2, 4, 9)] == [
        [], [1], [1, 3], [1, 3, 5, 2], [1, 3, 5, 2, 4, 0]
    ]  # fmt: skip


def test_points_are_those_of_the_plane_of_most_variance() -> None:
    vectors = np.random.default_rng(0).standard_normal((29, 7)).astype(np.float32)
    points, share = principal_axes(vectors, 2)
    expected = plane(torch.from_numpy(unit(vectors)))
    np.testing.assert_allclose(points, expected.place(torch.from_numpy(unit(vectors))), atol=1e-6)
    assert share == pytest.approx(expected.share, abs=1e-6)


def test_order_along_the_first_axis_and_vectors_that_are_alike() -> None:
    points, _ = principal_axes(np.array([[1, 0.3], [1, -0.3], [1, 0.1], [1, 0]], np.float32), 1)
    assert np.argsort(points[:, 0]).tolist() == [1, 3, 2, 0]
    same, share = principal_axes(np.ones((3, 5), np.float32), 2)
    np.testing.assert_allclose(same, 0, atol=1e-6)
    assert all(0 <= each <= 1 for each in share)


def test_they_are_those_of_all_rows(tmp_path: Path) -> None:
    drawn = np.random.default_rng(5)
    shards: list[Any] = []
    for count in (3, 1, 7):
        documents = [Document(f"d{count}-{n}", "one two three") for n in range(count)]
        shards.append((documents, drawn.normal(size=(3 * count, 1, 5)).astype(np.float32)))
    query = drawn.normal(size=5).astype(np.float32)
    with Store(write_store(tmp_path / "s", shards)) as store:
        kept = {(shard, first + n): v for shard, first, some in store.all_vectors() for n, v in enumerate(some)}
        cosines = {
            key: float(v.astype(np.float64) @ query / np.linalg.norm(v.astype(np.float64)) / np.linalg.norm(query))
            for key, v in kept.items()
        }
        for top in (1, 4, 33, 50):
            rows, similarity = find_nearest_rows(store, query, top)
            expected = sorted(cosines, key=lambda key: -cosines[key])[:top]
            found = list(zip(rows.shard, rows.row.tolist(), strict=True))
            assert set(found) == set(expected)
            np.testing.assert_allclose(similarity, [cosines[key] for key in found], atol=1e-3)


SENTENCE = "Number {} sat unbelievably near the bank of a river. "
TEXT = "".join(SENTENCE.format(n) for n in range(30))
WINDOW, STRIDE = 24, 17


def test_embeddings_are_those_of_the_trace(minilm) -> None:
    text = "He was withdrawing unfathomably."
    start = text.index("unfath")
    places = [
        WordSpan(RIVER, RIVER.index("bank"), RIVER.index("bank") + 4),
        WordSpan(text, start, start + len("unfathomably")),
    ]
    found = embed_spans(minilm, places, [2, 5])
    assert found.shape == (2, 2, 384)
    trace = minilm.trace(RIVER)
    np.testing.assert_allclose(found[0, 1], trace["bank"].numpy(), atol=1e-5)
    trace = minilm.trace(text)
    (word,) = trace.word("unfathomably")
    assert len(word.tokens) > 1
    rows = trace.hidden_states[3][list(word.tokens)].numpy()
    np.testing.assert_allclose(found[1, 0], rows.mean(0), atol=1e-5)


def test_many_places_keep_their_order(minilm) -> None:
    one, other = WordSpan(RIVER, 6, 7), WordSpan(MONEY, 8, 12)
    found = embed_spans(minilm, [one, other] * 20, [5])
    np.testing.assert_allclose(found[::2], np.broadcast_to(found[:1], found[::2].shape), atol=1e-5)
    np.testing.assert_allclose(found[1::2], np.broadcast_to(found[1:2], found[1::2].shape), atol=1e-5)
    assert np.abs(found[0] - found[1]).max() > 0.1


def test_a_word_without_a_token_is_refused(minilm) -> None:
    with pytest.raises(RegardError, match="reached no token"):
        embed_spans(minilm, [WordSpan("a \u200b b", 2, 3)], [5])


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, minilm: Any) -> Iterator[Store]:
    folder = tmp_path_factory.mktemp("passages")
    (folder / "texts").mkdir()
    (folder / "texts" / "long.txt").write_text(TEXT, "utf-8")
    (folder / "texts" / "short.txt").write_text("  The left bank.\n", "utf-8")
    embed(folder / "texts", folder / "s", model=minilm, settings=Settings(window=WINDOW, stride=STRIDE))
    with Store(folder / "s") as opened:
        yield opened


def test_a_passage_has_the_tokens_of_its_window(store: Store, minilm: Any) -> None:
    found = look_up(store, "bank")
    [cut] = cut_texts(minilm, [TEXT], WindowSize(WINDOW, STRIDE, False))
    assert cut is not None
    windows = store.sql("SELECT start, \"window\" FROM rows WHERE word = 'bank' AND document LIKE '%long%'").to_pylist()
    of = {each["start"]: each["window"] for each in windows}
    same = 0
    for n in range(len(found)):
        passage, start = read_passage(minilm, found.take([n])), int(found.start[n])
        assert passage.text[passage.start : passage.end] == "bank"
        assert passage.first + passage.start == start
        if "short" in passage.document:
            assert (passage.text, passage.first, passage.same) == ("  The left bank.\n", 0, True)
            continue
        assert TEXT[passage.first : passage.first + len(passage.text)] == passage.text
        trace = minilm.trace(passage.text)
        ids = [token.id for token in trace.tokens]
        window = cut.windows[of[start]].ids
        assert (ids == window) == passage.same
        assert len(ids) <= WINDOW
        if not passage.same:  # the window begins or ends within a word: that word alone is missing
            assert " ".join(map(str, ids[1:-1])) in " ".join(map(str, window))
            assert len(ids) >= WINDOW - 6
        same += passage.same
    assert 0 < same < len(found) - 1  # both kinds were there


def test_what_does_not_fit_is_refused(store: Store, minilm: Any, bank_folder: Path) -> None:
    found = look_up(store, "bank")
    with pytest.raises(RegardError, match="got 31 occurrences, expected one"):
        read_passage(minilm, found)
    last = found.take([len(found) - 2 if "short" in found.document[-1] else len(found) - 1])
    with pytest.MonkeyPatch.context() as patch:  # a store whose manifest tells of other windows than it was read in
        patch.setitem(store.manifest.settings, "window", 512)
        patch.setitem(store.manifest.settings, "stride", None)
        with pytest.raises(RegardError, match="other settings"):
            read_passage(minilm, last)
