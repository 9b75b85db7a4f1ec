"""Gather documents into shards, named by a hash of what is in them and of how they are read."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass
from pathlib import Path

from regard.corpus.manifest import Manifest
from regard.corpus.reading.document import Document, Rejected
from regard.corpus.writing.shard import documents_of, has_more_than_shards, read_counts
from regard.errors import RegardError


@dataclass(frozen=True, eq=False)
class ShardPlan:
    """What one shard will hold. name: of its folder."""

    name: str
    documents: list[Document]

    @property
    def characters(self) -> int:
        """Return how many characters its texts have."""
        return sum(len(each.text) for each in self.documents)


def plan_shards(
    read: Iterable[Document | Rejected], manifest: Manifest, rejected: list[Rejected]
) -> Iterator[ShardPlan]:
    """Yield the shards of documents in the order in which they are read; what could not be read goes to rejected.

    A shard is full when its texts have as many characters as the settings say.
    """
    base = hash_of_settings(manifest)
    held: list[Document] = []
    size = 0
    for each in read:
        if isinstance(each, Rejected):
            rejected.append(each)
            continue
        if held and size + len(each.text) > manifest.settings["shard"]:
            yield _planned(base, held)
            held, size = [], 0
        held.append(each)
        size += len(each.text)
    if held:
        yield _planned(base, held)


def hash_of_settings(manifest: Manifest) -> bytes:
    """Return a hash of everything but the texts that a shard's bytes depend on."""
    parts = [manifest.format, manifest.model.digest, manifest.settings, manifest.environment, manifest.layers]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).digest()


def shard_name(base: bytes, documents: Iterable[Document]) -> str:
    """Return the name of the shard of some documents. base: of `hash_of_settings`."""
    whole = hashlib.sha256(base)
    for each in documents:
        whole.update(json.dumps(astuple(each), sort_keys=True).encode() + b"\n")
    return whole.hexdigest()[:24]


def is_shard(folder: Path, base: bytes) -> bool:
    """Whether a folder is a shard of a store, and nothing else: its files, its counts, and a name that is their hash.

    base: of the store's manifest, by `hash_of_settings`.
    """
    try:
        if folder.is_symlink() or not folder.is_dir() or has_more_than_shards(folder):
            return False
        documents = documents_of(folder)
        return read_counts(folder)["parts"] == len(documents) and shard_name(base, documents) == folder.name
    except (OSError, RegardError, KeyError, TypeError, ValueError, AttributeError):
        return False


def _planned(base: bytes, documents: list[Document]) -> ShardPlan:
    return ShardPlan(shard_name(base, documents), documents)
