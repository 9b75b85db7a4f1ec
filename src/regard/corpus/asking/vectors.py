"""Compute what is asked of many vectors at once: their lengths made 1, cosines with one of them, principal axes."""

import numpy as np
import torch
from jaxtyping import Float

from regard.corpus.asking.occurrences import COLUMNS, Occurrences, in_store_order
from regard.corpus.store_tables import StoreTables
from regard.errors import RegardError

BLOCK = 1024  # rows: 1.5 MB of 384 float32, measured: 64 times as many take three times as long


def unit(vectors: Float[np.ndarray, "... M"]) -> Float[np.ndarray, "... M"]:
    """Scale vectors to length 1, in float32; a zero vector stays one."""
    vectors = vectors.astype(np.float32)
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.where(length > 0, length, 1)


def cosines(vectors: Float[np.ndarray, "n M"], query: Float[np.ndarray, " M"]) -> Float[np.ndarray, " n"]:
    """Compute the cosine of each vector with one, in float32; of a zero vector it is 0."""
    wanted = torch.from_numpy(query.astype(np.float32))
    wanted = wanted / wanted.norm().clamp_min(torch.finfo(torch.float32).tiny)
    found = torch.empty(len(vectors))
    block = torch.empty(min(BLOCK, len(vectors)), vectors.shape[1])
    for first in range(0, len(vectors), BLOCK):
        some = block[: min(BLOCK, len(vectors) - first)]
        some.copy_(torch.from_numpy(vectors[first : first + len(some)]))
        lengths = torch.linalg.vector_norm(some, dim=1).clamp_min(torch.finfo(torch.float32).tiny)
        torch.div(torch.mv(some, wanted), lengths, out=found[first : first + len(some)])
    return found.numpy()


def largest(scores: Float[np.ndarray, " n"], top: int) -> np.ndarray:
    """Return the places of the largest scores, the largest first; of equal ones the first."""
    if top < len(scores):
        edge = np.partition(scores, len(scores) - top)[len(scores) - top] if top else np.inf
        candidates = np.flatnonzero(scores >= edge)
    else:
        candidates = np.arange(len(scores))
    return candidates[np.argsort(-scores[candidates], kind="stable")][:top]


def principal_axes(
    vectors: Float[np.ndarray, "n M"], count: int
) -> tuple[Float[np.ndarray, "n count"], tuple[float, ...]]:
    """Place vectors, scaled to length 1, on the axes of most variance; and the share of it that each keeps.

    Principal axes (Pearson 1901) of the M × M covariance, so that any number of vectors is placed. Each axis' largest
    component is positive, so that pictures do not flip.
    """
    points = unit(vectors).astype(np.float64)
    points -= points.mean(0)
    values, axes = np.linalg.eigh(points.T @ points)
    axes = axes[:, ::-1][:, :count]
    axes = axes * np.where(np.take_along_axis(axes, np.abs(axes).argmax(0)[None], 0) < 0, -1, 1)
    total = max(float(values.sum()), np.finfo(np.float64).tiny)
    return points @ axes, tuple(float(max(each, 0) / total) for each in values[::-1][:count])


def find_nearest_rows(
    tables: StoreTables, query: Float[np.ndarray, " M"], top: int, layer: int | None = None
) -> tuple[Occurrences, Float[np.ndarray, " n"]]:
    """Return the rows whose vectors are nearest to one, in the order of the store, with their cosines."""
    best: list[tuple[float, str, int]] = []
    for shard, first, vectors in tables.all_vectors(layer):
        scores = cosines(vectors, query)
        best += [(float(scores[n]), shard, first + int(n)) for n in largest(scores, top)]
        best = sorted(best, key=lambda each: -each[0])[:top]
    if not best:
        raise RegardError(f"embedding index {str(tables.path)!r} has no rows")
    wanted: dict[str, list[int]] = {}
    for _, shard, row in best:
        wanted.setdefault(shard, []).append(row)
    found = in_store_order(tables, tables.rows_at(wanted, COLUMNS))
    score = {(shard, row): value for value, shard, row in best}
    similarity = [score[shard, row] for shard, row in zip(found.shard, found.row.tolist(), strict=True)]
    return found, np.array(similarity, dtype=np.float32)
