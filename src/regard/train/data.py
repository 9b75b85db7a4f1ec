"""Read text files and files of sentence pairs, and draw batches of them, the same at every run.

Which batch comes next follows from the seed and a place alone. A place, kept in each checkpoint, is all that is needed
to go on: no batch is seen twice or left out by a resume.
"""

import random
import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from regard.errors import RegardError

LARGE = 8  # pairs of a group from which on none of it is held out: all the others would be lost to training
LETTERS = string.ascii_letters[:40]
PERIODS = (5, 11)  # how many different letters a line repeats, at least and at most
LINE, LINES = 64, 8_000
IGNORED = -100  # a label that has no loss: PyTorch's own number for it


@dataclass(frozen=True)
class Pair:
    """A sentence and its translation."""

    source: str
    target: str


def read_training_texts(files: Sequence[Path]) -> list[str]:
    """Read text files."""
    texts = [_read_training_file(file) for file in files]
    for file, text in zip(files, texts, strict=True):
        if not text.strip():
            raise RegardError(f"{str(file)!r} is {'blank' if text else 'empty'}: there is nothing to train on")
    return texts


def read_training_pairs(file: Path) -> list[Pair]:
    """Read the pairs of a file of tab-separated values: source, target, and columns after them that are left alone.

    A pair that occurs several times is kept once. Blank lines are passed over.
    """
    pairs: dict[Pair, None] = {}
    for number, line in enumerate(_read_training_file(file).split("\n"), 1):
        line = line.rstrip("\r")
        if not line.strip():
            continue
        columns = [column.strip() for column in line.split("\t")]
        if len(columns) < 2:
            raise RegardError(f"{str(file)!r}, line {number}: no tab between source and target")
        for side, column in (("source", columns[0]), ("target", columns[1])):
            if not column:
                raise RegardError(f"{str(file)!r}, line {number}: the {side} is missing")
        pairs[Pair(columns[0], columns[1])] = None
    if not pairs:
        raise RegardError(f"{str(file)!r} has no pairs: there is nothing to train on")
    return list(pairs)


def hold_out(pairs: Sequence[Pair], count: int, seed: int) -> tuple[list[Pair], list[Pair]]:
    """Split pairs into (training, held out), so that no sentence of either side stands in both.

    Pairs that share a sentence, over any number of steps, are a group. Of count groups, drawn among those of at most 8
    pairs, one pair each is held out, so that their sentences are all different; the rest of those groups is left out of
    both.
    """
    root: dict[tuple[str, str], tuple[str, str]] = {}

    def find(node: tuple[str, str]) -> tuple[str, str]:
        root.setdefault(node, node)
        while root[node] != node:
            root[node] = root[root[node]]
            node = root[node]
        return node

    for pair in pairs:
        root[find(("source", pair.source))] = find(("target", pair.target))
    groups: dict[tuple[str, str], list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(find(("source", pair.source)), []).append(pair)
    small = [name for name, members in groups.items() if len(members) <= LARGE]
    if count >= len(small) or count >= len(groups):
        raise RegardError(
            f"held_out: {count} pairs cannot be held out of {len(pairs)}, {len(small)} small groups share no sentence: "
            "--set held_out=N"
        )
    drawn = random.Random(seed).sample(small, count)
    apart = set(drawn)
    return [pair for name in groups if name not in apart for pair in groups[name]], [groups[name][0] for name in drawn]


def watched_pair(sentence: str, pairs: Sequence[Pair], name: str) -> Pair:
    """Find a watched sentence and its target: given with a tab between, or a sentence that was held out."""
    source, tab, target = sentence.partition("\t")
    if tab and source.strip() and target.strip():
        return Pair(source.strip(), target.strip())
    for pair in pairs:
        if pair.source == sentence:
            return pair
    raise RegardError(
        f"--watch {sentence[:40]!r}: a translator needs a target, with a tab between, or a sentence held out of {name}"
    )


def _read_training_file(file: Path) -> str:
    try:
        content = file.read_bytes()
    except OSError as error:
        raise RegardError(f"{str(file)!r} cannot be read: {error.strerror or error}") from error
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RegardError(
            f"{str(file)!r} isn't UTF-8: byte {content[error.start]:#04x} at position {error.start}"
        ) from None


def repeated_training_text(seed: int, lines: int = LINES) -> str:
    """Draw lines of 64 letters, each 5 to 11 different ones over and over; the same from the same seed.

    Each letter follows from its last occurrence alone, which induction heads find (Olsson et al. 2022).
    """
    drawn = random.Random(seed)
    return "".join(f"{_line_of_repeated_letters(drawn, drawn.randint(*PERIODS), LINE)}\n" for _ in range(lines))


def repeated_training_line(seed: int, length: int) -> str:
    """Draw one such line of another length, that is in no text: it repeats twice at least."""
    drawn = random.Random(f"watched {seed}")
    return _line_of_repeated_letters(drawn, min(8, length // 2), length)


def _line_of_repeated_letters(drawn: random.Random, period: int, length: int) -> str:
    letters = "".join(drawn.sample(LETTERS, period))
    return (letters * (length // period + 1))[:length]


@dataclass(frozen=True, eq=False)
class Batch:
    """A training batch. labels: the next token of each place, IGNORED if there is none.

    source, source_mask: of pairs, what the encoder reads and which of its tokens are real.
    """

    ids: Int[Tensor, "B L"]
    labels: Int[Tensor, "B L"]
    mask: Bool[Tensor, "B L"] | None = None
    source: Int[Tensor, "B S"] | None = None
    source_mask: Bool[Tensor, "B S"] | None = None

    @property
    def tokens(self) -> int:
        """Count the places that have a loss."""
        return int((self.labels != IGNORED).sum())

    def part(self, rank: int, of: int) -> "Batch":
        """Take the rows of one of several processes."""
        own = slice(rank, None, of)
        if rank >= len(self.ids):  # nothing is left for this one: it goes along with a row that has no loss
            first = self.part(0, len(self.ids))
            return replace(first, labels=torch.full_like(first.labels, IGNORED))
        rows = (self.ids, self.labels, self.mask, self.source, self.source_mask)
        return Batch(*(None if x is None else x[own] for x in rows))  # type: ignore[arg-type]

    def loss(self, model: Any, smoothing: float) -> Float[Tensor, ""]:
        """Sum the cross-entropy of each next token, in nats, with labels smoothed (Szegedy et al. 2016)."""
        device = next(model.parameters()).device
        moved = [None if x is None else x.to(device) for x in (self.ids, self.mask, self.source, self.source_mask)]
        ids, mask, source, source_mask = moved
        if source is None:
            logits = model(ids).logits
        else:
            logits = model(source, ids, attention_mask=source_mask, decoder_attention_mask=mask).logits
        logits, labels = logits.float().flatten(0, 1), self.labels.to(device).flatten()
        return F.cross_entropy(logits, labels, ignore_index=IGNORED, reduction="sum", label_smoothing=smoothing)


@runtime_checkable
class Data(Protocol):
    """The training data of a run."""

    def batch(self, place: tuple[int, int]) -> tuple[Batch, tuple[int, int]]:
        """Draw the batch at a place; returns it and the place after it. The first place is (0, 0)."""

    def validation(self, most: int | None = None) -> Iterator[Batch]:
        """Yield batches of what was held out, always the same; the first ones alone where most is given."""


class NextToken:
    """Blocks of a running text, drawn at random; its last part validates, in blocks one after another."""

    def __init__(self, ids: Int[Tensor, " n"], *, block: int, batch: int, held_out: float, seed: int) -> None:
        """ids: of all texts, one after another. held_out: the part that validates, below 1."""
        if not 0 < held_out < 1:
            raise RegardError(f"held_out: got {held_out}, expected a fraction between 0 and 1 of the text")
        edge = int(len(ids) * (1 - held_out))
        self.train, self.held = ids[:edge], ids[edge:]
        for name, part in (("to train on", self.train), ("held out", self.held)):
            if len(part) < block + 1:
                raise RegardError(
                    f"the text has {len(ids)} tokens, of which {len(part)} are {name}: a block of {block} needs "
                    f"{block + 1} of them"
                )
        self.block, self.size, self.seed = block, batch, seed

    def batch(self, place: tuple[int, int]) -> tuple[Batch, tuple[int, int]]:
        """Draw blocks whose starts follow from the seed and the place, (0, number of the batch)."""
        drawn = torch.Generator().manual_seed(self.seed * 1_000_003 + place[1])
        starts = torch.randint(len(self.train) - self.block, (self.size,), generator=drawn)
        return self._blocks(self.train, starts), (0, place[1] + 1)

    def validation(self, most: int | None = None) -> Iterator[Batch]:
        """Yield the held-out part in blocks side by side, all of it except for a rest shorter than a block."""
        starts = torch.arange(0, len(self.held) - self.block, self.block)
        if most is not None and len(starts) > most * self.size:  # spread over all of it
            starts = starts[torch.linspace(0, len(starts) - 1, most * self.size).long()]
        for first in range(0, len(starts), self.size):
            yield self._blocks(self.held, starts[first : first + self.size])

    def _blocks(self, ids: Tensor, starts: Tensor) -> Batch:
        rows = ids[starts[:, None] + torch.arange(self.block + 1)]  # (B, block + 1)
        return Batch(rows[:, :-1], rows[:, 1:])


class PairBatches:
    """Sentence pairs in batches of like lengths, at most `batch` tokens of the longer side each, in another order every
    time round."""

    POOL = 64  # batches among which pairs are put in order of length: little padding, and still at random

    def __init__(
        self,
        pairs: Sequence[tuple[list[int], list[int]]],
        held: Sequence[tuple[list[int], list[int]]],
        *,
        start: int,
        filler: int,
        batch: int,
        seed: int,
    ) -> None:
        """pairs, held: ids of source and target, each with its end token. start: the decoder's first id."""
        self.pairs, self.held, self.start, self.filler, self.size, self.seed = pairs, held, start, filler, batch, seed
        longest = max(max(map(len, pair)) for pair in pairs)
        if longest > batch:
            raise RegardError(f"batch: got {batch} tokens, but the longest sentence has {longest}")
        self._plan: tuple[int, list[list[int]]] = (-1, [])

    def batch(self, place: tuple[int, int]) -> tuple[Batch, tuple[int, int]]:
        """Draw the batch at (epoch, number of the batch in it)."""
        turn, number = place
        if self._plan[0] != turn:
            self._plan = turn, self._order(turn)
        order = self._plan[1]
        after = (turn, number + 1) if number + 1 < len(order) else (turn + 1, 0)
        return self._joined([self.pairs[n] for n in order[number]]), after

    def validation(self, most: int | None = None) -> Iterator[Batch]:
        """Yield the held-out pairs, in batches of like lengths."""
        order = sorted(range(len(self.held)), key=lambda n: self._length(self.held[n]))
        batches = _cut_into_batches(order, [self._length(pair) for pair in self.held], self.size)
        if most is not None and len(batches) > most:
            batches = [batches[n * len(batches) // most] for n in range(most)]
        for chosen in batches:
            yield self._joined([self.held[n] for n in chosen])

    def _order(self, turn: int) -> list[list[int]]:
        """Decide which pairs are in which batch of an epoch."""
        drawn = random.Random(self.seed * 1_000_003 + turn)
        order = list(range(len(self.pairs)))
        drawn.shuffle(order)
        lengths = [self._length(pair) for pair in self.pairs]
        pool = max(1, self.POOL * self.size * len(order) // max(1, sum(lengths)))
        batches = []
        for first in range(0, len(order), pool):
            near = sorted(order[first : first + pool], key=lambda n: lengths[n])
            batches += _cut_into_batches(near, lengths, self.size)
        drawn.shuffle(batches)
        return batches

    def _joined(self, pairs: Sequence[tuple[list[int], list[int]]]) -> Batch:
        source, source_mask = padded([source for source, _ in pairs], self.filler)
        ids, mask = padded([[self.start, *target[:-1]] for _, target in pairs], self.filler)
        labels, _ = padded([target for _, target in pairs], IGNORED)
        return Batch(ids, labels, mask, source, source_mask)

    @staticmethod
    def _length(pair: tuple[list[int], list[int]]) -> int:
        return max(len(pair[0]), len(pair[1]))


def padded(rows: Sequence[Sequence[int]], filler: int) -> tuple[Int[Tensor, "B L"], Bool[Tensor, "B L"]]:
    """Pad rows of unlike lengths to one tensor, on the right; the mask is True for what is real."""
    longest = max(map(len, rows))
    ids = torch.tensor([[*row, *[filler] * (longest - len(row))] for row in rows])
    lengths = torch.tensor([len(row) for row in rows])
    return ids, torch.arange(longest)[None] < lengths[:, None]


def encode_pairs(tokenizer: Any, pairs: Sequence[Pair], block: int) -> tuple[list[tuple[list[int], list[int]]], int]:
    """Encode pairs as ids, each side with its end token; counts those left out, being longer than block tokens."""
    sides = []
    for texts in ([pair.source for pair in pairs], [pair.target for pair in pairs]):
        rows = tokenizer(texts, add_special_tokens=False, truncation=False, padding=False, verbose=False)["input_ids"]
        sides.append([[*row, tokenizer.eos_token_id] for row in rows])
    kept = [pair for pair in zip(*sides, strict=True) if max(map(len, pair)) <= block]
    return kept, len(pairs) - len(kept)


def _cut_into_batches(order: Sequence[int], lengths: Sequence[int], size: int) -> list[list[int]]:
    """Group pairs in order of length into batches of at most size tokens, padding included."""
    batches: list[list[int]] = []
    for number in order:
        if not batches or lengths[number] * (len(batches[-1]) + 1) > size:
            batches.append([])
        batches[-1].append(number)
    return batches
