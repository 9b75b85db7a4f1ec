"""Small corpora for tests, and what a store of one holds."""

import hashlib
import random
from pathlib import Path
from typing import Any

import numpy as np

_SAID = """the whale swam under a river bank and money was lent by the old bank to Ahab whose ship sank slowly in
unfathomable waters near Nantucket while strangers sang of Ελλάδα, naïve cafés, 1851 and well-known hyperboloids"""
WORDS = _SAID.split()


def write_texts(folder: Path, count: int, *, seed: int = 0, longest: int = 60) -> Path:
    """Write so many text files of 1 to `longest` words into a new folder."""
    draw = random.Random(seed)
    folder.mkdir()
    for n in range(count):
        words = draw.choices(WORDS, k=draw.randint(1, longest))
        (folder / f"{n:04}.txt").write_text(" ".join(words) + ".", encoding="utf-8")
    return folder


def store_digest(store: Path) -> str:
    """A hash of all files of a store, with their names: of everything but the lock, which is empty."""
    whole = hashlib.sha256()
    for path in sorted(store.rglob("*")):
        if path.is_file() and path.name != ".lock":
            whole.update(path.relative_to(store).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return whole.hexdigest()


def leftovers(store: Path) -> list[str]:
    """Names of what a finished store does not have: half-written files and folders, and marks."""
    return sorted(path.name for path in store.rglob(".*") if path.name != ".lock")


def read_rows(store: Path) -> tuple[list[dict[str, Any]], np.ndarray]:
    """All rows of a store and their vectors, by document and start; each row has its shard's name and its text."""
    import pyarrow.parquet as pq

    rows: list[dict[str, Any]] = []
    vectors = []
    for shard in sorted((store / "shards").iterdir()):
        texts = pq.read_table(shard / "texts.parquet").to_pylist()
        for row in pq.read_table(shard / "rows.parquet").to_pylist():
            rows.append(row | {"shard": shard.name, "text": texts[row["part"]]})
        vectors.append(np.load(shard / "vectors.npy"))
    order = sorted(range(len(rows)), key=lambda n: (rows[n]["document"], rows[n]["start"]))
    return [rows[n] for n in order], np.concatenate(vectors)[order]
