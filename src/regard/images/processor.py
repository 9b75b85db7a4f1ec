"""Open the image processor of a model's folder, and make of a picture the tensor that the model reads."""

from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from PIL import Image
from torch import Tensor

from regard.errors import RegardError, first_line
from regard.images.picture import Picture
from regard.model_files.suppress_warnings import quiet

PROCESSOR_FILE, BOTH_FILE = "preprocessor_config.json", "processor_config.json"  # of pictures; of texts too
LARGEST = 64 << 20  # numbers of a tensor that a processor may make: a config can ask for any size


def read_processor(place: Any, *, texts: bool = False) -> Any:
    """Open the image processor of a folder or hub name that has one; no code of it is run.

    texts: open what makes texts with pictures ready, of a model that reads both.
    """
    import transformers

    file = BOTH_FILE if texts else PROCESSOR_FILE
    with quiet():
        try:
            kind = transformers.AutoProcessor if texts else transformers.AutoImageProcessor
            return kind.from_pretrained(place, backend="pil", trust_remote_code=False)
        except Exception as error:  # of the kinds that broken JSON and unknown names bring
            raise RegardError(f"{file} of {str(place)!r} cannot be used: {first_line(error)}") from error


def processed(processor: Any, picture: Picture) -> Float[Tensor, "1 3 h w"]:
    """Make the tensor that the model reads of a picture."""
    return _run(processor, picture.pixels, picture.name)


def seen_box(processor: Any, size: tuple[int, int]) -> tuple[float, float, float, float] | None:
    """Measure which part of a picture a processor shows to the model: (left, top, right, bottom), in pixels.

    size: width and height. The processor is given a picture that is redder to the right and greener downwards: what
    comes out says where each pixel was taken from, whatever the processor resizes, cuts or crops. None where the
    two colours do not grow evenly or change, as if it pads or crops at random: the places are then not known.
    """
    width, height = size
    across = np.round(255 * (np.arange(width) + 0.5) / width).astype(np.uint8)
    down = np.round(255 * (np.arange(height) + 0.5) / height).astype(np.uint8)
    black, white = (_run(processor, Image.new("RGB", size, (level,) * 3), "a measure").double() for level in (0, 255))
    red, green = (Image.fromarray(line).resize(size) for line in (across[None], down[:, None]))
    picture = Image.merge("RGB", (red, green, Image.new("L", size)))
    shown = _run(processor, picture, "a measure").double()
    if bool((white == black).any()) or not torch.equal(shown, _run(processor, picture, "a measure").double()):
        return None
    shown = (shown - black) / (white - black)  # 0 to 1 of the width, and of the height
    x, y = _straight(shown[0, 0].mean(0)), _straight(shown[0, 1].mean(1))
    if x is None or y is None:
        return None
    edges = (0.0, 0.0, float(width), float(height))
    measured = (x[0] * width, y[0] * height, x[1] * width, y[1] * height)
    left, top, right, bottom = (  # the colours are of 256 steps: what is that near to an edge is the edge
        edge if abs(measure - edge) < max(1.0, side / 128) else measure
        for measure, edge, side in zip(measured, edges, (width, height, width, height), strict=True)
    )
    return left, top, right, bottom


def _straight(values: Float[Tensor, " n"]) -> tuple[float, float] | None:
    """Where a line through values begins and ends, half a step outside; None where they stand on none.

    What is near the ends is left out: at a picture's edges a processor has nothing to take means of.
    """
    count = len(values)
    if count < 4:
        return None
    at = torch.arange(count, dtype=torch.float64) + 0.5
    middle = slice(count // 16, count - count // 16)
    design = torch.stack([torch.ones_like(at), at], 1)
    solved = torch.linalg.lstsq(design[middle], values[middle, None]).solution[:, 0]
    if not bool(((design @ solved - values)[middle].abs() < 1.5 / 255).all()) or float(solved[1]) <= 0:
        return None
    return float(solved[0]), float(solved[0] + solved[1] * count)


def _run(processor: Any, image: Image.Image, name: str) -> Float[Tensor, "1 3 h w"]:
    what = f"image {name!r} ({image.width} × {image.height} pixels)"
    sizes = [getattr(processor, name, None) for name in ("size", "crop_size", "pad_size")]
    sides = [side for size in sizes if size is not None for side in dict(size).items() if isinstance(side[1], int)]
    longer = max(image.size) / max(min(image.size), 1)  # times the shorter side, whose size "shortest_edge" is
    made = max((n * n * (longer if key == "shortest_edge" else 1) for key, n in sides), default=0)
    if made * 3 > LARGEST:
        most = f"{made:,.0f} pixels of it, at most {LARGEST // 3:,} are made"
        raise RegardError(f"{what}: the model's processor makes {most}")
    with quiet(), torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)  # what crops at random crops an image and its measure alike
        try:
            pixels = processor(images=image, return_tensors="pt")["pixel_values"]
        except Exception as error:
            raise RegardError(f"{what} cannot be made ready by the model's processor: {first_line(error)}") from error
    if not isinstance(pixels, Tensor) or pixels.ndim != 4 or pixels.shape[:2] != (1, 3):
        shape = tuple(getattr(pixels, "shape", ()))
        raise RegardError(f"{what}: the model's processor makes {shape} of it, needs one item (1, 3, height, width)")
    return pixels.float()
