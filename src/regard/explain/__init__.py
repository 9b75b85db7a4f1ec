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
    from regard.shown import to_frame as to_frame

__getattr__, __dir__ = lazy_names(__name__)
