"""Read a text that is longer than its model's limit in overlapping windows, on request only.

A window is a separate text to the model: attention doesn't reach across its edges, and its positions start again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from regard.checks import is_whole
from regard.errors import RegardError
from regard.text.tokens import Encoded, Token
from regard.text.words import Word, find_word
from regard.trace.layer_subset import LayerSubset
from regard.trace.status import Status, largest_status_difference
from regard.trace.trace import PairTrace, ShownTrace, Trace, is_causal

FAR = 1 << 40  # how far a token stands from an edge that is none: where the text itself begins or ends


@dataclass(frozen=True)
class Plan:
    """How a text is cut. window: tokens of a window, including special tokens. stride: how far each is past the last.

    spans: the whole text's tokens [start, stop) that each window has, special ones aside. before, after: how many
    special tokens are around each.
    """

    encoded: Encoded
    window: int
    stride: int
    spans: tuple[tuple[int, int], ...]
    before: int
    after: int

    def pieces(self) -> list[Encoded]:
        """Each window as a separate text, with the special tokens that the tokenizer puts around a text."""
        return [self._piece(start, stop) for start, stop in self.spans]

    def sources(self, causal: bool) -> tuple[int, ...]:
        """The window of every token: the one in which it stands furthest from an edge, the earlier of two alike.

        Where the text itself begins or ends is no edge; nor, to a causal model, is the right side of a window.
        """
        best = torch.full((len(self.encoded.tokens),), -1)
        chosen = torch.zeros_like(best)
        for number, (start, stop) in enumerate(self.spans):
            margin = self.margins(number, causal)
            better = margin > best[start:stop]
            best[start:stop][better] = margin[better]
            chosen[start:stop][better] = number
        chosen[self.spans[-1][1] :] = len(self.spans) - 1
        return tuple(chosen.tolist())

    def margins(self, number: int, causal: bool) -> Tensor:
        """The distance of each token in a window from the nearest edge."""
        start, stop = self.spans[number]
        place = torch.arange(stop - start)
        left = place if number > 0 else torch.full_like(place, FAR)
        right = place.flip(0) if number < len(self.spans) - 1 and not causal else torch.full_like(place, FAR)
        return torch.minimum(left, right)

    def shift(self, number: int) -> int:
        """The difference between a token's number in the whole text and in its window."""
        return self.spans[number][0] - self.before

    def note(self) -> str:
        """Write the note of a status."""
        if len(self.spans) == 1:
            return f"Read in a single window, because the text has at most {self.window} tokens."
        cut = f"Read in {len(self.spans)} windows of {self.window} tokens, stride {self.stride}"
        return f"{cut}. Attention doesn't cross windows."

    def _piece(self, start: int, stop: int) -> Encoded:
        whole, end = self.encoded, len(self.encoded.tokens) - self.after
        run = [*range(self.before), *range(start, stop), *range(end, end + self.after)]
        inside = whole.tokens[start:stop]
        first, last = min(token.start for token in inside), max(token.end for token in inside)
        text = whole.text[first:last]

        def moved(token: Token) -> Token:
            begin, stop = (min(max(0, place - first), last - first) for place in (token.start, token.end))
            return replace(token, start=begin, end=stop, source=text)

        segments = None if whole.segments is None else tuple(whole.segments[n] for n in run)
        # What the tokenizer did not know is said once, of the whole text.
        return Encoded(text, tuple(moved(whole.tokens[n]) for n in run), segments, (), (), whole.notes, whole.names)


def plan(encoded: Encoded, tokenizer: Any, window: int, stride: int | None, limit: int | None, name: str) -> Plan:
    """Cut a text into windows.

    The last window is moved back to the text's end, so that it is as long as the others.
    """
    for option, value in (("window", window), ("stride", stride)):
        if value is not None and not is_whole(value):
            raise RegardError(f"{option}: got {value!r}, expected a whole number of tokens")
    tokens = encoded.tokens
    added = [token.special and token.start == token.end for token in tokens]
    before = next(n for n, special in enumerate([*added, False]) if not special)
    after = next(n for n, special in enumerate([*added[::-1], False]) if not special)
    if tokenizer is not None and tokenizer.num_special_tokens_to_add(pair=False) != before + after:
        raise RegardError(f"window: the tokenizer of {name} also puts special tokens inside a text, not only around it")
    room = window - before - after
    if limit is not None and window > limit:
        raise RegardError(f"window: got {window}, but {name} takes at most {limit} tokens")
    if room < 2:
        special = f": {before + after} of its tokens are special" if before + after else ""
        raise RegardError(f"window: got {window}, expected {before + after + 2} or more{special}")
    stride = room // 2 if stride is None else stride
    if not 1 <= stride < room:
        problem = f"a window of {window} tokens holds {room} of the text"
        raise RegardError(f"stride: got {stride}, expected 1 to {room - 1}: {problem}, and windows have to overlap")
    length = len(tokens) - before - after
    starts = list(range(0, max(1, length - room + stride), stride))
    starts[-1] = max(0, length - room)
    spans = tuple((before + start, before + min(start + room, length)) for start in starts)
    return Plan(encoded, window, stride, spans, before, after)


@dataclass(eq=False)
class WindowedTrace(ShownTrace):
    """A long text read in overlapping windows.

    tokens: the whole text's. windows: the trace of each window, whose tokens and characters are renumbered.
    spans: the whole text's tokens [start, stop) that each window has, special ones aside. source: the window that each
    token is taken from. Vectors of the whole text are put together from each token's own window; attention has no map
    of the whole text, since none exists: `place` and `locate` lead to the window that has it.
    """

    windowed: ClassVar[bool] = True
    text: str
    tokens: tuple[Token, ...]
    windows: tuple[Trace, ...] = field(repr=False)
    spans: tuple[tuple[int, int], ...]
    source: tuple[int, ...] = field(repr=False)
    status: Status = field(repr=False)
    plan: Plan = field(repr=False)
    causal: bool = False

    def __repr__(self) -> str:
        return f"WindowedTrace({len(self.tokens)} tokens in {len(self.windows)} windows, {self.status.model})"

    @property
    def sides(self) -> "tuple[WindowedTrace, ...]":
        """The windowed trace itself, alone: what `PairTrace.sides` is of a pair."""
        return (self,)

    def place(self, token: int) -> tuple[Trace, int]:
        """The window that a token is taken from, and the token's number there."""
        number = self.source[token]
        return self.windows[number], range(len(self.tokens))[token] - self.plan.shift(number)

    def word(self, word: str) -> list[Word]:
        """Every occurrence of a word in the whole text, its tokens and characters counted there."""
        return find_word(self.text, self.tokens, word)

    def locate(self, word: Word) -> tuple[Trace, Word]:
        """The window in which an occurrence stands furthest from an edge, and the occurrence as that window has it."""
        number = self.window_of(word)
        trace, shift = self.windows[number], self.plan.shift(number)
        numbers = tuple(token - shift for token in word.tokens)
        moved = self.tokens[word.tokens[0]].start - trace.tokens[numbers[0]].start
        return trace, replace(word, start=word.start - moved, end=word.end - moved, tokens=numbers)

    def window_of(self, word: Word) -> int:
        """The number of that window."""
        first, last = min(word.tokens), max(word.tokens)
        best, margin = None, -1
        for number, (start, stop) in enumerate(self.spans):
            if start <= first and last < stop:
                edges = self.plan.margins(number, self.causal)
                nearest = int(edges[first - start : last - start + 1].min())
                best, margin = (number, nearest) if nearest > margin else (best, margin)
        if best is None:
            raise RegardError(
                f"word {word.text[:40]!r} of {len(word.tokens)} tokens fits into no window: use larger windows or "
                "a smaller stride"
            )
        return best

    @cached_property
    def last_hidden_state(self) -> Float[Tensor, "L M"]:
        """The model's last hidden state."""
        joined = self._joined(lambda trace: trace.last_hidden_state)
        assert joined is not None
        return joined

    @cached_property
    def token_embeddings(self) -> Float[Tensor, "L W"] | None:
        """The token embeddings, as a trace has them."""
        return self._joined(lambda trace: trace.token_embeddings)

    @cached_property
    def logits(self) -> Float[Tensor, "L V"] | None:
        """The logits of every token, where they were kept. A classifier of whole texts has them by window alone."""
        return self._joined(lambda trace: None if trace.logits is None or trace.logits.ndim == 1 else trace.logits)

    @cached_property
    def hidden_states(self) -> tuple[Float[Tensor, "L M"], ...] | LayerSubset:
        """states[n] enters layer n, hidden_states[n + 1] leaves it."""
        first = self.windows[0].hidden_states
        numbers = first.kept if isinstance(first, LayerSubset) else range(len(first))
        items: dict[int, Any] = {n: self._joined(lambda trace, n=n: trace.hidden_states[n]) for n in numbers}  # type: ignore[misc]
        subset = isinstance(first, LayerSubset)
        return LayerSubset("hidden_states", len(first), items) if subset else tuple(items.values())

    def _joined(self, part: Callable[[Trace], Tensor | None]) -> Tensor | None:
        """Rows of every token's own window."""
        rows: Tensor | None = None
        source = torch.tensor(self.source)
        for number, trace in enumerate(self.windows):
            values = part(trace)
            if values is None:
                return None
            if rows is None:
                rows = values.new_empty(len(self.tokens), values.shape[-1])
            places = (source == number).nonzero()[:, 0].to(values.device)
            rows[places] = values[places - self.plan.shift(number)]
        return rows


def joined(plan: Plan, windows: Sequence[Trace]) -> WindowedTrace:
    """The whole text's trace from its windows'."""
    causal = is_causal(windows[0])
    whole, status = plan.encoded, merge_statuses_of_windows(plan, [trace.status for trace in windows])
    return WindowedTrace(
        whole.text, whole.tokens, tuple(windows), plan.spans, plan.sources(causal), status, plan, causal
    )


def merge_statuses_of_windows(plan: Plan, statuses: Sequence[Status]) -> Status:
    """The whole text's status from its windows'."""
    notes = dict.fromkeys(note for status in statuses for note in status.notes)
    return replace(
        statuses[0],
        kernels=tuple(sorted({kernel for status in statuses for kernel in status.kernels})),
        difference=largest_status_difference([status.difference for status in statuses]),
        rows_compared=sum(status.rows_compared for status in statuses),
        embedding_difference=largest_status_difference([status.embedding_difference for status in statuses]),
        unknown=plan.encoded.unknown,
        dropped=plan.encoded.dropped,
        notes=(*notes, plan.note()),
        seconds=sum(status.seconds for status in statuses),
    )


def sides(trace: Trace | PairTrace | WindowedTrace) -> Sequence[Trace]:
    """The traces that a page shows of one: both sides of a pair, the windows of a long text."""
    return trace.windows if isinstance(trace, WindowedTrace) else trace.sides


def longest(trace: Trace | PairTrace | WindowedTrace) -> int:
    """The number of tokens in the longest side or window of a trace."""
    return max(len(side.tokens) for side in sides(trace))
