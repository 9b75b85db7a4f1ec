"""A store's manifest: what was read, with what it was read, and the shards that hold it."""

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from regard.corpus.schema import FORMAT
from regard.errors import RegardError, first_line
from regard.files import write_json

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
    """What a store holds.

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
        """Write the manifest into a store's folder, whole or not at all."""
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
