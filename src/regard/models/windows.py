"""Trace a text in overlapping windows, if requested, so that it can be longer than the model's limit.

To the model, a window is a separate text. Attention doesn't cross its edges, and its positions start from 0.
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
from regard.trace.layers import Layers
from regard.trace.status import Status, largest_status_difference
from regard.trace.trace import PairTrace, ShownTrace, Trace, is_causal

FAR = 1 << 40  # distance to an end of the window that isn't an edge, such as the beginning of the text


@dataclass(frozen=True)
class Plan:
    """The windows of a text. window: tokens per window, including special tokens. stride: tokens between two starts.

    spans: the tokens [start, stop) of the whole text in each window, without special tokens. before, after: how many
    special tokens each window begins and ends with.
    """

    encoded: Encoded
    window: int
    stride: int
    spans: tuple[tuple[int, int], ...]
    before: int
    after: int

    def window_texts(self) -> list[Encoded]:
        """Return each window as a separate text, with the special tokens that the tokenizer puts around a text."""
        return [self._window_text(start, stop) for start, stop in self.spans]

    def sources(self, causal: bool) -> tuple[int, ...]:
        """Return each token's window: the number of the first window in which the token is furthest from an edge.

        The beginning and end of the text aren't edges, nor is the right end of a window for a causal model.
        """
        best = torch.full((len(self.encoded.tokens),), -1)
        chosen = torch.zeros_like(best)
        for number, (start, stop) in enumerate(self.spans):
            margin = self.edge_distances(number, causal)
            better = margin > best[start:stop]
            best[start:stop][better] = margin[better]
            chosen[start:stop][better] = number
        chosen[self.spans[-1][1] :] = len(self.spans) - 1
        return tuple(chosen.tolist())

    def edge_distances(self, number: int, causal: bool) -> Tensor:
        """Return the distance of each token in a window from the nearest edge."""
        start, stop = self.spans[number]
        position = torch.arange(stop - start)
        left = position if number > 0 else torch.full_like(position, FAR)
        right = position.flip(0) if number < len(self.spans) - 1 and not causal else torch.full_like(position, FAR)
        return torch.minimum(left, right)

    def shift(self, number: int) -> int:
        """Return a token's number in the whole text minus its number in a window."""
        return self.spans[number][0] - self.before

    def note(self) -> str:
        """Return the sentence on windows for the status of a trace."""
        if len(self.spans) == 1:
            return f"Read in a single window, because the text has at most {self.window} tokens."
        cut = f"Read in {len(self.spans)} windows of {self.window} tokens, stride {self.stride}"
        return f"{cut}. Attention doesn't cross windows."

    def _window_text(self, start: int, stop: int) -> Encoded:
        encoded, end = self.encoded, len(self.encoded.tokens) - self.after
        run = [*range(self.before), *range(start, stop), *range(end, end + self.after)]
        inside = encoded.tokens[start:stop]
        first, last = min(token.start for token in inside), max(token.end for token in inside)
        text = encoded.text[first:last]

        def cut(token: Token) -> Token:
            begin, stop = (min(max(0, offset - first), last - first) for offset in (token.start, token.end))
            return replace(token, start=begin, end=stop, source=text)

        segments = None if encoded.segments is None else tuple(encoded.segments[n] for n in run)
        # The whole text's status reports unknown text once, so windows don't.
        return Encoded(text, tuple(cut(encoded.tokens[n]) for n in run), segments, (), (), encoded.notes, encoded.names)


def plan(encoded: Encoded, tokenizer: Any, window: int, stride: int | None, limit: int | None, name: str) -> Plan:
    """Divide a tokenized text into overlapping windows.

    The last window is moved back to the end of the text, so that all have the same length.
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
    """A long text, traced in overlapping windows.

    tokens: of the whole text. windows: the trace of each window, which numbers tokens and characters from 0. spans: the
    tokens [start, stop) of the whole text in each window, without special tokens. source: the number of each token's
    window. Each vector of the whole text comes from its token's window. Attention exists only within a window. `place`
    and `locate` return the window of a token or word.
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
        """The windowed trace itself as a tuple, like the two traces of `PairTrace.sides`."""
        return (self,)

    def place(self, token: int) -> tuple[Trace, int]:
        """Return the trace of a token's window, and the token's number there."""
        number = self.source[token]
        return self.windows[number], range(len(self.tokens))[token] - self.plan.shift(number)

    def word(self, word: str) -> list[Word]:
        """Find every occurrence of a word in the whole text, with its tokens and characters numbered there."""
        return find_word(self.text, self.tokens, word)

    def locate(self, word: Word) -> tuple[Trace, Word]:
        """Return the trace of the window in which a word is furthest from an edge, and the word as numbered there."""
        number = self.window_of(word)
        trace, shift = self.windows[number], self.plan.shift(number)
        numbers = tuple(token - shift for token in word.tokens)
        moved = self.tokens[word.tokens[0]].start - trace.tokens[numbers[0]].start
        return trace, replace(word, start=word.start - moved, end=word.end - moved, tokens=numbers)

    def window_of(self, word: Word) -> int:
        """Return the number of the window in which a word is furthest from an edge."""
        first, last = min(word.tokens), max(word.tokens)
        best, margin = None, -1
        for number, (start, stop) in enumerate(self.spans):
            if start <= first and last < stop:
                edges = self.plan.edge_distances(number, self.causal)
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
        """The last hidden state of each token."""
        joined = self._join_rows(lambda trace: trace.last_hidden_state)
        assert joined is not None
        return joined

    @cached_property
    def token_embeddings(self) -> Float[Tensor, "L W"] | None:
        """The token embeddings, or None if the windows' traces have none."""
        return self._join_rows(lambda trace: trace.token_embeddings)

    @cached_property
    def logits(self) -> Float[Tensor, "L V"] | None:
        """The logits of each token, if kept. A classifier of whole texts has logits only per window."""
        return self._join_rows(lambda trace: None if trace.logits is None or trace.logits.ndim == 1 else trace.logits)

    @cached_property
    def hidden_states(self) -> tuple[Float[Tensor, "L M"], ...] | Layers:
        """The states between layers: hidden_states[n] enters layer n, hidden_states[n + 1] leaves it."""
        first = self.windows[0].hidden_states
        numbers = first.kept if isinstance(first, Layers) else range(len(first))
        items: dict[int, Any] = {n: self._join_rows(lambda trace, n=n: trace.hidden_states[n]) for n in numbers}  # type: ignore[misc]
        return Layers("hidden_states", len(first), items) if isinstance(first, Layers) else tuple(items.values())

    def _join_rows(self, part: Callable[[Trace], Tensor | None]) -> Tensor | None:
        """Join rows of all windows into a tensor (L, …) of the whole text, or return None if windows lack them."""
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


def join_windows(plan: Plan, windows: Sequence[Trace]) -> WindowedTrace:
    """Build the trace of the whole text from the traces of its windows."""
    causal = is_causal(windows[0])
    encoded, status = plan.encoded, merge_statuses_of_windows(plan, [trace.status for trace in windows])
    return WindowedTrace(
        encoded.text, encoded.tokens, tuple(windows), plan.spans, plan.sources(causal), status, plan, causal
    )


def merge_statuses_of_windows(plan: Plan, statuses: Sequence[Status]) -> Status:
    """Merge the statuses of all windows into one of the whole text."""
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
    """Return the traces to show for a trace: both sides of a pair, or the windows of a long text."""
    return trace.windows if isinstance(trace, WindowedTrace) else trace.sides


def longest(trace: Trace | PairTrace | WindowedTrace) -> int:
    """Return the number of tokens in the longest side or window of a trace."""
    return max(len(side.tokens) for side in sides(trace))
