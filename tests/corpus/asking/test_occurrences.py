from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from regard.corpus import schema
from regard.corpus.asking.occurrences import look_up, occurrences_at_rows
from regard.corpus.schema import Manifest, ModelSummary
from regard.corpus.settings import Settings, lookup_key
from regard.corpus.store import Store
from regard.corpus.store_tables import StoreTables
from regard.corpus.writing.store_folder import ShardTables, sort_rows, write_shard
from regard.errors import RegardError
from regard.text.words import word_spans
from tests.support.stores import Document, summary_of, write_store


def test_order_vectors_and_contexts(tmp_path: Path) -> None:
    documents = [Document("b", "no end,\n\n the  End and"), Document("a", "END")]
    vectors = np.arange(6, dtype=np.float32).repeat(3).reshape(6, 1, 3)
    with StoreTables(write_store(tmp_path / "s", [(documents, vectors)])) as tables:
        found = look_up(tables, "eNd")
        assert (found.document, found.start.tolist()) == (("b", "b", "a"), [3, 15, 0])
        np.testing.assert_array_equal(found.vectors()[:, 0], [1, 3, 5])
        lines = found.lines(8)
        assert [(line.left, line.form, line.right) for line in lines] == [
            ("no ", "end", ", the "), (" the ", "End", " and"), ("", "END", "")
        ]  # fmt: skip
        assert [line.document for line in found.take([2, 0]).lines(1)] == ["a", "b"]


def test_rows_are_found_by_shard_and_number_in_the_order_given(tmp_path: Path) -> None:
    first, second = [Document("a", "one two one")], [Document("b", "two three")]
    vectors = [np.zeros((n, 1, 3), np.float16) for n in (3, 2)]
    with StoreTables(write_store(tmp_path / "s", [(first, vectors[0]), (second, vectors[1])])) as tables:
        two = look_up(tables, "two")
        assert two.document == ("a", "b")
        a, b = two.row.tolist()
        found = occurrences_at_rows(tables, ["shard1", "shard0", "shard0"], [b, a, a])
        assert (found.document, found.form, found.start.tolist()) == (("b", "a", "a"), ("two",) * 3, [0, 4, 4])
        assert len(occurrences_at_rows(tables, [], [])) == 0
        with pytest.raises(RegardError, match="shard shard1: the embedding index has no row 2"):
            occurrences_at_rows(tables, ["shard0", "shard1"], [2, 2])
        with pytest.raises(RegardError, match="got 2 rows of 1 shards"):
            occurrences_at_rows(tables, ["shard0"], [0, 1])


TEXTS = {
    "a": "I don't know the bank's rate. The\n Bank is shut: don t.",
    "b": "A bank-holiday, no bank holiday. Don’t bank on it; the river bank, not a bank.",
    "c": "他去银行。河岸 Cafe\u0301-bar. C++ and C.",
}
RUNS = {
    "don't": ["don't", "Don’t"],
    "DON’T": ["don't", "Don’t"],
    "bank's": ["bank's"],
    "bank-holiday": ["bank-holiday"],
    "bank holiday": ["bank holiday"],
    "the bank": ["the bank", "The Bank"],
    "the  bank": ["the bank", "The Bank"],
    "the river bank": ["the river bank"],
    "银行": ["银行"],
    "café-bar": ["Cafe\u0301-bar"],
    "c++": ["C"],
    "bank.": ["bank"],
}


def store_of(folder: Path, texts: dict[str, str], settings: dict, kept: tuple[str, ...] = ()) -> Path:
    """A store of words as `regard embed` cuts them. kept: these alone, as --where keeps them."""
    rows = [
        {"word": lookup_key(text[start:end]), "form": text[start:end], "lemma": None, "document": name, "part": part,
         "start": start, "end": end, "window": 0, "position": n + 1, "tokens": 1}
        for part, (name, text) in enumerate(texts.items())
        for n, (start, end) in enumerate(word_spans(text))
        if not kept or lookup_key(text[start:end]) in kept
    ]  # fmt: skip
    table = pa.Table.from_pylist(rows, schema=schema.rows(6, statistics=False, sources=False))
    parts = [
        {"document": name, "start": 0, "end": len(text), "text": text, "source": "a.txt", "line": None, "metadata": []}
        for name, text in texts.items()
    ]
    table, vectors = sort_rows(table, np.ones((len(rows), 1, 7), np.float16))
    tables = ShardTables(
        pa.Table.from_pylist(parts, schema=schema.texts()), table, vectors, schema.spans().empty_table()
    )
    write_shard(folder / "shards", "s", tables)
    summaries = [summary_of(folder / "shards" / "s", len(texts), len(rows))]
    settings = Settings(statistics=False).to_json() | settings
    Manifest(ModelSummary("made", "made", "", 6, 12, 7), settings, {}, [], [5], summaries, complete=True).write(folder)
    return folder


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    folder = store_of(tmp_path_factory.mktemp("stores") / "s", TEXTS, {})
    with Store(folder) as opened:
        yield opened


@pytest.mark.parametrize("asked", RUNS)
def test_what_stands_in_the_texts_is_found_where_it_stands(store: Store, asked: str) -> None:
    found = look_up(store, asked)
    texts = [TEXTS[name][a:b] for name, a, b in zip(found.document, found.start, found.end, strict=True)]
    assert [" ".join(text.split()) for text in texts] == RUNS[asked]
    assert list(found.form) == RUNS[asked]


def test_runs_of_the_texts_words_are_found_where_they_stand(store: Store) -> None:
    """Held against the texts themselves, word by word."""
    for length, name in ((2, "a"), (3, "b"), (2, "c")):
        text, spans = TEXTS[name], list(word_spans(TEXTS[name]))
        for n in range(0, len(spans) - length + 1, 3):
            start, end = spans[n][0], spans[n + length - 1][1]
            found = look_up(store, text[start:end])
            assert (name, start, end) in zip(found.document, found.start.tolist(), found.end.tolist(), strict=True)
            assert len(found.run) == length


def test_a_run_is_a_line_of_a_concordance_that_says_so_and_has_no_embedding(store: Store) -> None:
    found = store.find("the bank", context=6)
    assert [(line.left, line.form, line.right) for line in found.lines] == [
        (" know ", "the bank", "'s rat"), ("rate. ", "The Bank", " is sh")
    ]  # fmt: skip
    assert found.notes == ("“the bank” was looked up as the consecutive words “the” and “bank”.",)
    assert store.find("bank").notes == ()
    message = r"'the bank' is 2 words of the embedding index, .* none together: ask for 'the' or 'bank'"
    for ask in (
        lambda: store.senses("the bank"),
        lambda: store.shift("the bank", store),
        lambda: store.find("the bank", sort="meaning"),
        lambda: store.find("the bank", like="We sat on the bank."),
    ):
        with pytest.raises(RegardError, match=message):
            ask()


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("sea", r"word 'sea' does not occur in embedding index '[^']+'$"),
        ("the sea", "index has single words, here 'the', 'sea', and 'sea' does not occur"),
        ("holiday bank", "its words 'holiday', 'bank' do, but not together as given"),
        ("bank!", "not with these signs"),
        ("…", "it has no letter or digit"),
    ],
)
def test_what_is_not_there_is_refused_with_what_is(store: Store, asked: str, message: str) -> None:
    with pytest.raises(RegardError, match=message):
        look_up(store, asked)


def test_a_store_of_some_words_finds_a_run_that_has_one_of_them(tmp_path: Path) -> None:
    with StoreTables(store_of(tmp_path / "s", TEXTS, {"where": ["word", ["bank"]]}, ("bank",))) as tables:
        assert look_up(tables, "the bank").form == ("the bank", "The Bank")
        with pytest.raises(RegardError, match="it was made with word bank only"):
            look_up(tables, "don't")


def test_a_store_of_tokens_says_what_to_ask_for(tmp_path: Path) -> None:
    with (
        StoreTables(store_of(tmp_path / "s", TEXTS, {"unit": "tokens"})) as tables,
        pytest.raises(RegardError, match="it has tokens, not words: pass a token"),
    ):
        look_up(tables, "riverbank")


def test_an_unfinished_store_says_so_where_a_word_is_missing(tmp_path: Path) -> None:
    store = write_store(tmp_path / "s", [([Document("a", "x")], np.ones((1, 1, 3), np.float16))], complete=False)
    with StoreTables(store) as tables, pytest.raises(RegardError, match="not occur in .*index is not finished"):
        look_up(tables, "sea")
