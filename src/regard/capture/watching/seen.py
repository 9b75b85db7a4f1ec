"""The result of `regard.watch`: attention calls, skipped softmaxes, and calls that can't be seen, with reasons."""

from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor

from regard.attention.ablation import Ablation
from regard.attention.attention_map import AttentionMap
from regard.attention.recording import Call, Calls, LazyMap
from regard.capture.watching.call_sites import CallSites
from regard.capture.watching.softmax_tracker import Softmax
from regard.errors import RegardError
from regard.text.quoting import visible

HIDDEN = "Calls in other threads, in TorchScript and in compiled kernels can't be seen."
NO_FACTOR = "it is no factor of a sum of vectors"
MAX_LISTED_SEEN, MAX_LISTED_OTHERS = 40, 10


class WatchedCalls(Calls):
    """The attention calls of a block, by (path, n-th call), or by only the path if it has a single call.

    passed_over: the softmaxes that aren't attention, one per line of code.
    notes: how the watched computation differs from the plain one. Printing the object lists all of these.
    """

    def __init__(
        self, sites: CallSites, *, keep: int | None = None, on_call: Callable[[Call], None] | None = None
    ) -> None:
        """keep: the number of latest calls to keep per path. on_call: receives each call instead of storing it."""
        super().__init__(None, ("value",))
        self.sites, self._keep_last, self.on_call = sites, keep, on_call
        self.passed_over: list[Softmax] = []
        self.notes: list[str] = []

    def add(
        self, path: str, kernel: str, weights: AttentionMap | LazyMap, ablations: tuple[Ablation, ...] = (),
        where: str = "", **tensors: Tensor | None,
    ) -> None:  # fmt: skip
        """Add one watched attention call. Calls to `regard.attend` are passed without `where`."""
        if not where:
            site = self.sites.find(of_attend=True)
            if site is None:
                return
            where = site.where
        super().add(path, kernel, weights, ablations, where, **tensors)

    def take(self, call: Call) -> None:
        """Keep a watched attention call, or pass it to `on_call`."""
        if self.on_call is not None:
            self.on_call(call)
            return
        super().take(call)
        if self._keep_last is not None and (old := (call.path, call.nth - self._keep_last)) in self:
            del self[old]
            self.note(f"Only the last {self._keep_last} calls of each path are kept.")

    @cached_property
    def unrecorded(self) -> dict[str, str]:
        """Return the attention calls that can't be seen, by path, with the reason."""
        scripted: dict[str, str] = {}
        for path, part in self.sites.root.named_modules() if self.sites.root is not None else ():
            below = any(f"{path}.".startswith(f"{other}." * bool(other)) for other in scripted)
            if isinstance(part, torch.jit.ScriptModule) and not below:
                scripted[path] = "TorchScript runs outside Python"
        return scripted

    def note(self, sentence: str) -> None:
        """Add a note on the watched computation unless it is there already."""
        if sentence not in self.notes:
            self.notes.append(sentence)

    def nothing_seen(
        self, message: str = "watch: no attention was computed in the block", between: str = "\n  "
    ) -> RegardError:
        """Return the error for a block or program without attention, with a message and the reasons."""
        return RegardError(between.join([message, *self.others(), HIDDEN]))

    def others(self) -> Iterator[str]:
        """Yield a line for each skipped softmax and each attention that can't be seen."""
        passed_over = [
            f"softmax of {softmax.path} ({_file_name(softmax.where)}) passed over: {softmax.reason or NO_FACTOR}"
            for softmax in self.passed_over
        ]
        yield from dict.fromkeys(passed_over)
        yield from (f"not seen: {path or 'the module'}: {reason}" for path, reason in self.unrecorded.items())

    def __repr__(self) -> str:
        rows = [("path", "how", "weights", "line")]
        for (path, nth), call in list(self.items())[:MAX_LISTED_SEEN]:
            name = f"{path}, {nth}" if nth or (path, 1) in self else path
            rows.append((name, call.how, str(call.source.shape), _file_name(call.where)))
        widths = [max(len(row[n]) for row in rows) for n in range(3)]
        lines = [visible("  ".join(map(str.ljust, row, [*widths, 0]))) for row in rows]  # a file may have any name
        lines += [f"… and {len(self) - MAX_LISTED_SEEN} more"] * (len(self) > MAX_LISTED_SEEN)
        calls = f"{len(self)} attention call{'s' * (len(self) != 1)}"
        return "\n".join([f"Seen: {calls}", *(lines if self or any(self.others()) else []), *self.lines_below()])

    def lines_below(self) -> list[str]:
        """Return the lines below the table: skipped softmaxes, attention that can't be seen, and notes."""
        others = list(self.others())
        lines = [line[0].upper() + line[1:] for line in others[:MAX_LISTED_OTHERS]]
        lines += [f"… and {len(others) - MAX_LISTED_OTHERS} more"] * (len(others) > MAX_LISTED_OTHERS)
        return lines + self.notes


def _file_name(where: str) -> str:
    return Path(where).name
