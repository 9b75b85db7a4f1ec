"""A store's manifest: what was read, with what it was read, and the shards that hold it."""

import hashlib
import json
import os
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from regard.checks import is_whole
from regard.corpus.closeness import check_closeness
from regard.corpus.schema import FORMAT
from regard.corpus.settings import DTYPES, PRECISIONS, UNITS
from regard.errors import RegardError, first_line
from regard.json_files import read_json, short, write_json

NAME = "manifest.json"
LATER = ("given", "folder", "quarantine", "closeness")  # entries that earlier versions did not write
LARGEST_SIZE = 1 << 16  # layers, heads, numbers of a vector
SHARD_NAME = re.compile(r"(?!\.+$)[\w.-]{1,200}", re.ASCII)
LARGEST, LARGEST_OF_SHARD = 8 << 20, 1 << 10  # bytes that it may have, of paths, and more for each shard
SHA256 = "sha256"  # its last entry, of all others
KINDS = {dict: "object", list: "list", str: "string", bool: "true or false"}
NONE = type(None)
SETTINGS: dict[str, Any] = {
    "unit": str, "lemma": (str, NONE), "dtype": str, "statistics": bool, "window": (int, NONE), "stride": (int, NONE),
    "where": (list, NONE), "layers": (list, NONE), "shard": int, "backend": str, "precision": str,
    "prompt": (str, NONE), "pooling": (str, NONE),
}  # fmt: skip


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

    sha256: of its index.json; empty where an earlier version made it.
    """

    name: str
    parts: int
    rows: int
    tokens: int
    sha256: str = ""


@dataclass(frozen=True)
class Manifest:
    """What a store holds.

    settings: as `regard.corpus.settings.Settings` gives them. environment: versions and the choice of kernels that the
    bytes depend on. inputs: the paths that were read, absolute. columns: of tables, those of texts and ids. layers:
    those whose embeddings are kept, in the order of vectors.npy. complete: whether all inputs were read. counts: of
    everything that was read or left out. given, folder: the paths as they were given at first, and the folder in which
    that was: documents are named so. quarantine: the SHA-256 of quarantine.parquet. closeness: of vectors in bf16 with
    float32's, as `regard.corpus.closeness` says it; empty of others.
    Stores of earlier versions have inputs as they were given, and none of these.
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
    quarantine: str = ""
    closeness: dict[str, int | float] = field(default_factory=dict)

    @property
    def placed(self) -> bool:
        """Whether the store says where its texts are; those of earlier versions say how they were called."""
        return bool(self.folder)

    @property
    def precision(self) -> str:
        """In what the vectors were computed; earlier versions knew float32 alone."""
        return str(self.settings.get("precision", PRECISIONS[0]))

    @property
    def unit(self) -> str:
        """What has a row: words, tokens or texts."""
        return str(self.settings.get("unit", UNITS[0]))

    def write(self, store: Path) -> None:
        """Write the manifest into a store's folder, whole or not at all."""
        data = asdict(self)
        write_json(data | {SHA256: _sha256_of_manifest(data)}, store / NAME, indent=1)


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
    try:
        shards = len(os.listdir(store / "shards"))
    except OSError:
        shards = 0
    data = read_json(path, "manifest", most=LARGEST + LARGEST_OF_SHARD * shards)
    if data.get("format") != FORMAT:
        given = json.dumps(data.get("format"))[:40]
        raise RegardError(f"store {str(store)!r} has format {given}, this version of regard reads format {FORMAT}")
    written = data.pop(SHA256, None)
    if written is not None and written != _sha256_of_manifest(data):
        raise RegardError(f"store {str(store)!r}: its {NAME} is damaged, or was changed: it is not what was written")
    try:
        return _checked(data)
    except (KeyError, TypeError, ValueError) as error:
        raise RegardError(
            f"store {str(store)!r}: its {NAME} lacks or misnames an entry ({first_line(error)[:200]})"
        ) from error


def _checked(data: dict[str, Any]) -> Manifest:
    """A manifest whose entries all have their types."""
    known = {each.name: data[each.name] for each in fields(Manifest) if each.name in data or each.name not in LATER}
    model = known["model"] = ModelSummary(**_of("model", known["model"], dict))
    for name in ("name", "source", "digest"):
        _of(f"model: {name}", getattr(model, name), str)
    for name, least in (("layers", 1), ("heads", 0), ("width", 1)):
        _manifest_count(f"model: {name}", getattr(model, name), least, LARGEST_SIZE)
    for name, kind in (("settings", dict), ("environment", dict), ("counts", dict), ("inputs", list), ("given", list)):
        _of(name, known.get(name, kind()), kind)
    for name in ("inputs", "given"):
        for each in known.get(name, ()):
            _of(name, each, str)
    for name, each in known["environment"].items():
        _of(f"environment: {name}", each, str)
    for name, each in known["counts"].items():
        _manifest_count(f"counts: {name}", each)
    for name in ("folder", "quarantine"):
        _of(name, known.get(name, ""), str)
    check_closeness(_of("closeness", known.get("closeness", {}), dict))
    _of("complete", known["complete"], bool)
    layers = [_manifest_count("layers", each) for each in _of("layers", known["layers"], list)]
    if not layers or layers != sorted(set(layers)) or layers[-1] >= model.layers:
        raise ValueError(f"layers: given {short(layers)}, needs some of 0 to {model.layers - 1}, ascending")
    columns = _of("columns", known["columns"], list)
    if len(columns) != 2 or not all(each is None or isinstance(each, str) for each in columns):
        raise TypeError("columns: needs those of texts and of ids")
    shards = [ShardSummary(**_of("shards", each, dict)) for each in _of("shards", known["shards"], list)]
    for shard in shards:
        name = _of("shard: name", shard.name, str)
        if not SHARD_NAME.fullmatch(name):
            raise ValueError(f"it names a shard {short(name)}, needs at most 200 letters, digits, '_', '-' or '.'")
        _of("shard: sha256", shard.sha256, str)
        for what in ("parts", "rows", "tokens"):
            _manifest_count(f"shard {name}: {what}", getattr(shard, what))
    if len({shard.name for shard in shards}) < len(shards):
        raise ValueError("shards: one is named twice")
    _check_manifest_settings(known["settings"])
    return Manifest(**known | {"shards": shards})


def _check_manifest_settings(settings: dict[str, Any]) -> None:
    """Refuse settings of other types than `regard.corpus.settings.Settings` writes; entries may be missing."""
    for name, kinds in SETTINGS.items():
        if name in settings and not isinstance(settings[name], kinds):
            raise TypeError(f"settings: {name}")
    for name, known in (("precision", PRECISIONS), ("unit", UNITS), ("dtype", DTYPES)):
        if settings.get(name, known[0]) not in known:
            raise ValueError(f"settings: {name} {short(settings[name])}")
    if settings.get("unit") == "texts" and not settings.get("pooling"):
        raise TypeError("settings: pooling")
    where = settings.get("where")
    if where is not None:
        field_, values = where
        if not all(isinstance(each, str) for each in (field_, *_of("settings: where", values, list))):
            raise TypeError("settings: where")


def _of(name: str, given: Any, kind: type) -> Any:
    if not isinstance(given, kind) or (isinstance(given, str) and given.encode(errors="replace").decode() != given):
        raise TypeError(f"{name}: given {json.dumps(given)[:40]}, needs a {KINDS[kind]}")
    return given


def _manifest_count(name: str, given: Any, least: int = 0, most: int = (1 << 53) - 1) -> int:
    if not is_whole(given) or not least <= given <= most:
        raise TypeError(f"{name}: given {json.dumps(given)[:40]}, needs a whole number from {least} to {most:,}")
    return int(given)


def _sha256_of_manifest(data: dict[str, Any]) -> str:
    """Of all entries, however they are laid out."""
    return hashlib.sha256(json.dumps(data, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
