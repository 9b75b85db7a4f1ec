"""What a shard holds of its documents, against traces of the same texts: vectors, statistics, sources and places."""

import random
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import regard
from regard.corpus.reading.document import Document
from regard.corpus.schema import TOP
from regard.corpus.settings import Settings, Where, chosen_layers_to_store
from regard.corpus.writing.build_shard import DocumentReader, build_shard
from regard.corpus.writing.cut_windows import window_of_each_word, window_size
from regard.corpus.writing.store_folder import ShardTables
from regard.models.model import Model
from regard.models.states import count_layers
from tests.support import MONEY, RIVER, make_tiny, own_models
from tests.support.corpora import WORDS

FULL = Settings(dtype="float32", layers=())
CLOSE = {"rtol": 0, "atol": 1e-5}
LONG = " ".join(random.Random(1).choices(WORDS, k=120)) + "."


@pytest.fixture(scope="module", params=["minilm", "gpt2", "own-bert", "own-gpt"])
def model(request: pytest.FixtureRequest, minilm: Model, tmp_path_factory: pytest.TempPathFactory) -> Model:
    """Models that look both ways and back alone, of transformers and regard's own."""
    if request.param == "minilm":
        return minilm
    if request.param.startswith("own"):
        return own_models.opened(request.param.removeprefix("own-"))
    folder = tmp_path_factory.mktemp("models") / request.param
    sizes = {"n_positions": 31, "n_embd": 24, "n_layer": 2, "n_head": 3, "n_inner": 37}
    make_tiny(folder, minilm, request.param, **sizes)
    return regard.load(folder, device="cpu")


def shard(model: Model, texts: Sequence[str], settings: Settings = FULL, start: int = 0) -> ShardTables:
    """The shard of texts that are documents named by their numbers."""
    layers = chosen_layers_to_store(settings.layers, count_layers(model), model.name)
    reading = DocumentReader(model, layers, window_size(model, settings), settings)
    return build_shard(reading, [Document(f"{n:03}", text, start, "a.txt", n, {}) for n, text in enumerate(texts)])


def by_place(tables: ShardTables) -> dict[tuple[str, int], tuple[dict[str, Any], np.ndarray]]:
    """A shard's rows and their vectors, by document and start."""
    rows = tables.rows.to_pylist()
    return {(row["document"], row["start"]): (row, tables.vectors[n]) for n, row in enumerate(rows)}


def check_row(trace: Any, row: dict[str, Any], vector: np.ndarray, *, sources: bool = False) -> None:
    """Check a row against the trace of its window."""
    own = slice(row["position"], row["position"] + row["tokens"])
    states = [*trace.hidden_states[1:-1], trace.last_hidden_state]
    expected = np.stack([state[own].mean(0).numpy() for state in states])
    np.testing.assert_allclose(vector, expected, **CLOSE)
    special = [n for n, token in enumerate(trace.tokens) if token.special]
    for layer, weights in enumerate(trace.attention):
        dense = weights.dense()
        assert row["entropy"][layer] == pytest.approx(float(weights.entropy()[:, own].mean()), abs=1e-5)
        assert row["distance"][layer] == pytest.approx(float(weights.distance()[:, own].mean()), abs=1e-4)
        assert row["received"][layer] == pytest.approx(float(weights.received()[:, own].mean(0).sum()), abs=1e-4)
        share = dense[:, own][:, :, special].sum(-1).mean() if special else 0
        assert row["special"][layer] == pytest.approx(float(share), abs=1e-5)
        if sources:
            mean = dense[:, own].mean((0, 1)).numpy()
            found = row["source_weight"][layer * TOP : (layer + 1) * TOP]
            top = np.sort(mean)[::-1][:TOP]
            np.testing.assert_allclose(found[: len(top)], top, **CLOSE)


def test_words_and_their_places(model: Model) -> None:
    texts = [RIVER, MONEY, "A bank, the BANK; a riverbank's bank!"]
    tables = shard(model, texts)
    found = sorted(by_place(tables))
    dropped = {(row["document"], row["start"]) for row in tables.spans.to_pylist() if row["kind"] == "dropped"}
    expected = {(f"{n:03}", match.start()) for n, text in enumerate(texts) for match in re.finditer(r"\w+", text)}
    assert {*found} | dropped == expected
    for (document, start), (row, _) in by_place(tables).items():
        text = texts[int(document)]
        assert text[start : row["end"]] == row["form"]
        assert row["word"] == row["form"].casefold()
    keys = [(row["word"], row["document"], row["start"]) for row in tables.rows.to_pylist()]
    assert keys == sorted(keys)


def test_the_trace_of_the_same_text(model: Model) -> None:
    texts = [RIVER, MONEY]
    for (document, _), (row, vector) in by_place(shard(model, texts)).items():
        assert row["window"] == 0
        check_row(model.trace(texts[int(document)]), row, vector)


def test_alone_in_any_batch_and_in_any_order(model: Model) -> None:
    draw = random.Random(3)
    texts = [" ".join(draw.choices(WORDS, k=draw.randint(1, 12))) for _ in range(12)] + [RIVER, MONEY, RIVER]
    together = by_place(shard(model, texts))
    order = draw.sample(range(len(texts)), len(texts))
    mixed = by_place(shard(model, [texts[n] for n in order]))
    for place, number in enumerate(order):
        alone = by_place(shard(model, [texts[number]]))
        for (_, start), (row, vector) in alone.items():
            for other, name in ((together, f"{number:03}"), (mixed, f"{place:03}")):
                held, given = other[name, start]
                np.testing.assert_allclose(given, vector, **CLOSE)
                for statistic in ("entropy", "received", "distance", "special"):
                    np.testing.assert_allclose(held[statistic], row[statistic], rtol=1e-5, atol=1e-5)
    assert len(mixed) == len(together)


def test_windows_that_overlap(model: Model) -> None:
    settings = Settings(dtype="float32", layers=(), window=20, stride=9)
    tables = shard(model, [LONG], settings, start=1000)
    trace = model.trace(LONG, window=20, stride=9)
    assert len(trace.windows) > 5
    rows = by_place(tables)
    causal = window_size(model, settings).causal
    own = [n for n, token in enumerate(trace.tokens) if not token.special and token.end > token.start]
    expected = set()
    for match in re.finditer(r"\w+", LONG):
        held = [n for n in own if trace.tokens[n].start < match.end() and trace.tokens[n].end > match.start()]
        ends = np.array([held[0]]), np.array([held[-1]])
        window = int(window_of_each_word(*ends, trace.spans, causal)[0])
        if window < 0:
            continue
        expected.add(("000", 1000 + match.start()))
        row, vector = rows["000", 1000 + match.start()]
        assert (row["form"], row["end"]) == (match.group(), 1000 + match.end())
        assert (row["window"], row["tokens"]) == (window, len(held))
        assert row["position"] == held[0] - trace.plan.shift(window)
        check_row(trace.windows[window], row, vector)
    assert set(rows) == expected
    kinds = [row["kind"] for row in tables.spans.to_pylist()]
    assert len(rows) + kinds.count("long") + kinds.count("dropped") == len(re.findall(r"\w+", LONG))


def test_words_longer_than_what_windows_share() -> None:
    """They are not cut: they have no vector, and spans.parquet says where they stand."""
    model = own_models.opened("gpt")
    tables = shard(model, [LONG], Settings(window=8, stride=6))
    found = {(row["start"], row["kind"]) for row in tables.spans.to_pylist()}
    starts = {match.start() for match in re.finditer(r"\w+", LONG)}
    missing = starts - {start for _, start in by_place(tables)}
    assert missing == {start for start, kind in found if kind in ("long", "dropped")}


def test_some_words_have_the_same_vectors_and_their_sources(model: Model) -> None:
    texts = [RIVER, MONEY, LONG]
    window = min(model.limit or 64, 64)
    settings = Settings(dtype="float32", layers=(), window=window, stride=window // 2)
    every = by_place(shard(model, texts, settings))
    wanted = ("bank", "river", "unfathomable")
    some = Settings(dtype="float32", layers=(), window=window, stride=window // 2, where=Where("word", wanted))
    tables = shard(model, texts, some)
    kept = by_place(tables)
    assert {*kept} == {place for place, (row, _) in every.items() if row["word"] in wanted}
    assert len(kept) > 4
    for place, (row, vector) in kept.items():
        np.testing.assert_allclose(vector, every[place][1], **CLOSE)
        trace = model.trace(texts[int(place[0])], window=window, stride=window // 2)
        own = trace.windows[row["window"]]
        check_row(own, row, vector, sources=True)
        shift = trace.tokens[trace.spans[row["window"]][0]].start - own.tokens[trace.plan.before].start
        for layer, weights in enumerate(own.attention):
            mean = weights.dense()[:, row["position"] : row["position"] + row["tokens"]].mean((0, 1))
            for n in range(layer * TOP, (layer + 1) * TOP):
                start, end, weight = (row[name][n] for name in ("source_start", "source_end", "source_weight"))
                if start < 0:
                    assert end == -1
                    of = [k for k, token in enumerate(own.tokens) if token.special]
                else:
                    of = [
                        k
                        for k, token in enumerate(own.tokens)
                        if not token.special and (token.start + shift, token.end + shift) == (start, end)
                    ]
                    assert of
                if weight > 0 and of:
                    assert min(abs(float(mean[k]) - weight) for k in of) < 1e-5


def test_tokens(model: Model) -> None:
    tables = shard(model, [RIVER], Settings(unit="tokens", dtype="float32", layers=()))
    trace = model.trace(RIVER)
    own = [token for token in trace.tokens if not token.special and token.end > token.start]
    rows = by_place(tables)
    assert sorted(start for _, start in rows) == [token.start for token in own]
    for row, vector in rows.values():
        assert row["tokens"] == 1
        check_row(trace, row, vector)


def test_what_is_not_read_as_it_stands(minilm: Model) -> None:
    tables = shard(minilm, ["a \U0001fae8 bank [SEP] \u200b\u200b here", "\u200b"])
    found = [(row["document"], row["kind"], row["text"]) for row in tables.spans.to_pylist()]
    assert ("000", "unknown", "\U0001fae8") in found
    assert ("000", "special", "[SEP]") in found
    assert ("001", "dropped", "\u200b") in found
    assert tables.texts.num_rows == 2


def test_float16_is_the_nearest(minilm: Model) -> None:
    half, full = (by_place(shard(minilm, [RIVER], Settings(dtype=dtype))) for dtype in ("float16", "float32"))
    for place, (_, vector) in half.items():
        assert vector.dtype == np.float16
        np.testing.assert_array_equal(vector, full[place][1].astype(np.float16))


def test_lemmas(minilm: Model) -> None:
    settings = Settings(lemma="en", where=Where("lemma", ("swim",)))
    rows = shard(minilm, ["A whale swam, whales swim."], settings).rows.to_pylist()
    assert [(row["form"], row["lemma"]) for row in rows] == [("swam", "swim"), ("swim", "swim")]
