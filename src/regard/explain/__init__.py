"""What traces say: functions of them, as plain data that every view shows and `--json` writes."""

from typing import TYPE_CHECKING

from regard.lazy import lazy_modules

if TYPE_CHECKING:
    from regard.explain import ablation_effect as ablation_effect
    from regard.explain import alignment as alignment
    from regard.explain import attended as attended
    from regard.explain import band as band
    from regard.explain import block_steps as block_steps
    from regard.explain import contributions as contributions
    from regard.explain import distant_weights as distant_weights
    from regard.explain import evolution as evolution
    from regard.explain import findings as findings
    from regard.explain import frames as frames
    from regard.explain import head_scores as head_scores
    from regard.explain import highlights as highlights
    from regard.explain import layer_updates as layer_updates
    from regard.explain import logit_lens as logit_lens
    from regard.explain import massive_activations as massive_activations
    from regard.explain import matrix as matrix
    from regard.explain import movement as movement
    from regard.explain import occurrences as occurrences
    from regard.explain import offset_means as offset_means
    from regard.explain import part as part
    from regard.explain import places as places
    from regard.explain import plane_order as plane_order
    from regard.explain import planes as planes
    from regard.explain import positions as positions
    from regard.explain import predictions as predictions
    from regard.explain import rollout as rollout
    from regard.explain import similarity as similarity
    from regard.explain import sinks as sinks
    from regard.explain import specific_weights as specific_weights
    from regard.explain import static_words as static_words
    from regard.explain import summary as summary
    from regard.explain import why as why
    from regard.explain import window_texts as window_texts
    from regard.explain import windowed_matrix as windowed_matrix
    from regard.explain import written_tokens as written_tokens

__getattr__, __dir__ = lazy_modules(__name__, __path__)
