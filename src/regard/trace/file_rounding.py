"""How far weights from narrowed tensors are from those that were traced."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from regard.attention import map_file
from regard.attention.attention_map import AttentionMap

ROWS = 4  # of each head of each map, from the first to the last


class Measure:
    """The largest difference over a few rows of every map."""

    def __init__(self) -> None:
        self.rows, self.largest = 0, 0.0

    def add(self, weights: AttentionMap, head: int, stored: Mapping[str, Tensor], told: dict[str, Any]) -> None:
        """Compare a head of a map (H, L, S) with what is stored of it, a map of one head."""
        opened, length = AttentionMap.of(map_file.unpack(stored, told)), weights.shape[-2]
        rows = torch.linspace(0, length - 1, min(ROWS, length)).round().long()
        there = weights[head, rows.to(weights.device)].cpu()
        self.largest = max(self.largest, float((opened[0, rows] - there).abs().max()))
        self.rows += len(rows)

    def told(self) -> str:
        """For a note; nothing where no map was compared."""
        return f"weights within {self.largest:.1e} of those traced, on {self.rows} rows compared" if self.rows else ""
