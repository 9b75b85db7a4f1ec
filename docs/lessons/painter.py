"""Lesson 10's painter, from top to bottom: its words, its pictures, the model, painting, and a judge of what it paints.

Shapes: n pictures of 16 × 16 pixels, or of P = 16 patches; L = 10 words; M = 64
numbers for each patch and each word. A pixel is -1 for paper, up to 1 for ink.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

import regard
from regard.nn.layer import FeedForward
from regard.nn.multihead import MultiHeadAttention

try:
    from sklearn.datasets import load_digits
    from sklearn.svm import SVC
except ImportError as error:
    needed = "lesson 10 needs scikit-learn, its digits and its classifier"
    raise regard.RegardError(
        f"{needed} ({error}): pip install scikit-learn"
    ) from error

# ----- Words: which two digits, and in which two corners -----

DIGITS = [
    "zero", "one", "two", "three", "four",
    "five", "six", "seven", "eight", "nine",
]  # fmt: skip
CORNERS = "top left", "top right", "bottom left", "bottom right"
WORDS = ["<start>", ",", "a", "top", "bottom", "left", "right", *DIGITS]
DIGIT_PLACES = [2, 7]  # of the ten words, those that say which digits
PHRASES = [[1, 2, 3, 4], [6, 7, 8, 9]]  # the words of each digit
LENGTH = 10


def line_of(digits, corners):
    """Write the ten words of a line.

    digits: two, such as 7 and 2. corners: of each, a number in CORNERS.
    """
    first, second = (
        f"a {DIGITS[digit]} {CORNERS[corner]}"
        for digit, corner in zip(digits, corners, strict=True)
    )
    return f"<start> {first} , {second}".split()


def ids_of(digits, corners) -> Tensor:
    """Write lines as numbers of words: (n, L). digits, corners: (n, 2)."""
    lines = map(line_of, digits.tolist(), corners.tolist())
    return torch.tensor(
        [[WORDS.index(word) for word in line] for line in lines]
    )


def draw_scenes(count, drawn, different=False):
    """Draw which two digits, and two of the four corners: both (n, 2).

    drawn: the generator of random numbers. different: never twice the same
    digit.
    """
    corners = torch.rand(count, 4, generator=drawn).argsort(-1)[:, :2]
    digits = torch.randint(10, (count, 2), generator=drawn)
    if different:
        apart = torch.randint(1, 10, (count,), generator=drawn)
        digits[:, 1] = (digits[:, 0] + apart) % 10
    return digits, corners


# ----- Pictures: real digits, put into the corners -----


@dataclass
class Pictures:
    """Pictures of digits, (n, 8, 8), and which digits they show, sorted."""

    pixels: Tensor
    labels: Tensor


def read_digits():
    """Read scikit-learn's 1,797 digits: 1,200 to learn from, and the others."""
    data = load_digits()
    drawn = torch.Generator().manual_seed(0)
    order = torch.randperm(len(data.target), generator=drawn)
    pixels = torch.tensor(data.images, dtype=torch.float32)[order] / 8 - 1
    labels = torch.tensor(data.target)[order]
    parts = []
    for part in (slice(1200), slice(1200, None)):
        by_label = labels[part].argsort(stable=True)
        parts.append(Pictures(pixels[part][by_label], labels[part][by_label]))
    return parts


def paste(known, digits, corners, drawn) -> Tensor:
    """Make the pictures of scenes, (n, 16, 16), from known pictures of digits.

    Which of the known sevens becomes a picture's seven is drawn.
    """
    many = torch.bincount(known.labels, minlength=10)  # pictures of each digit
    first = many.cumsum(0) - many
    chosen = (torch.rand(digits.shape, generator=drawn) * many[digits]).long()
    cells = torch.full((len(digits), 4, 64), -1.0)  # four corners of paper
    rows = torch.arange(len(digits))[:, None]
    cells[rows, corners] = known.pixels[first[digits] + chosen].flatten(2)
    return joined(cells)


def patches(pictures, across) -> Tensor:
    """Cut pictures into patches, so many across: (n, patches, pixels)."""
    size = pictures.shape[-1] // across
    cut = pictures.unflatten(1, (across, size)).unflatten(3, (across, size))
    return cut.transpose(2, 3).flatten(3).flatten(1, 2)


def joined(cut) -> Tensor:
    """Put together what `patches` cut."""
    across, size = math.isqrt(cut.shape[1]), math.isqrt(cut.shape[2])
    cut = cut.unflatten(1, (across, across)).unflatten(3, (size, size))
    return cut.transpose(2, 3).flatten(3).flatten(1, 2)


def training_batch(known, step, count=32):
    """Draw what a step learns from; the same for the same step.

    Returns the words (n, L), the pictures (n, 16, 16), the same with noise,
    and the time of each (n): 0 is noise alone, 1 the picture alone.
    """
    drawn = torch.Generator().manual_seed(step)
    digits, corners = draw_scenes(count, drawn)
    pictures = paste(known, digits, corners, drawn)
    # more of the early times: there is little to see, and the words decide
    time = torch.sigmoid(torch.randn(count, generator=drawn) - 0.8)
    noise = torch.randn(pictures.shape, generator=drawn)
    noisy = torch.lerp(noise, pictures, time[:, None, None])
    return ids_of(digits, corners), pictures, noisy, time


# ----- The model -----

WIDTH, HEADS = 64, 2
ACROSS, PATCH = 4, 4  # patches in a row, and pixels in a row of a patch


class Layer(nn.Module):
    """Attention among patches (or words), from patches to words, feed-forward."""

    def __init__(self, name, reads_words=False):
        super().__init__()
        sizes = {"d_model": WIDTH, "heads": HEADS}
        self.attention = MultiHeadAttention(**sizes, path=f"{name}.attention")
        self.attention_norm = nn.LayerNorm(WIDTH)
        if reads_words:
            self.cross = MultiHeadAttention(**sizes, path=f"{name}.cross")
            self.cross_norm = nn.LayerNorm(WIDTH)
        self.feedforward = FeedForward(WIDTH, 4 * WIDTH)
        self.feedforward_norm = nn.LayerNorm(WIDTH)

    def forward(self, x, keys=None, values=None, may=None):
        """Each part adds to x. keys, values: of the words; may: as below."""
        x = x + self.attention(self.attention_norm(x))
        if keys is not None:
            x = x + self.cross(self.cross_norm(x), keys, values, mask=may)
        return x + self.feedforward(self.feedforward_norm(x))


class Painter(nn.Module):
    """Noisy pictures, times and words in; the pictures behind the noise out.

    values: what patches take from words. "plain" embeddings know nothing of
    each other; "contextual" ones have read each other, as in Stable Diffusion.
    """

    def __init__(self, values="plain"):
        super().__init__()
        self.values = values
        # Places begin as large as what they are added to. Where they begin
        # smaller, nothing is learned for thousands of steps.
        self.embedding = nn.Embedding(len(WORDS), WIDTH)
        self.place = nn.Parameter(torch.randn(LENGTH, WIDTH))
        self.words = nn.ModuleList(Layer(f"words.{n}") for n in range(2))
        self.words_norm = nn.LayerNorm(WIDTH)
        self.patch = nn.Linear(PATCH**2, WIDTH)
        self.row = nn.Parameter(torch.randn(ACROSS, WIDTH) / math.sqrt(2))
        self.column = nn.Parameter(torch.randn(ACROSS, WIDTH) / math.sqrt(2))
        self.time = nn.Sequential(
            nn.Linear(64, WIDTH), nn.SiLU(), nn.Linear(WIDTH, WIDTH)
        )
        self.layers = nn.ModuleList(
            Layer(f"painter.{n}", reads_words=True) for n in range(3)
        )
        self.norm = nn.LayerNorm(WIDTH)
        self.output = nn.Linear(WIDTH, PATCH**2)

    def forward(self, noisy, time, words, keys=None, may=None):
        plain = self.embedding(words)  # (n, L, M)
        states = plain + self.place
        for layer in self.words:
            states = layer(states)
        states = self.words_norm(states)  # what each word means in its line
        values = plain if self.values == "plain" else states
        if keys is not None:  # each word gets the key of another
            states = states[:, keys]

        spots = (self.row[:, None] + self.column).flatten(0, 1)  # (P, M)
        x = self.patch(patches(noisy, ACROSS)) + spots
        x = x + self.time(waves(time))[:, None]
        for layer in self.layers:
            x = layer(x, states, values, may)  # may: which words have edges
        return joined(self.output(self.norm(x)))


def waves(time) -> Tensor:
    """Write a time as sines and cosines, fast ones to slow ones: (n, 64).

    Positions were written so in the transformer of 2017.
    """
    angles = 1000 * time[:, None] / 10_000 ** (torch.arange(32) / 32)
    return torch.cat([angles.sin(), angles.cos()], -1)


# ----- Painting -----


@dataclass
class Painted:
    """What was painted, and on the way the pictures expected and the weights.

    expected: (steps, n, 16, 16). weights: (steps, layers, n, heads, P, L), what
    each patch gives to each word.
    """

    pictures: Tensor
    expected: Tensor
    weights: Tensor

    @property
    def heat(self) -> Tensor:
        """Average the weights over steps, layers and heads: (n, P, L)."""
        return self.weights.mean((0, 1, 3))


@torch.no_grad()
def paint(model, words, noise, steps=20, keys=None, may=None) -> Painted:
    """Go from noise towards the picture that the model expects, step by step.

    keys: (L), whose key each word gets. may: (L), False cuts a word's edges.
    """
    pictures, expected, weights = noise, [], []
    for step in range(steps):
        time = torch.full((len(words),), step / steps)
        with regard.record() as calls:
            behind = model(pictures, time, words, keys, may)
        crossed = [
            call.weights.dense()
            for (path, _), call in calls.items()
            if path.endswith(".cross")
        ]
        weights.append(torch.stack(crossed))
        expected.append(behind)
        pictures = pictures + (behind - pictures) / (steps - step)
    return Painted(pictures, torch.stack(expected), torch.stack(weights))


def exchanged(ours, theirs) -> Tensor:
    """Give the words at our places the keys of theirs, and the other way."""
    keys = torch.arange(LENGTH)
    keys[[*ours, *theirs]] = torch.tensor([*theirs, *ours])
    return keys


def all_but(place) -> Tensor:
    """Let patches look at all words but the one at a place."""
    return torch.arange(LENGTH) != place


# ----- What stands there? A judge who never saw the painter's digits -----


class Judge:
    """A support vector machine that names the digit in a corner."""

    def __init__(self, known):
        pixels = known.pixels.flatten(1).numpy()
        self.machine = SVC(gamma=0.05, C=10).fit(pixels, known.labels.numpy())

    def named(self, cells) -> Tensor:
        """Name the digits of corners: (…, 64) pixels in, (…) digits out."""
        flat = cells.clamp(-1, 1).reshape(-1, 64).numpy()
        return torch.tensor(self.machine.predict(flat)).view(cells.shape[:-1])

    def read(self, pictures, corners) -> Tensor:
        """Name the digits of pictures in two corners each: (n, 2)."""
        rows = torch.arange(len(pictures))[:, None]
        return self.named(patches(pictures, 2)[rows, corners])


def corner_of_patches() -> Tensor:
    """Number the corner that each of the 16 patches is in: (P)."""
    patch = torch.arange(ACROSS**2)
    return patch // 8 * 2 + patch % 4 // 2


def measure(model, judge, scenes=100):
    """Paint scenes of two different digits, as they are and changed, and count.

    Returns fractions of all digits, from 0 to 1, by name.
    """
    drawn = torch.Generator().manual_seed(7)
    wanted, corners = draw_scenes(scenes, drawn, different=True)
    words = ids_of(wanted, corners)
    noise = torch.randn(scenes, 16, 16, generator=drawn)
    painted = paint(model, words, noise)

    def read(**change):
        pictures = paint(model, words, noise, **change).pictures
        return judge.read(pictures, corners)

    right = judge.read(painted.pictures, corners) == wanted
    heat = painted.heat[..., DIGIT_PLACES].mT  # (n, 2, P): of the two digits
    corner = corner_of_patches()
    inside = (heat * (corner == corners[..., None])).sum(-1) / heat.sum(-1)
    words_moved = read(keys=exchanged([2], [7]))
    phrases_moved = read(keys=exchanged(*PHRASES))
    still = [
        (read(may=all_but(place)) == wanted)[:, n]
        for n, place in enumerate(DIGIT_PLACES)
    ]
    other = wanted.flip(1)
    found = {
        "right digit in its corner": right,
        "a digit word's largest heat is in its corner": (
            corner[heat.argmax(-1)] == corners
        ),
        "fraction of its heat there": inside,
        "words' keys exchanged: digits change places": words_moved == other,
        "                       … digits stay": words_moved == wanted,
        "phrases' keys exchanged: digits change places": phrases_moved == other,
        "no edge to its word: the digit is right all the same": (
            torch.stack(still)
        ),
    }
    return {name: float(each.double().mean()) for name, each in found.items()}
