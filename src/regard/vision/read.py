"""Read images as model inputs, measure which part of an image a model sees, and trace images without a region."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from PIL import Image
from torch import Tensor
from torch.nn import functional as F

from regard.capture.inputs import ModelInput, check_inputs
from regard.capture.options import NO_LAYERS, CaptureOptions
from regard.checks import is_whole
from regard.errors import RegardError, first_line
from regard.images import Box, Fill, Patches, Picture, read_picture
from regard.model_files.suppress_warnings import quiet
from regard.models.load import BOTH_FILE, PROCESSOR_FILE
from regard.models.model import Model
from regard.text.tokens import Token, check_text
from regard.trace.trace import Trace

LARGEST = 64 << 20  # maximum number of elements in a processor's output, as a config can request any size


def read_images(model: Model, images: Any, text: Any) -> tuple[bool, list[ModelInput]]:
    """Prepare an image, or a list of images, as model inputs. Return whether it is a single image, and the inputs."""
    session, processor = model._session, model.image_processor
    name, image_only = session.name, session.original.main_input_name == "pixel_values"
    if "pixel_values" not in session.takes or session.pairs:
        raise RegardError(
            f"images: {name} reads {session.original.main_input_name!r}, expected a model that reads images"
        )
    if image_only != (text is None):
        raise RegardError(f"images: {name} reads images {'only' if image_only else 'in a text: pass one as well'}")
    if processor is None or not (image_only or hasattr(processor, "image_token")):
        option = ", or trace(inputs={'pixel_values': ...})" if image_only else ""
        file = PROCESSOR_FILE if image_only else BOTH_FILE
        raise RegardError(
            f"images: {name} has no {file}, which describes how to prepare images: pass load(processor=){option}"
        )
    single = not isinstance(images, (list, tuple))
    pictures = [images] if single else list(images)
    if not pictures:
        raise RegardError("images: got none, expected at least one")
    if image_only:
        return single, [_read_image(model, picture) for picture in pictures]
    if model.tokenizer is None:
        raise RegardError(f"images: {name} has no tokenizer for the text: pass load(tokenizer=)")
    is_list = isinstance(text, (list, tuple))
    texts = list(text) if is_list else [text] * len(pictures)
    if len(texts) != len(pictures):
        raise RegardError(f"images: got {len(pictures)}, expected one for each of the {len(texts)} texts, or one text")
    pairs = zip(texts, pictures, strict=True)
    return single and not is_list, [_read_image_in_text(model, *pair) for pair in pairs]


def _read_image(model: Model, image: Any) -> ModelInput:
    """Prepare an image without a text as model input."""
    session, processor, picture = model._session, model.image_processor, read_picture(image)
    pixels = image_pixels(processor, picture)
    item = check_inputs(
        {"pixel_values": pixels.to(session.original.dtype)}, session.original, session.takes, session.name
    )
    grid = patch_grid(session.original.config, pixels)
    if grid is None:
        return replace(item, notes=picture.notes)
    box = seen_box(processor, picture.size)
    notes = tuple(note for note in (*picture.notes, seen_note(picture, box)) if note)
    return replace(item, patches=Patches(picture, *grid, 0, box), notes=notes)


def _read_image_in_text(model: Model, text: str, image: Any) -> ModelInput:
    """Tokenize a text with an image in it.

    text: if it doesn't contain the processor's image token, the image is put before it, on a separate line.
    """
    session, reader, processor = model._session, model._reader, model.image_processor
    text, picture = check_text(text, "text"), read_picture(image)
    mark, name = str(processor.image_token), reader.name
    notes = picture.notes
    if mark not in text:
        text, notes = (f"{mark}\n{text}", (*notes, f"The image was placed before the text, which has no {mark}."))
    if text.count(mark) > 1:
        raise RegardError(f"text: got {text.count(mark)} × {mark}, expected one: a text has one image")
    pixels = image_pixels(processor.image_processor, picture)  # before the text is processed, to reject large images
    ids, tensors = _run_text_processor(processor, text, picture)
    grid = patch_grid(getattr(reader.model.config, "vision_config", None), pixels)
    count = ids.count(reader.tokenizer.convert_tokens_to_ids(mark))
    if grid is None or count != grid[0] * grid[1]:
        parts = "of which the size is not known" if grid is None else f"of {grid[0]} × {grid[1]} patches"
        raise RegardError(f"images: {name} has {count} tokens for {picture.name} {parts}: needs one for each patch")
    _, (encoded,) = reader.read("text", text.replace(mark, mark * count), None)
    if encoded.ids != ids:
        raise RegardError(f"images: the processor of {name} reads the text differently from its tokenizer")
    box = seen_box(processor.image_processor, picture.size)
    first = ids.index(reader.tokenizer.convert_tokens_to_ids(mark))
    converted = {key: x.to(session.original.dtype) if x.is_floating_point() else x for key, x in tensors.items()}
    item = check_inputs(
        {key: x for key, x in converted.items() if key in session.takes}, session.original, session.takes, name
    )
    return replace(
        item, text=text, tokens=_locate(encoded.tokens, first, grid, text, mark),
        unknown=encoded.unknown, dropped=encoded.dropped, names=encoded.names,
        patches=Patches(picture, *grid, first, box),
        notes=(*encoded.notes, *(note for note in (*notes, seen_note(picture, box)) if note)),
    )  # fmt: skip


def _locate(tokens: tuple[Token, ...], first: int, grid: tuple[int, int], text: str, mark: str) -> tuple[Token, ...]:
    """Name the patch tokens, and set every token's position to that in the original text."""
    count, start, length, result = grid[0] * grid[1], text.index(mark), len(mark), list(tokens[:first])
    for n, token in enumerate(tokens[first : first + count]):
        name = f"{n // grid[1]},{n % grid[1]}"
        result.append(replace(token, text=name, start=start, end=start + length, special=False))
    shift = (count - 1) * length
    for token in tokens[first + count :]:
        result.append(replace(token, start=max(token.start - shift, 0), end=max(token.end - shift, 0)))
    return tuple(replace(token, source=text) for token in result)


def _run_text_processor(processor: Any, text: str, picture: Picture) -> tuple[list[int], dict[str, Tensor]]:
    """Run a processor on a text with an image. Return the token ids, and the other tensors by name."""
    with quiet():
        try:
            tensors = dict(processor(text=text, images=picture.pixels, return_tensors="pt"))
        except Exception as error:  # a config can make it raise any exception
            problem = first_line(error)
            label = f"{picture.name} and its text"
            raise RegardError(f"{label} cannot be prepared by the processor: {problem}") from error
    ids = tensors.pop("input_ids", None)
    tensors.pop("attention_mask", None)  # all ones for a single text without padding
    if ids is None or "pixel_values" not in tensors:
        raise RegardError(f"images: the model's processor returns {', '.join(tensors)}, expected ids and pixels")
    return ids[0].tolist(), tensors


def traces_without(model: Model, trace: Trace, regions: Sequence[tuple[slice, slice]], fill: Fill) -> Iterator[Trace]:
    """Yield a trace of an image without each of the regions. The arguments are those of `Model.without`."""
    patches = trace.patches
    if patches is None:
        raise RegardError("without needs the trace of an image: model.trace(images=…)")
    text = [trace.text] if trace.text else None
    _, (item,) = read_images(model, [patches.picture.pixels], text)
    tensors = dict(item.tensors or {})
    pixels, keep = tensors["pixel_values"], CaptureOptions(NO_LAYERS, attention_outputs=False)
    high, wide = pixels.shape[2] // patches.rows, pixels.shape[3] // patches.columns
    for rows, columns in regions:
        region = slice(rows.start * high, rows.stop * high), slice(columns.start * wide, columns.stop * wide)
        changed = replace(item, tensors=tensors | {"pixel_values": fill_region(pixels, *region, fill)})
        run = dict(model._runner.traces([changed], None, (), keep))[0]
        if run.last_hidden_state.shape != trace.last_hidden_state.shape:  # type: ignore[union-attr]
            raise RegardError("without: the trace ends before the model's last layer: trace without layers=")
        yield run  # type: ignore[misc]


def fill_region(
    pixels: Float[Tensor, "n colours h w"], rows: slice, columns: slice, fill: Fill
) -> Float[Tensor, "n colours h w"]:
    """Return a copy of the images in which a region is replaced by a fill."""
    result, part = pixels.clone(), pixels[:, :, rows, columns]
    if fill == "blank":
        new = torch.zeros_like(part)
    elif fill == "mean":
        new = pixels.mean((2, 3), keepdim=True).expand_as(part)
    else:
        high, wide = ((side - 1) // 2 for side in part.shape[2:])
        new = F.avg_pool2d(F.pad(part, (wide, wide, high, high), mode="reflect"), (2 * high + 1, 2 * wide + 1), 1)
    result[:, :, rows, columns] = new
    return result


def patch_grid(config: Any, pixels: Float[Tensor, "1 3 h w"]) -> tuple[int, int] | None:
    """Return the numbers of rows and columns of patches into which a model divides an image, None if unknown.

    config: the model's config. Its patch_size is a number or (height, width).
    """
    size: Any = getattr(config, "patch_size", None)
    high, wide = size if isinstance(size, Sequence) and len(size) == 2 else (size, size)
    if not (is_whole(high) and is_whole(wide) and high > 0 and wide > 0):
        return None
    return int(pixels.shape[2]) // int(high), int(pixels.shape[3]) // int(wide)


def seen_note(picture: Picture, box: Box | None) -> str:
    """Return a note on which part of an image the model saw, "" if it saw all of it."""
    width, height = picture.size
    if box is None:
        return f"The positions of patches in {picture.name} aren't known, because it isn't resized evenly."
    left, top, right, bottom = (round(side) for side in box)
    left, top, right, bottom = max(left, 0), max(top, 0), min(right, width), min(bottom, height)
    if (left, top, right, bottom) == (0, 0, width, height):
        return ""
    part = (right - left) * (bottom - top) / (width * height)
    return (
        f"The model saw {part:.0%} of {picture.name}: pixels {left}–{right} of {width} across and "
        f"{top}–{bottom} of {height} down."
    )


def image_pixels(processor: Any, picture: Picture) -> Float[Tensor, "1 3 h w"]:
    """Return the pixels of an image as the model reads them."""
    return _apply(processor, picture.pixels, picture.name)


def seen_box(processor: Any, size: tuple[int, int]) -> tuple[float, float, float, float] | None:
    """Measure which part of an image a processor passes to the model: (left, top, right, bottom), in pixels.

    size: width and height. The processor gets an image that is redder to the right and greener downwards. The colours
    of the result show where each pixel comes from, even after resizing and cropping. Returns None if the colours don't
    increase evenly (as with padding) or change from run to run (as with random crops).
    """
    width, height = size
    across = np.round(255 * (np.arange(width) + 0.5) / width).astype(np.uint8)
    down = np.round(255 * (np.arange(height) + 0.5) / height).astype(np.uint8)
    black, white = (_apply(processor, Image.new("RGB", size, (level,) * 3), "a measure").double() for level in (0, 255))
    red, green = (Image.fromarray(line).resize(size) for line in (across[None], down[:, None]))
    picture = Image.merge("RGB", (red, green, Image.new("L", size)))
    pixels = _apply(processor, picture, "a measure").double()
    if bool((white == black).any()) or not torch.equal(pixels, _apply(processor, picture, "a measure").double()):
        return None
    pixels = (pixels - black) / (white - black)  # 0 to 1 across the width, and down the height
    x, y = _fit_line(pixels[0, 0].mean(0)), _fit_line(pixels[0, 1].mean(1))
    if x is None or y is None:
        return None
    edges = (0.0, 0.0, float(width), float(height))
    measured = (x[0] * width, y[0] * height, x[1] * width, y[1] * height)
    left, top, right, bottom = (  # colours have only 256 steps, so a position near an edge is set to the edge
        edge if abs(measure - edge) < max(1.0, side / 128) else measure
        for measure, edge, side in zip(measured, edges, (width, height, width, height), strict=True)
    )
    return left, top, right, bottom


def _fit_line(values: Float[Tensor, " n"]) -> tuple[float, float] | None:
    """Fit a line to a colour gradient. Return its values at the outer edges of the end pixels, None if it isn't linear.

    Values near the ends are ignored, because a processor averages fewer pixels at an image's edges.
    """
    count = len(values)
    if count < 4:
        return None
    positions = torch.arange(count, dtype=torch.float64) + 0.5
    middle = slice(count // 16, count - count // 16)
    design = torch.stack([torch.ones_like(positions), positions], 1)
    line = torch.linalg.lstsq(design[middle], values[middle, None]).solution[:, 0]
    if not bool(((design @ line - values)[middle].abs() < 1.5 / 255).all()) or float(line[1]) <= 0:
        return None
    return float(line[0]), float(line[0] + line[1] * count)


def _apply(processor: Any, image: Image.Image, name: str) -> Float[Tensor, "1 3 h w"]:
    """Run an image processor and return its pixels. Raises RegardError if there would be too many."""
    text = f"image {name!r} ({image.width} × {image.height} pixels)"
    sizes = [getattr(processor, name, None) for name in ("size", "crop_size", "pad_size")]
    sides = [side for size in sizes if size is not None for side in dict(size).items() if isinstance(side[1], int)]
    ratio = max(image.size) / max(min(image.size), 1)  # relative to the shorter side, to which "shortest_edge" refers
    count = max((n * n * (ratio if key == "shortest_edge" else 1) for key, n in sides), default=0)
    if count * 3 > LARGEST:
        limit = f"{count:,.0f} pixels of it, at most {LARGEST // 3:,} are made"
        raise RegardError(f"{text}: the model's processor makes {limit}")
    with quiet(), torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)  # the same random crop for the image and for measuring it
        try:
            pixels = processor(images=image, return_tensors="pt")["pixel_values"]
        except Exception as error:
            raise RegardError(f"{text} cannot be prepared by the model's processor: {first_line(error)}") from error
    if not isinstance(pixels, Tensor) or pixels.ndim != 4 or pixels.shape[:2] != (1, 3):
        shape = tuple(getattr(pixels, "shape", ()))
        raise RegardError(f"{text}: the model's processor makes {shape} of it, expected one item (1, 3, height, width)")
    return pixels.float()
