"""The content of a store: its manifest, and the names and types of its tables' columns.

A store is a folder: manifest.json, quarantine.parquet, and shards/NAME with these files:

    texts.parquet    a row for each part of a document, in the order in which they were read
    rows.parquet     a row for each word or token that is kept, sorted by (word, document, start)
    vectors.npy      (rows, layers, M): row i is the embedding of row i of rows.parquet
    heads.parquet    what every head did, summed over the shard, where statistics were requested
    spans.parquet    what the model did not read as it stands, and what isn't kept
    index.json       how many of each there are, and the SHA-256 of each megabyte of the other files

Characters (start, end) are counted from the beginning of the whole document, whatever it was cut into.
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


FORMAT = 2  # of the store: a store of another one is refused
ROW_GROUP = 4096  # rows of a row group at most: what finding one word has to read
TOP = 8  # largest weights of a layer that are kept, under --where
STATISTICS = ("entropy", "received", "distance", "special")  # of each row and layer, means over the heads
# Of every head: sums over counted queries, and over how many of them where that is not "queries".
SUMS = (
    "queries", "entropy", "distance", "previous", "next", "nexts", "same", "special", "first", "duplicate",
    "duplicates", "induction", "inductions",
)  # fmt: skip
OPTIONAL = ("lemma", "line")  # columns that may hold null
SOURCES = ("source_start", "source_end", "source_weight")


def texts() -> "pa.Schema":
    """Make the schema of texts.parquet.

    document: its id. start, end: the part's characters. source: the file, "-" for standard input. line: of a table's
    row or a line of the file, null for whole files. metadata: the other columns, as strings.
    """
    import pyarrow as pa

    whole, string = pa.int64(), pa.string()
    metadata = pa.map_(string, string)
    return _schema(document=string, start=whole, end=whole, text=string, source=string, line=whole, metadata=metadata)


def rows(layers: int, *, statistics: bool, sources: bool) -> "pa.Schema":
    """Make the schema of rows.parquet. layers: how many the model has, N.

    word: composed (NFC) and case-folded, what is looked up. form: as it is in the text. lemma: null if none was
    asked for. part: the row of texts.parquet. window: which of the part's windows it was read in. position: its first
    token there. tokens: how many it has. The STATISTICS, (N,) each: the entropy of where it looks in nats, the weight
    that it receives from all tokens, how many positions away it looks, and the share that special tokens take.
    The SOURCES, (N, TOP) each: the characters and weights of what each layer looks at most, -1 for special tokens.
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
    """Make the schema of spans.parquet.

    kind: "unknown" (the tokenizer has one token for all it doesn't know), "dropped" (it drops these characters),
    "special" (text that it reads as a special token), "long" (a word longer than two windows share: it has no row).
    """
    import pyarrow as pa

    return _schema(document=pa.string(), start=pa.int64(), end=pa.int64(), kind=pa.string(), text=pa.string())


def heads() -> "pa.Schema":
    """Make the schema of heads.parquet: for each layer and head, sums by their names, and over how many queries."""
    import pyarrow as pa

    return _schema(layer=pa.int32(), head=pa.int32(), **dict.fromkeys(SUMS, pa.float64()))


def quarantine() -> "pa.Schema":
    """Make the schema of quarantine.parquet: what could not be read, by file and line, and why."""
    import pyarrow as pa

    return _schema(source=pa.string(), line=pa.int64(), reason=pa.string())


def _schema(**columns: "pa.DataType") -> "pa.Schema":
    """Make a schema of columns, of which `OPTIONAL` alone may hold null."""
    import pyarrow as pa

    return pa.schema([pa.field(name, kind, nullable=name in OPTIONAL) for name, kind in columns.items()])


NAME = "manifest.json"
SHA256 = "sha256"  # its last entry, of all others
REMOVED = {"backend": "openvino", "precision": "bf16", "unit": "texts"}  # settings that earlier versions had


@dataclass(frozen=True)
class ModelSummary:
    """The model that read the texts. source: what `regard.load` opens. digest: of its weights and its tokenizer.

    width: how many numbers a vector of the store has.
    """

    name: str
    source: str
    digest: str
    layers: int
    heads: int
    width: int


@dataclass(frozen=True)
class ShardSummary:
    """One shard: its folder's name, and how many documents (parts of them), rows and tokens it holds.

    sha256: of its index.json.
    """

    name: str
    parts: int
    rows: int
    tokens: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """The content of a store.

    settings: as `regard.corpus.settings.Settings` gives them. environment: versions and the choice of kernels that the
    bytes depend on. given, folder: the paths as they were given at first, and the folder in which that was: documents
    are named so. layers: those whose embeddings are kept, in the order of vectors.npy. counts: of everything that was
    read or left out. complete: whether all inputs were read. columns: of tables, those of texts and ids. quarantine:
    the SHA-256 of quarantine.parquet.
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
        """Return the absolute paths that were read."""
        return absolute(self.given, self.folder)

    @property
    def unit(self) -> str:
        """Return what has a row: words or tokens."""
        return str(self.settings["unit"])

    def write(self, store: Path) -> None:
        """Write the manifest into a store's folder, atomically."""
        data = asdict(self)
        write_json(data | {SHA256: sha256_of_manifest(data)}, store / NAME, indent=1)


def absolute(paths: Sequence[str], folder: str) -> list[str]:
    """Make the paths of inputs absolute; standard input, "-", stays what it is."""
    return [each if each == "-" else os.path.abspath(os.path.join(folder, each)) for each in paths]


def read_manifest(store: Path) -> Manifest:
    """Read a store's manifest."""
    path = store / NAME
    if not path.is_file():
        what = "there is no such folder" if not store.exists() else f"there is no {NAME} in it"
        raise RegardError(f"store {str(store)!r}: {what}; `regard embed PATH --out STORE` makes one")
    try:
        data = json.loads(path.read_bytes())
        written = data.pop(SHA256, None)
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise RegardError(f"manifest {str(path)!r} cannot be read: {first_line(error)}") from error
    if data.get("format") != FORMAT:
        given = json.dumps(data.get("format"))
        raise RegardError(f"store {str(store)!r} has format {given}, this version of regard reads format {FORMAT}")
    if written != sha256_of_manifest(data):
        raise RegardError(f"store {str(store)!r}: its {NAME} is damaged or was changed")
    for name, value in REMOVED.items():
        if data["settings"].get(name) == value:
            raise RegardError(
                f"store {str(store)!r} was made with --{name} {value}, which this version of regard doesn't have: "
                "make it again with `regard embed`"
            )
    data.pop("closeness", None)  # earlier versions wrote it
    shards = [ShardSummary(**each) for each in data["shards"]]
    return Manifest(**data | {"model": ModelSummary(**data["model"]), "shards": shards})


def sha256_of_manifest(data: dict[str, Any]) -> str:
    """Compute the SHA-256 of a manifest's entries, however they are laid out."""
    return hashlib.sha256(json.dumps(data, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
