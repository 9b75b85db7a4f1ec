"""Types of the keyword arguments of methods of `Model`: of `trace` and `generate` for all their overloads."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal, TypedDict

from regard.attention.map_statistics import Statistics
from regard.capture.interventions.resolve import Intervention
from regard.text.reader import Ids


class TraceOptions(TypedDict, total=False):
    """What of a pass is kept, and what is done to it; see `Model.trace`."""

    interventions: Sequence[Intervention]
    layers: int | Collection[int] | None
    logits: bool
    attention_outputs: bool
    statistics: bool | Statistics
    second: str | Sequence[str] | None


class TraceInputs(TraceOptions, total=False):
    """All that may be given to `Model.trace` beside the text."""

    target: str | Sequence[str] | None
    ids: Ids | None
    target_ids: Ids | None
    inputs: Mapping[str, Any] | None
    images: Any
    messages: Sequence[Mapping[str, str]] | None
    words: Sequence[str] | Sequence[Sequence[str]] | None
    window: int | None
    stride: int | None


class GenerateOptions(TypedDict, total=False):
    """How a text is written; see `Model.generate`. From do_sample on they are transformers' names and values."""

    max_new_tokens: int
    seed: int | None
    stop: str | Sequence[str]
    interventions: Sequence[Intervention]
    statistics: bool | Statistics
    progress: Callable[[str], None] | None
    do_sample: bool
    temperature: float
    top_k: int
    top_p: float
    min_p: float
    typical_p: float
    epsilon_cutoff: float
    eta_cutoff: float
    repetition_penalty: float
    no_repeat_ngram_size: int
    min_new_tokens: int
    num_beams: Literal[1]
    num_return_sequences: Literal[1]
    bad_words_ids: list[list[int]]
    begin_suppress_tokens: list[int]
    eos_token_id: int | list[int]
    exponential_decay_length_penalty: tuple[int, float]
    forced_bos_token_id: int
    forced_eos_token_id: int | list[int]
    pad_token_id: int
    renormalize_logits: bool
    sequence_bias: Any
    suppress_tokens: list[int]
