"""Small stores of a corpus, made by hand: words of known places, with whatever vectors a test wants."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from regard.corpus import schema
from regard.corpus.asking.vectors import WordSpan, embed_spans
from regard.corpus.schema import NAME, SHA256, Manifest, ModelSummary, ShardSummary, sha256_of_manifest
from regard.corpus.settings import Settings
from regard.corpus.shard_reader import NAME as INDEX
from regard.corpus.shard_reader import sha256_of_shard_file
from regard.corpus.store_tables import digest_model
from regard.corpus.writing.store_folder import ShardTables, sort_rows, write_shard
from regard.text.words import find_spans, words_of

RIVERS = ["The boat drifted towards the muddy bank of the river", "Willows grew along the bank of the river",
         "The river burst its bank after the rain", "Reeds covered the far bank of the river",
         "Otters slid down the steep bank into the river", "The canoe was pulled up on the bank of the stream",
         "Fishermen lined the bank of the stream at dawn", "They camped on the left bank of the river"]  # fmt: skip
MONEYS = ["She opened an account at the bank to save money", "The bank raised its interest rates for loans",
         "He withdrew money from the bank", "The bank refused to give him a loan of money",
         "Robbers stole money from the bank on Friday", "My bank charges a fee for loans",
         "The bank manager counted the money", "Shares of the bank fell after loans went bad"]  # fmt: skip


def change_manifest(store: Path, **changes: Any) -> dict[str, Any]:
    """Change entries of a store's manifest, with a checksum that fits; returns what it was."""
    file = store / NAME
    before = json.loads(file.read_text("utf-8"))
    data = {name: each for name, each in (before | changes).items() if name != SHA256}
    file.write_text(json.dumps(data | {SHA256: sha256_of_manifest(data)}), "utf-8")
    return before


def summary_of(shard: Path, parts: int, rows: int) -> ShardSummary:
    """What a manifest says of a shard."""
    return ShardSummary(shard.name, parts, rows, rows, sha256_of_shard_file(shard / INDEX))


@dataclass
class Document:
    """A document of one part, at some place in its file."""

    name: str
    text: str
    metadata: dict[str, str] = field(default_factory=dict)
    source: str = "a.txt"
    line: int | None = None


def word_rows(documents: Sequence[Document]) -> list[dict[str, object]]:
    """Every word of documents, in their order, as rows.parquet has it."""
    rows: list[dict[str, object]] = []
    for part, document in enumerate(documents):
        spans = sorted({span for word in words_of(document.text) for span in find_spans(document.text, word)})
        for position, (start, end) in enumerate(spans):
            form = document.text[start:end]
            rows.append({"word": form.casefold(), "form": form, "lemma": None, "document": document.name, "part": part,
                         "start": start, "end": end, "window": 0, "position": position + 1, "tokens": 1})  # fmt: skip
    return rows


def write_store(
    folder: Path,
    shards: Sequence[tuple[Sequence[Document], np.ndarray]],
    *,
    model: ModelSummary | None = None,
    layers: Sequence[int] = (5,),
    complete: bool = True,
) -> Path:
    """Write a store of some shards: documents, and the vectors (rows, layers, M) of their words in text order."""
    summaries = []
    folder.mkdir(parents=True, exist_ok=True)
    for number, (documents, vectors) in enumerate(shards):
        rows = pa.Table.from_pylist(word_rows(documents), schema=schema.rows(6, statistics=False, sources=False))
        texts = pa.Table.from_pylist(
            [{"document": d.name, "start": 0, "end": len(d.text), "text": d.text, "source": d.source, "line": d.line,
              "metadata": list(d.metadata.items())} for d in documents],
            schema=schema.texts(),
        )  # fmt: skip
        rows, vectors = sort_rows(rows, vectors)
        name = f"shard{number}"
        shard = write_shard(folder / "shards", name, ShardTables(texts, rows, vectors, schema.spans().empty_table()))
        summaries.append(summary_of(shard, len(documents), len(rows)))
    width = shards[0][1].shape[-1] if shards else 7
    model = model or ModelSummary("made", "made", "", 6, 12, width)
    dtype = shards[0][1].dtype.name if shards else "float16"
    settings = Settings(dtype=dtype, statistics=False).to_json()
    quarantine = folder / "quarantine.parquet"
    pq.write_table(schema.quarantine().empty_table(), quarantine)
    Manifest(
        model, settings, {}, [], list(layers), summaries, complete=complete, quarantine=sha256_of_shard_file(quarantine)
    ).write(folder)
    return folder


def write_cloud_store(folder: Path, documents: int = 10) -> Path:
    """Write documents with "bank" three times, all of whose vectors are one cloud; metadata put them into two ages."""
    random = np.random.default_rng(1)
    made = [Document(f"d{n}", "bank bank bank", {"age": "ab"[n % 2]}) for n in range(documents)]
    vectors = 1 + 0.3 * random.standard_normal((3 * documents, 1, 13))
    return write_store(folder, [(made, vectors.astype(np.float16))])


def write_bank_store(folder: Path, minilm: Any) -> Path:
    """Write sentences with "bank" in two senses, in two shards, embedded one by one; metadata say which sense."""
    documents = [Document(f"r{n}", text + ".", {"kind": "river"}) for n, text in enumerate(RIVERS)]
    documents += [Document(f"m{n}", text + ".", {"kind": "money"}) for n, text in enumerate(MONEYS)]
    shards = []
    for some in (documents[::2], documents[1::2]):
        rows = word_rows(some)
        places = [WordSpan(some[row["part"]].text, row["start"], row["end"]) for row in rows]
        shards.append((some, embed_spans(minilm, places, [3, 5]).astype(np.float16)))
    model = ModelSummary("all-MiniLM-L6-v2", "", digest_model(minilm), 6, 12, 384)
    return write_store(folder, shards, model=model, layers=(3, 5))
