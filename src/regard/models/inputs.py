"""Tokenize the inputs of `Model.trace` (texts, token ids, tensors) and check that they fit the model.

The classes at the top are the types of the keyword arguments of `Model.trace` and `Model.generate`.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal, TypedDict

from regard.attention.map_statistics import Statistics
from regard.capture.inputs import check_inputs
from regard.capture.interventions.resolve import Intervention
from regard.capture.session import Session
from regard.checks import is_whole
from regard.errors import RegardError
from regard.text.quoting import some_of
from regard.text.reader import Ids, Reader
from regard.text.tokens import Encoded, encoded_ids, given_texts
from regard.trace.trace import PairTrace, Trace


class TraceOptions(TypedDict, total=False):
    """Keyword arguments of `Model.trace` that select what to keep, and interventions."""

    interventions: Sequence[Intervention]
    layers: int | Collection[int] | None
    logits: bool
    attention_outputs: bool
    statistics: bool | Statistics
    second: str | Sequence[str] | None


class TraceInputs(TraceOptions, total=False):
    """All keyword arguments of `Model.trace` except the text."""

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
    """Keyword arguments of `Model.generate`. Those from do_sample on are named and used as in transformers."""

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


def read_inputs(
    reader: Reader,
    session: Session,
    text: str | Sequence[str] | None,
    target: str | Sequence[str] | None,
    ids: Ids | None,
    target_ids: Ids | None,
    inputs: Mapping[str, Any] | None = None,
    second: str | Sequence[str] | None = None,
    words: Sequence[Any] | None = None,
    *,
    any_length: bool = False,
) -> tuple[bool, list[Encoded], list[Encoded] | None]:
    """Tokenize the sources and an encoder-decoder's targets. Return (whether it is a single item, sources, targets)."""
    sources: list[Encoded]
    if second is not None or words is not None:
        if any_length or ids is not None or inputs is not None:
            raise RegardError("second and words can't be combined with ids, inputs or window")
        single, sources = reader.read_parts(text, second, words)
    elif inputs is not None and text is None and ids is None:
        single, sources = True, [check_inputs(inputs, session.original, session.takes, session.name)]
    elif inputs is not None:
        raise RegardError("trace: pass only one of a text, ids or inputs")
    else:
        single, sources = reader.read("text", text, ids, windowed=any_length)
    if target is None and target_ids is None:
        if session.pairs:
            raise RegardError(f"target: {session.name} is an encoder-decoder: pass a target as well as the text")
        return single, sources, None
    if not session.pairs:
        raise RegardError(f"target: {session.name} is not an encoder-decoder: it reads a single text")
    single_target, targets = reader.read("target", target, target_ids)
    if single_target != single or len(targets) != len(sources):
        raise RegardError(f"target: got {len(targets)}, expected one for each of the {len(sources)} texts")
    return single, sources, targets


def model_inputs_of_trace(reader: Reader, trace: object, asker: str) -> tuple[Encoded, Encoded | None]:
    """Return a trace's tokens as model input, (source, target). asker: the caller's name for error messages."""
    if not isinstance(trace, (Trace, PairTrace)):
        raise RegardError(f"{asker}: got {type(trace).__name__}, expected a trace of this model")
    source, *targets = trace.sides
    target = encoded_ids([token.id for token in targets[0].tokens]) if targets else None
    return model_source_of_trace(reader, source), target


def model_source_of_trace(reader: Reader, trace: Trace) -> Encoded:
    """Return a trace's tokens as model input: its text if that has the same token ids, otherwise the ids."""
    if trace.patches is not None:
        raise RegardError(
            f"the trace has an image ({trace.patches.picture.name}): it cannot be run again from its text"
        )
    if any(token.id < 0 for token in trace.tokens):
        raise RegardError("the trace comes from inputs other than text, so it cannot be run again from its text")
    ids = [token.id for token in trace.tokens]
    if reader.tokenizer is not None:
        try:
            text, second = given_texts(trace.text, trace.turns)
            read = reader.read("text", text, None) if second is None else reader.read_parts(text, second, None)
        except RegardError:  # such as for a trace of ids
            return encoded_ids(ids)
        if read[1][0].ids == ids:
            return read[1][0]  # including segments
    return encoded_ids(ids)


def class_or_token_id(labels: Sequence[str], tokenizer: Any, value: str | int, what: str) -> int:
    """Return the class number of a classifier's label, or, for a model without labels, a token's id."""
    if not labels:
        return token_id(tokenizer, value, what)
    named = {name: n for n, label in reversed([*enumerate(labels)]) for name in (n, label.casefold())}
    named |= {label: n for n, label in reversed([*enumerate(labels)])}
    number = named.get(value if is_whole(value) else str(value), named.get(str(value).casefold()))
    if number is None:
        raise RegardError(f"{what}: got {value!r}, expected a label of the model: {some_of([*map(repr, labels)], 20)}")
    return number


def token_id(tokenizer: Any, token: str | int, what: str) -> int:
    """Return the id of a token, passed as its id or its text. A token that begins with a blank is preferred.

    Within a text, a word follows a blank, and many vocabularies have a separate token for it. "Paris" therefore means "
    Paris" if the vocabulary has this token. Pass the id to get the token without a blank.
    """
    if is_whole(token):
        return int(token)
    if not isinstance(token, str):
        raise RegardError(f"{what}: got {token!r}, expected a token: its text or its id")
    if tokenizer is None:
        raise RegardError(f"{what}: got {token!r}, expected a token id, because the model has no tokenizer")
    unknown = getattr(tokenizer, "unk_token_id", None)
    ids: list[int] = []
    for spelling in (token,) if token.startswith(" ") else (f" {token}", token):
        ids = tokenizer(spelling, add_special_tokens=False)["input_ids"]
        if len(ids) == 1 and (ids[0] != unknown or spelling == tokenizer.unk_token):
            return int(ids[0])
    pieces = ", ".join(map(repr, tokenizer.convert_ids_to_tokens(ids))) or "nothing"
    raise RegardError(f"{what}: {token!r} isn't a single token of the vocabulary, which splits it into {pieces}")
