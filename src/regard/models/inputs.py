"""Read what `Model.trace` is given, texts, token ids or other inputs, as tokens that fit the model.

The keyword arguments of `Model.trace` and `Model.generate` have their types here, for all overloads.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypedDict

from torch import Tensor

from regard.attention.map_statistics import Statistics
from regard.capture.inputs import ModelInput, check_inputs
from regard.capture.interventions.resolve import Intervention
from regard.capture.session import Session
from regard.checks import is_whole
from regard.errors import RegardError, first_line
from regard.images import (
    BOTH_FILE,
    PROCESSOR_FILE,
    Patches,
    Picture,
    patch_grid,
    processed,
    read_picture,
    seen_box,
    seen_note,
)
from regard.model_files.suppress_warnings import quiet
from regard.text.quoting import some_of
from regard.text.reader import Ids, Reader
from regard.text.tokens import Encoded, Token, check_text, encoded_ids, given_texts
from regard.trace.trace import PairTrace, Trace


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
    """Whether a single item was given, the sources, and of an encoder-decoder their targets."""
    sources: list[Encoded]
    if second is not None or words is not None:
        if any_length or ids is not None or inputs is not None:
            raise RegardError("second, words: leave out ids, inputs and window, which say what is read as well")
        single, sources = reader.read_parts(text, second, words)
    elif inputs is not None and text is None and ids is None:
        single, sources = True, [check_inputs(inputs, session.original, session.takes, session.name)]
    elif inputs is not None:
        raise RegardError("trace: needs a text, ids or inputs, given two of them")
    else:
        single, sources = reader.read("text", text, ids, windowed=any_length)
    if target is None and target_ids is None:
        if session.pairs:
            raise RegardError(f"target: {session.name} is an encoder-decoder, it needs a target beside the text")
        return single, sources, None
    if not session.pairs:
        raise RegardError(f"target: {session.name} is not an encoder-decoder: it reads a single text")
    single_target, targets = reader.read("target", target, target_ids)
    if single_target != single or len(targets) != len(sources):
        raise RegardError(f"target: given {len(targets)}, needs one for each of the {len(sources)} texts")
    return single, sources, targets


def read_images(
    session: Session, reader: Reader, processor: Any, images: Any, text: Any
) -> tuple[bool, list[ModelInput]]:
    """Make what the model reads of one picture, or of several in a list: whether one was given, and the items."""
    name, alone = session.name, session.original.main_input_name == "pixel_values"
    if "pixel_values" not in session.takes or session.pairs:
        raise RegardError(
            f"images: {name} reads {session.original.main_input_name!r}, needs a model that reads pictures"
        )
    if alone != (text is None):
        raise RegardError(f"images: {name} reads pictures {'alone' if alone else 'in a text: give one beside them'}")
    if processor is None or not (alone or hasattr(processor, "image_token")):
        instead = ", or trace(inputs={'pixel_values': ...})" if alone else ""
        file = PROCESSOR_FILE if alone else BOTH_FILE
        raise RegardError(
            f"images: {name} has no {file}, which says how pictures are made ready: give load(processor=){instead}"
        )
    single = not isinstance(images, (list, tuple))
    pictures = [images] if single else list(images)
    if not pictures:
        raise RegardError("images: given none, needs at least one")
    if alone:
        return single, [_item_of_picture(session, processor, picture) for picture in pictures]
    if reader.tokenizer is None:
        raise RegardError(f"images: {name} has no tokenizer for the text beside them: give load(tokenizer=)")
    several = isinstance(text, (list, tuple))
    texts = list(text) if several else [text] * len(pictures)
    if len(texts) != len(pictures):
        raise RegardError(f"images: given {len(pictures)}, needs one for each of the {len(texts)} texts, or one text")
    pairs = zip(texts, pictures, strict=True)
    return single and not several, [read_pictured_text(session, reader, processor, *pair) for pair in pairs]


def how_pictures_are_read(session: Session, reader: Reader, processor: Any) -> Literal["alone", "in a text"] | None:
    """Say whether a model reads pictures alone, in a text, or not at all; the arguments are those of `read_images`."""
    if "pixel_values" not in session.takes or session.pairs or processor is None:
        return None
    if session.original.main_input_name == "pixel_values":
        return "alone"
    return "in a text" if hasattr(processor, "image_token") and reader.tokenizer is not None else None


def _item_of_picture(session: Session, processor: Any, image: Any) -> ModelInput:
    picture = read_picture(image)
    pixels = processed(processor, picture)
    item = check_inputs(
        {"pixel_values": pixels.to(session.original.dtype)}, session.original, session.takes, session.name
    )
    grid = patch_grid(session.original.config, pixels)
    if grid is None:
        return replace(item, notes=picture.notes)
    seen = seen_box(processor, picture.size)
    notes = tuple(note for note in (*picture.notes, seen_note(picture, seen)) if note)
    return replace(item, patches=Patches(picture, *grid, 0, seen), notes=notes)


def model_inputs_of_trace(reader: Reader, trace: object, asker: str) -> tuple[Encoded, Encoded | None]:
    """What the model reads to give a trace again, (source, target). asker: who is given the trace."""
    if not isinstance(trace, (Trace, PairTrace)):
        raise RegardError(f"{asker}: given {type(trace).__name__}, needs a trace of this model")
    source, *targets = trace.sides
    target = encoded_ids([token.id for token in targets[0].tokens]) if targets else None
    return model_source_of_trace(reader, source), target


def model_source_of_trace(reader: Reader, trace: Trace) -> Encoded:
    """What the model read to give a trace: its text where that has the same tokens, else their ids."""
    if trace.patches is not None:
        raise RegardError(
            f"the trace has a picture ({trace.patches.picture.name}): it cannot be run again from its text"
        )
    if any(token.id < 0 for token in trace.tokens):
        raise RegardError("the trace comes from inputs other than text: it cannot be run again from its text")
    ids = [token.id for token in trace.tokens]
    if reader.tokenizer is not None:
        try:
            text, second = given_texts(trace.text, trace.turns)
            read = reader.read("text", text, None) if second is None else reader.read_parts(text, second, None)
        except RegardError:  # such as the text of a trace of ids
            return encoded_ids(ids)
        if read[1][0].ids == ids:
            return read[1][0]  # with its segments
    return encoded_ids(ids)


def class_or_token_id(labels: Sequence[str], tokenizer: Any, value: str | int, what: str) -> int:
    """The number of a classifier's label, given by its name or number; of a model without labels a token's id."""
    if not labels:
        return token_id(tokenizer, value, what)
    named = {name: n for n, label in reversed([*enumerate(labels)]) for name in (n, label.casefold())}
    named |= {label: n for n, label in reversed([*enumerate(labels)])}
    number = named.get(value if is_whole(value) else str(value), named.get(str(value).casefold()))
    if number is None:
        raise RegardError(f"{what}: given {value!r}, needs a label of the model: {some_of([*map(repr, labels)], 20)}")
    return number


def token_id(tokenizer: Any, token: str | int, what: str) -> int:
    """The id of a token that is named by its id, or by its text: with a blank before it, or as it is given.

    Texts mostly go on with a word after a blank, and in many vocabularies that makes another token: "Paris" is " Paris"
    where there is one, and the token without a blank is named by its id.
    """
    if is_whole(token):
        return int(token)
    if not isinstance(token, str):
        raise RegardError(f"{what}: given {token!r}, needs a token: its text, or its id")
    if tokenizer is None:
        raise RegardError(f"{what}: given {token!r}, needs a token's id: the model has no tokenizer")
    unknown = getattr(tokenizer, "unk_token_id", None)
    ids: list[int] = []
    for spelling in (token,) if token.startswith(" ") else (f" {token}", token):
        ids = tokenizer(spelling, add_special_tokens=False)["input_ids"]
        if len(ids) == 1 and (ids[0] != unknown or spelling == tokenizer.unk_token):
            return int(ids[0])
    pieces = ", ".join(map(repr, tokenizer.convert_ids_to_tokens(ids))) or "nothing"
    raise RegardError(f"{what}: {token!r} is no single token of the vocabulary, which makes {pieces} of it")


def read_pictured_text(session: Session, reader: Reader, processor: Any, text: str, image: Any) -> ModelInput:
    """Read a text and its picture as tokens.

    session, reader: of the model and its texts. processor: the model's, of texts and pictures. text: where the
    processor's token for a picture is not in it, the picture stands before it, on a line of its own. image: as
    `read_picture` takes it.
    """
    text, picture = check_text(text, "text"), read_picture(image)
    mark, name = str(processor.image_token), reader.name
    notes = picture.notes
    if mark not in text:
        text, notes = (f"{mark}\n{text}", (*notes, f"The image was placed before the text, which has no {mark}."))
    if text.count(mark) > 1:
        raise RegardError(f"text: given {text.count(mark)} × {mark}, needs one: a text has one picture")
    pixels = processed(processor.image_processor, picture)  # alone first: it refuses what is too large
    ids, tensors = _read_by(processor, text, picture)
    grid = patch_grid(getattr(reader.model.config, "vision_config", None), pixels)
    count = ids.count(reader.tokenizer.convert_tokens_to_ids(mark))
    if grid is None or count != grid[0] * grid[1]:
        parts = "of which the size is not known" if grid is None else f"of {grid[0]} × {grid[1]} patches"
        raise RegardError(f"images: {name} has {count} tokens for {picture.name} {parts}: needs one for each patch")
    _, (encoded,) = reader.read("text", text.replace(mark, mark * count), None)
    if encoded.ids != ids:
        raise RegardError(f"images: the processor of {name} reads the text otherwise than its tokenizer does")
    seen = seen_box(processor.image_processor, picture.size)
    first = ids.index(reader.tokenizer.convert_tokens_to_ids(mark))
    read = {key: x.to(session.original.dtype) if x.is_floating_point() else x for key, x in tensors.items()}
    item = check_inputs(
        {key: x for key, x in read.items() if key in session.takes}, session.original, session.takes, name
    )
    return replace(
        item, text=text, tokens=_placed(encoded.tokens, first, grid, text, mark),
        unknown=encoded.unknown, dropped=encoded.dropped, names=encoded.names,
        patches=Patches(picture, *grid, first, seen),
        notes=(*encoded.notes, *(note for note in (*notes, seen_note(picture, seen)) if note)),
    )  # fmt: skip


def _placed(tokens: tuple[Token, ...], first: int, grid: tuple[int, int], text: str, mark: str) -> tuple[Token, ...]:
    """Name the patches, and place them and what follows them in the text as it was given."""
    count, start, length, made = grid[0] * grid[1], text.index(mark), len(mark), list(tokens[:first])
    for n, token in enumerate(tokens[first : first + count]):
        named = f"{n // grid[1]},{n % grid[1]}"
        made.append(replace(token, text=named, start=start, end=start + length, special=False))
    back = (count - 1) * length
    for token in tokens[first + count :]:
        made.append(replace(token, start=max(token.start - back, 0), end=max(token.end - back, 0)))
    return tuple(replace(token, source=text) for token in made)


def _read_by(processor: Any, text: str, picture: Picture) -> tuple[list[int], dict[str, Tensor]]:
    """The ids, and the tensors beside them, that a processor makes of a text and its picture."""
    with quiet():
        try:
            made = dict(processor(text=text, images=picture.pixels, return_tensors="pt"))
        except Exception as error:  # of the kinds that a stranger's config brings
            problem = first_line(error)
            what = f"{picture.name} and its text"
            raise RegardError(f"{what} cannot be made ready by the processor: {problem}") from error
    ids = made.pop("input_ids", None)
    made.pop("attention_mask", None)  # of one text without padding: all ones
    if ids is None or "pixel_values" not in made:
        raise RegardError(f"images: the model's processor gives {', '.join(made)}, needs ids and pixels")
    return ids[0].tolist(), made
