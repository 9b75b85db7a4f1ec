"""Word vectors of GloVe 6B: the 50,000 commonest words, 50 numbers each, from the one file whose digest is known."""

import hashlib
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

SHA256 = "af703b04ab806fb8a15beae9d3c5ed392c2f7eeb6ad0710a97dcacf172257bde"  # as regard fetch writes it


def glove(file: Path) -> tuple[dict[str, int], Float[Tensor, "words 50"]]:
    """Read the file; returns each word's row, the commonest word first, and the vectors.

    Raises:
        ValueError: it is another file, and figures of GloVe could not be held against it.
    """
    content = file.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    if digest != SHA256:
        raise ValueError(f"{file} is not the file that regard fetch makes of GloVe 6B: its SHA-256 is {digest}")
    at = content.index(b"\n") + 1
    count, width = map(int, content[: at - 1].split())
    words, vectors = {}, torch.empty(count, width)
    for row in range(count):  # word, blank, float32s, end of line
        blank = content.index(b" ", at)
        words[content[at:blank].decode()] = row
        vectors[row] = torch.frombuffer(bytearray(content[blank + 1 : blank + 1 + 4 * width]), dtype=torch.float32)
        at = blank + 2 + 4 * width
    return words, vectors
