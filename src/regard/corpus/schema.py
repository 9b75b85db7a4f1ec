"""Define the files of an embedding index: its manifest, and the columns and types of its tables.

A store is a folder with manifest.json, quarantine.parquet, and a folder shards/NAME per shard with these files:

    texts.parquet    a row for each part of a document, in the order of reading
    rows.parquet     a row for each stored word or token, sorted by (word, document, start)
    vectors.npy      (rows, layers, M): row i is the embedding of row i of rows.parquet
    heads.parquet    each head's attention statistics, summed over the shard, if they were requested
    spans.parquet    text that the model did not read as written, and words that have no row
    index.json       the shard's counts, and the SHA-256 of each megabyte of the other files

Character positions (start, end) count from the beginning of the whole document, even if it was cut into parts.
"""

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.errors import RegardError, first_line
from regard.files import write_json

if TYPE_CHECKING:
    import pyarrow as pa


FORMAT = 2  # version of the index format; other versions are rejected
ROW_GROUP = 4096  # maximum number of rows in a row group, so that a word's lookup reads few rows
TOP = 8  # with --where, number of largest attention weights stored per layer
STATISTICS = ("entropy", "received", "distance", "special")  # per row and layer: means over the heads
# Per head: sums over the included queries. Plural names are counts of queries, for sums over fewer queries.
SUMS = (
    "queries", "entropy", "distance", "previous", "next", "nexts", "same", "special", "first", "duplicate",
    "duplicates", "induction", "inductions",
)  # fmt: skip
OPTIONAL = ("lemma", "line")  # columns that may hold null
SOURCES = ("source_start", "source_end", "source_weight")


def texts() -> "pa.Schema":
    """Return the pyarrow schema of texts.parquet: one row per part of a document.

    document: its id. start, end: the part's character positions. source: the file, "-" for standard input. line: the
    line or row in the file, null for whole files. metadata: the other columns, as strings.
    """
    import pyarrow as pa

    int64, string = pa.int64(), pa.string()
    metadata = pa.map_(string, string)
    return _schema(document=string, start=int64, end=int64, text=string, source=string, line=int64, metadata=metadata)


def rows(layers: int, *, statistics: bool, sources: bool) -> "pa.Schema":
    """Return the pyarrow schema of rows.parquet: one row per stored word or token of a model with N layers.

    word: the lookup key, normalized (NFC) and case-folded. form: the word as written. lemma: null if not requested.
    part: the part's row in texts.parquet. window: the number of the window in the part. position: the first token in
    the window. tokens: number of tokens. STATISTICS, shape (N,): entropy of the word's attention in nats, attention
    received from all tokens, mean distance in positions, and fraction of attention paid to special tokens.
    SOURCES, shape (N, TOP): characters and weights of the positions with the most attention, -1 for special tokens.
    """
    import pyarrow as pa

    columns = dict.fromkeys(("word", "form", "lemma", "document"), pa.string())
    columns |= {"part": pa.int32(), "start": pa.int64(), "end": pa.int64()}
    columns |= dict.fromkeys(("window", "position", "tokens"), pa.int32())
    if statistics:
        columns |= dict.fromkeys(STATISTICS, pa.list_(pa.float32(), layers))
    if sources:
        kinds = (pa.int64(), pa.int64(), pa.float32())
        columns |= {name: pa.list_(kind, layers * TOP) for name, kind in zip(SOURCES, kinds, strict=True)}
    return _schema(**columns)


def spans() -> "pa.Schema":
    """Return the pyarrow schema of spans.parquet: text that the model did not read as written.

    kind: "unknown" (read as the unknown token), "dropped" (the tokenizer drops these characters), "special" (read as a
    special token), "long" (a word longer than the overlap of two windows, which has no row).
    """
    import pyarrow as pa

    return _schema(document=pa.string(), start=pa.int64(), end=pa.int64(), kind=pa.string(), text=pa.string())


def heads() -> "pa.Schema":
    """Return the pyarrow schema of heads.parquet: per layer and head, attention sums and query counts."""
    import pyarrow as pa

    return _schema(layer=pa.int32(), head=pa.int32(), **dict.fromkeys(SUMS, pa.float64()))


def quarantine() -> "pa.Schema":
    """Return the pyarrow schema of quarantine.parquet: file, line and reason of each unreadable input."""
    import pyarrow as pa

    return _schema(source=pa.string(), line=pa.int64(), reason=pa.string())


def _schema(**columns: "pa.DataType") -> "pa.Schema":
    """Return a pyarrow schema of named columns. Only the `OPTIONAL` ones may hold null."""
    import pyarrow as pa

    return pa.schema([pa.field(name, kind, nullable=name in OPTIONAL) for name, kind in columns.items()])


NAME = "manifest.json"
SHA256 = "sha256"  # the last entry: the hash of all others
REMOVED = {"backend": "openvino", "precision": "bf16", "unit": "texts"}  # settings of earlier versions


@dataclass(frozen=True)
class ModelSummary:
    """The model that embedded the texts: its name, size, and a hash of its weights and tokenizer.

    source: the argument of `regard.load`. width: the length of a stored vector.
    """

    name: str
    source: str
    digest: str
    layers: int
    heads: int
    width: int


@dataclass(frozen=True)
class ShardSummary:
    """One shard: its folder's name, its number of parts, rows and tokens, and the SHA-256 of its index.json."""

    name: str
    parts: int
    rows: int
    tokens: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """The manifest of an embedding index: the model, settings, inputs, shards and counts.

    settings: from `regard.corpus.settings.Settings.to_json`. environment: the versions and kernels that determine the
    bytes. given, folder: the input paths (as in the documents' names) and working folder of the first run. layers: the
    stored layers, in the order of vectors.npy. counts: counts of everything read or left out. complete: whether all
    inputs were read. columns: the names of the text and id columns of tables. quarantine: the SHA-256 of
    quarantine.parquet.
    """

    model: ModelSummary
    settings: dict[str, Any]
    environment: dict[str, str]
    given: list[str]
    layers: list[int]
    shards: list[ShardSummary] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    complete: bool = False
    columns: list[str | None] = field(default_factory=lambda: ["text", None])
    format: int = FORMAT
    folder: str = ""
    quarantine: str = ""

    @property
    def inputs(self) -> list[str]:
        """Return the absolute paths of the input files and folders."""
        return absolute_inputs(self.given, self.folder)

    @property
    def unit(self) -> str:
        """Return what the index has rows for: "words" or "tokens"."""
        return str(self.settings["unit"])

    def write(self, store: Path) -> None:
        """Write the manifest into the index's folder, atomically."""
        data = asdict(self)
        write_json(data | {SHA256: sha256_of_manifest(data)}, store / NAME, indent=1)


def absolute_inputs(paths: Sequence[str], folder: str) -> list[str]:
    """Return the input paths as absolute paths, resolved from `folder`. "-" (standard input) is unchanged."""
    return [path if path == "-" else os.path.abspath(os.path.join(folder, path)) for path in paths]


def read_manifest(store: Path) -> Manifest:
    """Read the manifest of the embedding index in a folder. Raises RegardError if it is damaged."""
    path = store / NAME
    if not path.is_file():
        reason = "there is no such folder" if not store.exists() else f"there is no {NAME} in it"
        raise RegardError(f"store {str(store)!r}: {reason}; `regard embed PATH --out STORE` makes one")
    try:
        data = json.loads(path.read_bytes())
        digest = data.pop(SHA256, None)
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise RegardError(f"manifest {str(path)!r} cannot be read: {first_line(error)}") from error
    if data.get("format") != FORMAT:
        version = json.dumps(data.get("format"))
        raise RegardError(f"store {str(store)!r} has format {version}, this version of regard reads format {FORMAT}")
    if digest != sha256_of_manifest(data):
        raise RegardError(f"store {str(store)!r}: its {NAME} is damaged or was changed")
    for name, value in REMOVED.items():
        if data["settings"].get(name) == value:
            raise RegardError(
                f"store {str(store)!r} was made with --{name} {value}, which this version of regard doesn't have: "
                "make it again with `regard embed`"
            )
    data.pop("closeness", None)  # earlier versions wrote it
    shards = [ShardSummary(**shard) for shard in data["shards"]]
    return Manifest(**data | {"model": ModelSummary(**data["model"]), "shards": shards})


def sha256_of_manifest(data: dict[str, Any]) -> str:
    """Return the SHA-256 of a manifest's entries, independent of their layout in the file."""
    return hashlib.sha256(json.dumps(data, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
