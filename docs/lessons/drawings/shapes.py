"""Images of two coloured shapes, their captions and their patches: what the painter of lesson 8 is trained on."""

import random

import torch
from torch import Tensor

COLOURS = {
    "red": (0.9, 0.1, 0.1),
    "green": (0.1, 0.7, 0.2),
    "blue": (0.1, 0.2, 0.9),
    "yellow": (0.95, 0.85, 0.1),
    "purple": (0.6, 0.2, 0.7),
    "black": (0.05, 0.05, 0.05),
}
DOWN, ACROSS = torch.meshgrid(torch.arange(12) - 5.5, torch.arange(12) - 5.5, indexing="ij")
SHAPES = {
    "square": (DOWN.abs() < 5) & (ACROSS.abs() < 5),
    "circle": DOWN**2 + ACROSS**2 < 27,
    "triangle": (DOWN.abs() < 5) & (ACROSS.abs() < (DOWN + 5.5) / 2),
}
Shape = tuple[str, str]  # its colour and its kind


def paint(first: Shape, second: Shape, corners: list[tuple[int, int]]) -> tuple[Tensor, Tensor]:
    """Paint two shapes, (3, 32, 32), and return also which pixels each of them covers, (2, 32, 32)."""
    image, inside = torch.ones(3, 32, 32), torch.zeros(2, 32, 32, dtype=torch.bool)
    for n, ((colour, shape), (y, x)) in enumerate(zip((first, second), corners, strict=True)):
        inside[n, y : y + 12, x : x + 12] = SHAPES[shape]
        image[:, inside[n]] = torch.tensor(COLOURS[colour])[:, None]
    return image, inside


def example(draw: random.Random) -> tuple[Tensor, Tensor, str]:
    """Draw an image of two different shapes, next to each other, and its caption."""
    first, second = zip(draw.sample([*COLOURS], 2), draw.sample([*SHAPES], 2), strict=True)
    corners = [(draw.randrange(21), draw.randrange(5) + half) for half in draw.sample((0, 16), 2)]
    return *paint(first, second, corners), f"a {' '.join(first)} and a {' '.join(second)}"


def patches(images: Tensor) -> Tensor:
    """Cut images into patches of 4 × 4 pixels of 3 colours: (images, 64, 48)."""
    return torch.nn.functional.unfold(images, 4, stride=4).transpose(1, 2)


def pixels(rows: Tensor) -> Tensor:
    """Put the patches of an image together again, to be drawn: (32, 32, 3)."""
    return torch.nn.functional.fold(rows.transpose(1, 2), 32, 4, stride=4)[0].permute(1, 2, 0).clamp(0, 1)
