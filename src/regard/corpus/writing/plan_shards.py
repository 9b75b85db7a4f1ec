"""Gather documents into shards, named by a hash of what is in them and of how they are read."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass

from regard.corpus.manifest import Manifest
from regard.corpus.reading.document import Document, Rejected


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


def _planned(base: bytes, documents: list[Document]) -> ShardPlan:
    """The plan of a shard, named by a hash of its documents. base: of `hash_of_settings`."""
    whole = hashlib.sha256(base)
    for each in documents:
        whole.update(json.dumps(astuple(each), sort_keys=True).encode() + b"\n")
    return ShardPlan(whole.hexdigest()[:24], documents)
