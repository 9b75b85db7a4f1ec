"""Compare shards, byte by byte."""

import hashlib
from pathlib import Path


def digest_of_shard(shard: Path) -> str:
    """Compute a hash of all files of a shard, names included."""
    whole = hashlib.sha256()
    for path in sorted(shard.iterdir()):
        whole.update(path.name.encode() + b"\0")
        with path.open("rb") as file:
            whole.update(hashlib.file_digest(file, "sha256").digest())
    return whole.hexdigest()
