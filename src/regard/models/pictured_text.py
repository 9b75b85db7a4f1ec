"""Read a text that a picture stands in, as models read it that answer questions about pictures.

They have one token that stands for a picture; the model's processor writes it once for each patch, and the model puts
there what its vision tower says of the patch (Liu et al. 2023, "Visual Instruction Tuning").
"""

from dataclasses import replace
from typing import Any

from torch import Tensor

from regard.capture.inputs import ModelInput, check_inputs
from regard.capture.session import Session
from regard.errors import RegardError, first_line
from regard.images.patches import Patches, patch_grid, seen_note
from regard.images.picture import Picture, read_picture
from regard.images.processor import processed, seen_box
from regard.model_files.quiet import quiet
from regard.text.reader import Reader
from regard.text.tokens import Token, check_text


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
        text, notes = (
            f"{mark}\n{text}",
            (*notes, f"The image was placed before the text, which has no {mark}."),
        )
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
            said = first_line(error)
            raise RegardError(f"{picture.name} and its text cannot be made ready by the processor: {said}") from error
    ids = made.pop("input_ids", None)
    made.pop("attention_mask", None)  # of one text without padding: all ones
    if ids is None or "pixel_values" not in made:
        raise RegardError(f"images: the model's processor gives {', '.join(made)}, needs ids and pixels")
    return ids[0].tolist(), made
