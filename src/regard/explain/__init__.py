"""Compute explanations from traces, as plain data that every view shows and `--json` writes.

The main functions can be imported from this package: `from regard.explain import head_scores`.
"""

from typing import TYPE_CHECKING

from regard.lazy import lazy_names

if TYPE_CHECKING:
    from regard.explain.causes.ablation_effect import effect as effect
    from regard.explain.causes.ablation_effect import removal as removal
    from regard.explain.causes.contributions import contributions as contributions
    from regard.explain.causes.contributions import rollout as rollout
    from regard.explain.causes.layer_updates import layer_updates as layer_updates
    from regard.explain.frames import to_frame as to_frame
    from regard.explain.logits import logit_lens as logit_lens
    from regard.explain.vectors.similarity import across_layers as across_layers
    from regard.explain.vectors.similarity import across_texts as across_texts
    from regard.explain.weights.alignment import align as align
    from regard.explain.weights.head_means import content_or_position as content_or_position
    from regard.explain.weights.head_means import mean_scores as mean_scores
    from regard.explain.weights.head_means import repeated_tokens as repeated_tokens
    from regard.explain.weights.head_scores import head_scores as head_scores
    from regard.explain.weights.head_steps import head_steps as head_steps
    from regard.explain.weights.sinks import sinks as sinks

_WHERE = {  # the names that each module defines
    ".causes.ablation_effect": "effect removal",
    ".causes.contributions": "contributions rollout",
    ".causes.layer_updates": "layer_updates",
    ".frames": "to_frame",
    ".logits": "logit_lens",
    ".vectors.similarity": "across_layers across_texts",
    ".weights.alignment": "align",
    ".weights.head_means": "content_or_position mean_scores repeated_tokens",
    ".weights.head_scores": "head_scores",
    ".weights.head_steps": "head_steps",
    ".weights.sinks": "sinks",
}
_HOMES = {name: f"regard.explain{home}" for home, names in _WHERE.items() for name in names.split()}
__getattr__ = lazy_names(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted(_HOMES)
