"""What a file holds of an attention map: query, key, bias, sinks and mask. Its size grows with L + S, not L × S.

Of a map of given weights it holds these.
"""

from dataclasses import replace
from typing import Any

from regard.attention.masks import Edges, Mask
from regard.attention.scores import ScoreRule
from regard.tensor_file import Types

FUNCTION_LIMIT = 1 << 24  # scores of a mask function that are written out: 16 MiB, a map of 4096 × 4096
MAP_TYPES: Types = {"ScoreRule": ScoreRule, "Mask": Mask, "Edges": Edges}


def map_fields(map: Any) -> dict[str, Any]:
    """Return what a file holds of a map, for a `Packer`."""
    if map.given is not None:
        return {"type": "map", "weights": map.given, "offset": map.offset, "ndim": map.ndim}
    rule, length, size = map.rule, map.query.shape[2], map.key.shape[2]
    if rule.mask is not None and rule.mask.functions:
        if length * size > FUNCTION_LIMIT:
            raise ValueError(
                f"mask: given a function of positions over {length} × {size} scores, which cannot be saved; it needs "
                f"at most {FUNCTION_LIMIT} scores, or a mask of causal, window, padding and dense parts"
            )
        answers = Mask(functions=rule.mask.functions).materialise(1, 1, length, size, map.device)
        rule = replace(rule, mask=replace(rule.mask, dense=(*rule.mask.dense, answers), functions=()))
    return {"type": "map", "query": map.query, "key": map.key, "rule": rule, "offset": map.offset, "ndim": map.ndim}
