"""What a watched block computed: its attention calls, and what was passed over or can't be seen, with reasons."""

from collections.abc import Iterator
from pathlib import Path

from torch import Tensor

from regard.attention.ablation import Ablation
from regard.attention.attention_map import AttentionMap
from regard.attention.recording import Calls, LazyMap
from regard.capture.watching.call_sites import CallSites
from regard.capture.watching.softmax_tracker import Softmax

NO_FACTOR = "it is no factor of a sum of vectors"
MAX_LISTED_SEEN, MAX_LISTED_OTHERS = 40, 10


class Seen(Calls):
    """The attention calls of a block, by (path, n-th call), and by path alone if it made one call.

    passed_over: each softmax that was not taken for attention. unseen: what can't be seen, by path, with the reason.
    notes: how the watched computation differs from the plain one. Printing the object lists all of it.
    """

    def __init__(self, sites: CallSites) -> None:
        super().__init__(None, ("value",))
        self._sites = sites
        self.passed_over: list[Softmax] = []
        self.unseen: dict[str, str] = {}
        self.notes: list[str] = []

    def add(
        self, path: str, kernel: str, weights: AttentionMap | LazyMap, ablations: tuple[Ablation, ...] = (),
        where: str = "", **tensors: Tensor | None,
    ) -> None:  # fmt: skip
        """Keep one call. Calls of `regard.attend` come without where."""
        if not where:
            site = self._sites.find(of_attend=True)
            if site is None:
                return
            where = site.where
        super().add(path, kernel, weights, ablations, where, **tensors)

    def note(self, sentence: str) -> None:
        """Add a note, once."""
        if sentence not in self.notes:
            self.notes.append(sentence)

    def others(self) -> Iterator[str]:
        """Yield a line for each softmax that was passed over, and for everything that can't be seen."""
        passed_over = [
            f"softmax of {softmax.path} ({_short(softmax.where)}) passed over: {softmax.reason or NO_FACTOR}"
            for softmax in self.passed_over
        ]
        yield from dict.fromkeys(passed_over)
        yield from (f"not seen: {path or 'the module'}: {reason}" for path, reason in self.unseen.items())

    def __repr__(self) -> str:
        rows = [("path", "how", "weights", "line")]
        for (path, nth), call in list(self.items())[:MAX_LISTED_SEEN]:
            name = f"{path}, {nth}" if (path, 1) in self else path
            rows.append((name, call.how, str(call.source.shape), _short(call.where)))
        widths = [max(len(row[n]) for row in rows) for n in range(3)]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, [*widths, 0], strict=True)) for row in rows]
        lines += [f"… and {len(self) - MAX_LISTED_SEEN} more"] * (len(self) > MAX_LISTED_SEEN)
        calls = f"{len(self)} attention call{'s' * (len(self) != 1)}"
        return "\n".join([f"Seen: {calls}", *(lines if self or any(self.others()) else []), *self.lines_below()])

    def lines_below(self) -> list[str]:
        """Return the lines below the table: what was passed over and can't be seen, and the notes."""
        others = list(self.others())
        lines = [line[0].upper() + line[1:] for line in others[:MAX_LISTED_OTHERS]]
        lines += [f"… and {len(others) - MAX_LISTED_OTHERS} more"] * (len(others) > MAX_LISTED_OTHERS)
        return lines + self.notes


def _short(where: str) -> str:
    return Path(where).name
