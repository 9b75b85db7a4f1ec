"""Read training texts and sentence pairs, and draw training batches that are the same in every run.

A batch depends only on the seed and its data position. Checkpoints store the position, so that a resumed run neither
repeats nor skips a batch.
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

LARGE = 8  # maximum size of groups with a held-out pair, whose other pairs aren't used for training
LETTERS = string.ascii_letters[:40]
PERIODS = (5, 11)  # minimum and maximum number of different letters in a line
LINE, LINES = 64, 8_000
IGNORED = -100  # the label of positions without a loss, PyTorch's default


@dataclass(frozen=True)
class Pair:
    """A sentence and its translation, for training a translator."""

    source: str
    target: str


def read_training_texts(files: Sequence[Path]) -> list[str]:
    """Read UTF-8 text files for training. Raises RegardError if one is empty."""
    texts = [_read_training_file(file) for file in files]
    for file, text in zip(files, texts, strict=True):
        if not text.strip():
            raise RegardError(f"{str(file)!r} is {'blank' if text else 'empty'}: there is nothing to train on")
    return texts


def read_training_pairs(file: Path) -> list[Pair]:
    """Read sentence pairs from a tab-separated file. Columns after source and target are ignored.

    Duplicate pairs and blank lines are skipped.
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
    """Split pairs into training pairs and held-out pairs without common sentences.

    Pairs that share a sentence, directly or through other pairs, form a group. One pair is held out from each of
    `count` random groups of at most 8 pairs. The other pairs of these groups are in neither list.
    """
    root: dict[tuple[str, str], tuple[str, str]] = {}

    def find_root(node: tuple[str, str]) -> tuple[str, str]:
        root.setdefault(node, node)
        while root[node] != node:
            root[node] = root[root[node]]
            node = root[node]
        return node

    for pair in pairs:
        root[find_root(("source", pair.source))] = find_root(("target", pair.target))
    groups: dict[tuple[str, str], list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(find_root(("source", pair.source)), []).append(pair)
    small = [name for name, members in groups.items() if len(members) <= LARGE]
    if count >= len(small) or count >= len(groups):
        raise RegardError(
            f"held_out: {count} pairs cannot be held out of {len(pairs)}, {len(small)} small groups share no sentence: "
            "--set held_out=N"
        )
    names = random.Random(seed).sample(small, count)
    sample = set(names)
    return [pair for name in groups if name not in sample for pair in groups[name]], [groups[name][0] for name in names]


def watched_pair(sentence: str, pairs: Sequence[Pair], name: str) -> Pair:
    """Return a watched sentence and its target, which is either after a tab or in the held-out pairs."""
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
    """Generate lines of 64 letters, each a repeated sequence of 5 to 11 random letters. The seed determines the text.

    The letter after an earlier occurrence predicts the next letter, as induction heads do (Olsson et al. 2022).
    """
    rng = random.Random(seed)
    return "".join(f"{_line_of_repeated_letters(rng, rng.randint(*PERIODS), LINE)}\n" for _ in range(lines))


def repeated_training_line(seed: int, length: int) -> str:
    """Generate a line of repeated random letters that isn't in the training text. The sequence occurs twice or more."""
    rng = random.Random(f"watched {seed}")
    return _line_of_repeated_letters(rng, min(8, length // 2), length)


def _line_of_repeated_letters(rng: random.Random, period: int, length: int) -> str:
    letters = "".join(rng.sample(LETTERS, period))
    return (letters * (length // period + 1))[:length]


@dataclass(frozen=True, eq=False)
class Batch:
    """A training batch. labels: the next token at each position, IGNORED if there is none.

    source, source_mask: for pairs, the encoder's token ids and a mask that is False for padding.
    """

    ids: Int[Tensor, "B L"]
    labels: Int[Tensor, "B L"]
    mask: Bool[Tensor, "B L"] | None = None
    source: Int[Tensor, "B S"] | None = None
    source_mask: Bool[Tensor, "B S"] | None = None

    @property
    def tokens(self) -> int:
        """Return the number of positions that have a loss."""
        return int((self.labels != IGNORED).sum())

    def rows_of_process(self, rank: int, size: int) -> "Batch":
        """Return the rows of the batch that process `rank` of `size` processes computes."""
        rows_of_rank = slice(rank, None, size)
        if rank >= len(self.ids):  # more processes than rows: use a row without loss
            first = self.rows_of_process(0, len(self.ids))
            return replace(first, labels=torch.full_like(first.labels, IGNORED))
        rows = (self.ids, self.labels, self.mask, self.source, self.source_mask)
        return Batch(*(None if x is None else x[rows_of_rank] for x in rows))  # type: ignore[arg-type]

    def loss(self, model: Any, smoothing: float) -> Float[Tensor, ""]:
        """Return the summed next-token cross-entropy in nats, with label smoothing (Szegedy et al. 2016)."""
        device = next(model.parameters()).device
        tensors = [None if x is None else x.to(device) for x in (self.ids, self.mask, self.source, self.source_mask)]
        ids, mask, source, source_mask = tensors
        if source is None:
            logits = model(ids).logits
        else:
            logits = model(source, ids, attention_mask=source_mask, decoder_attention_mask=mask).logits
        logits, labels = logits.float().flatten(0, 1), self.labels.to(device).flatten()
        return F.cross_entropy(logits, labels, ignore_index=IGNORED, reduction="sum", label_smoothing=smoothing)


@runtime_checkable
class Data(Protocol):
    """The training data of a run: training batches by data position, and validation batches."""

    def batch(self, position: tuple[int, int]) -> tuple[Batch, tuple[int, int]]:
        """Return the training batch at a data position, and the next position. The first is (0, 0)."""

    def validation(self, limit: int | None = None) -> Iterator[Batch]:
        """Yield at most `limit` batches of held-out data, the same in every call."""


class NextToken:
    """Random blocks of a text for next-token training. The end of the text is held out for validation."""

    def __init__(self, ids: Int[Tensor, " n"], *, block: int, batch: int, held_out: float, seed: int) -> None:
        """Split the token ids of all texts. held_out: the fraction to hold out, below 1."""
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

    def batch(self, position: tuple[int, int]) -> tuple[Batch, tuple[int, int]]:
        """Return training batch number `place[1]`, with random blocks that depend on the seed."""
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + position[1])
        starts = torch.randint(len(self.train) - self.block, (self.size,), generator=generator)
        return self._batch_at_starts(self.train, starts), (0, position[1] + 1)

    def validation(self, limit: int | None = None) -> Iterator[Batch]:
        """Yield the held-out text in consecutive blocks, without a shorter last block."""
        starts = torch.arange(0, len(self.held) - self.block, self.block)
        if limit is not None and len(starts) > limit * self.size:  # spread blocks over the whole text
            starts = starts[torch.linspace(0, len(starts) - 1, limit * self.size).long()]
        for first in range(0, len(starts), self.size):
            yield self._batch_at_starts(self.held, starts[first : first + self.size])

    def _batch_at_starts(self, ids: Tensor, starts: Tensor) -> Batch:
        """Return a batch of the blocks that begin at `starts`, with next tokens as labels."""
        rows = ids[starts[:, None] + torch.arange(self.block + 1)]  # (B, block + 1)
        return Batch(rows[:, :-1], rows[:, 1:])


class PairBatches:
    """Batches of sentence pairs with similar lengths, in a new order in each epoch. A batch has at most `batch` tokens
    on the longer side."""

    POOL = 64  # pairs for this many batches are sorted by length together: little padding, still random

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
        """Keep the pairs' ids. Each side ends with an end token. start: the decoder's first id."""
        self.pairs, self.held, self.start, self.filler, self.size, self.seed = pairs, held, start, filler, batch, seed
        longest = max(max(map(len, pair)) for pair in pairs)
        if longest > batch:
            raise RegardError(f"batch: got {batch} tokens, but the longest sentence has {longest}")
        self._epoch_plan: tuple[int, list[list[int]]] = (-1, [])

    def batch(self, position: tuple[int, int]) -> tuple[Batch, tuple[int, int]]:
        """Return the training batch at the position (epoch, batch number in the epoch), and the next position."""
        epoch, number = position
        if self._epoch_plan[0] != epoch:
            self._epoch_plan = epoch, self._batches_of_epoch(epoch)
        order = self._epoch_plan[1]
        next_place = (epoch, number + 1) if number + 1 < len(order) else (epoch + 1, 0)
        return self._batch_of_pairs([self.pairs[n] for n in order[number]]), next_place

    def validation(self, limit: int | None = None) -> Iterator[Batch]:
        """Yield the held-out pairs in batches of similar lengths."""
        order = sorted(range(len(self.held)), key=lambda n: self._length(self.held[n]))
        batches = _cut_into_batches(order, [self._length(pair) for pair in self.held], self.size)
        if limit is not None and len(batches) > limit:
            batches = [batches[n * len(batches) // limit] for n in range(limit)]
        for numbers in batches:
            yield self._batch_of_pairs([self.held[n] for n in numbers])

    def _batches_of_epoch(self, epoch: int) -> list[list[int]]:
        """Return the indices of the pairs in each batch of an epoch."""
        rng = random.Random(self.seed * 1_000_003 + epoch)
        order = list(range(len(self.pairs)))
        rng.shuffle(order)
        lengths = [self._length(pair) for pair in self.pairs]
        pool = max(1, self.POOL * self.size * len(order) // max(1, sum(lengths)))
        batches = []
        for first in range(0, len(order), pool):
            by_length = sorted(order[first : first + pool], key=lambda n: lengths[n])
            batches += _cut_into_batches(by_length, lengths, self.size)
        rng.shuffle(batches)
        return batches

    def _batch_of_pairs(self, pairs: Sequence[tuple[list[int], list[int]]]) -> Batch:
        """Return pairs as a padded batch, with targets shifted right as decoder input."""
        source, source_mask = padded([source for source, _ in pairs], self.filler)
        ids, mask = padded([[self.start, *target[:-1]] for _, target in pairs], self.filler)
        labels, _ = padded([target for _, target in pairs], IGNORED)
        return Batch(ids, labels, mask, source, source_mask)

    @staticmethod
    def _length(pair: tuple[list[int], list[int]]) -> int:
        return max(len(pair[0]), len(pair[1]))


def padded(rows: Sequence[Sequence[int]], filler: int) -> tuple[Int[Tensor, "B L"], Bool[Tensor, "B L"]]:
    """Pad rows of ids on the right to a tensor (B, L), and return a mask that is False for padding."""
    longest = max(map(len, rows))
    ids = torch.tensor([[*row, *[filler] * (longest - len(row))] for row in rows])
    lengths = torch.tensor([len(row) for row in rows])
    return ids, torch.arange(longest)[None] < lengths[:, None]


def encode_pairs(tokenizer: Any, pairs: Sequence[Pair], block: int) -> tuple[list[tuple[list[int], list[int]]], int]:
    """Encode pairs as ids with end tokens. Returns pairs of at most `block` tokens, and the number of longer pairs."""
    sides = []
    for texts in ([pair.source for pair in pairs], [pair.target for pair in pairs]):
        rows = tokenizer(texts, add_special_tokens=False, truncation=False, padding=False, verbose=False)["input_ids"]
        sides.append([[*row, tokenizer.eos_token_id] for row in rows])
    encoded = [pair for pair in zip(*sides, strict=True) if max(map(len, pair)) <= block]
    return encoded, len(pairs) - len(encoded)


def _cut_into_batches(order: Sequence[int], lengths: Sequence[int], size: int) -> list[list[int]]:
    """Group pair indices, sorted by length, into batches of at most `size` tokens including padding."""
    batches: list[list[int]] = []
    for number in order:
        if not batches or lengths[number] * (len(batches[-1]) + 1) > size:
            batches.append([])
        batches[-1].append(number)
    return batches
