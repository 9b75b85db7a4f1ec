"""A store's manifest: what was read, with what it was read, and the shards that hold it."""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from regard.corpus.schema import FORMAT
from regard.errors import RegardError
from regard.json_files import read_json, write_json

NAME = "manifest.json"
LATER = ("given", "folder")  # entries that earlier versions did not write
LARGEST = 1 << 30  # bytes: 100 a shard, of ten million shards


@dataclass(frozen=True)
class ModelSummary:
    """The model that read the texts. source: what `regard.load` opens. digest: of its weights and its tokenizer."""

    name: str
    source: str
    digest: str
    layers: int
    heads: int
    width: int


@dataclass(frozen=True)
class ShardSummary:
    """One shard: its folder's name, and how many documents (parts of them), rows and tokens it holds."""

    name: str
    parts: int
    rows: int
    tokens: int


@dataclass(frozen=True)
class Manifest:
    """What a store holds.

    settings: as `regard.corpus.settings.Settings` gives them. environment: versions and the choice of kernels that the
    bytes depend on. inputs: the paths that were read, absolute. columns: of tables, those of texts and ids. layers:
    those whose embeddings are kept, in the order of vectors.npy. complete: whether all inputs were read. counts: of
    everything that was read or left out. given, folder: the paths as they were given at first, and the folder in which
    that was: documents are named so. Stores of earlier versions have inputs as they were given, and neither of these.
    """

    model: ModelSummary
    settings: dict[str, Any]
    environment: dict[str, str]
    inputs: list[str]
    layers: list[int]
    shards: list[ShardSummary] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    complete: bool = False
    columns: list[str | None] = field(default_factory=lambda: ["text", None])
    format: int = FORMAT
    given: list[str] = field(default_factory=list)
    folder: str = ""

    @property
    def placed(self) -> bool:
        """Whether the store says where its texts are; those of earlier versions say how they were called."""
        return bool(self.folder)

    def write(self, store: Path) -> None:
        """Write the manifest into a store's folder, whole or not at all."""
        write_json(asdict(self), store / NAME, indent=1)


def absolute(paths: Sequence[str], folder: str) -> list[str]:
    """Make the paths of inputs absolute; standard input, "-", stays what it is."""
    return [each if each == "-" else os.path.abspath(os.path.join(folder, each)) for each in paths]


def read_manifest(store: Path) -> Manifest:
    """Read a store's manifest.

    Raises:
        RegardError: the folder is no store, its manifest cannot be read, or it is of another format.
    """
    path = store / NAME
    if not path.is_file():
        what = "there is no such folder" if not store.exists() else f"there is no {NAME} in it"
        raise RegardError(f"store {str(store)!r}: {what}; `regard embed PATH --out STORE` makes one")
    data = read_json(path, "manifest", most=LARGEST)
    if data.get("format") != FORMAT:
        given = json.dumps(data.get("format"))[:40]
        raise RegardError(f"store {str(store)!r} has format {given}, this version of regard reads format {FORMAT}")
    try:
        known = {each.name: data[each.name] for each in fields(Manifest) if each.name in data or each.name not in LATER}
        known["model"] = ModelSummary(**known["model"])
        known["shards"] = [ShardSummary(**each) for each in known["shards"]]
        found = Manifest(**known)
        if not isinstance(found.folder, str) or not all(isinstance(each, str) for each in found.given):
            raise TypeError("given, folder")
        return found
    except (KeyError, TypeError) as error:
        raise RegardError(f"store {str(store)!r}: its {NAME} lacks or misnames an entry ({error})") from error
