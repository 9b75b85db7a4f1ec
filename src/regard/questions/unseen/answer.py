"""Find the tokens that nobody looks at, and tell it.

With w the weights (L, L) of a head, q and k tokens of the text, and means over all heads of all layers in a trace:

    given[q, k] = mean over heads of w[q, k],  q other than k
    most[k]     = max over q of given[q, k]
    mean[k]     = mean of given[q, k] over the q that may look at k

A token is unseen where most[k] is below a least weight. The mean over heads is what tells: nearly every model has a
head that looks at the token before, whatever it is, so that in some one head every token is looked at. How much that
is, at most, stands beside it (`head`). What a token gives itself is left out. Where no other token may look (the last
one of a causal text) a token is told apart, not called unseen. Attention is that of the text to itself: of a side of
an encoder-decoder, what the other side looks at is not counted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard.display.answer import Answer, Read
from regard.display.asked import Progress
from regard.display.panels import Column, Heat, Panel, Strip, Table
from regard.errors import RegardError
from regard.explain.frames import Row
from regard.explain.weights.attended import held_attention_calls, maps_between_tokens
from regard.explain.weights.sinks import equal_shares
from regard.explain.wording import count_of_tokens, listed, number, short_head
from regard.text.quoting import quoted
from regard.text.tokens import Token, shortened
from regard.trace.layer_subset import CallNumber
from regard.trace.trace import Trace

BLOCK = 1 << 22  # weights of all heads of a layer that are read at once
DARKEST = 4  # times the least weight: what is looked at most would leave all others pale
NAMED = 5  # unseen tokens that a sentence names
LONG = 60  # characters of a text in a title


class Look(NamedTuple):
    """The largest weight that a token gets from another one: in one head, or (head None) the mean of all."""

    weight: float
    query: int
    layer: int | None = None
    head: int | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Unseen(Answer):
    """What every token gets from the others. may: how many others may look at it, in the layer where most may.

    most, mean: by the definition above, None of a token that no other may look at. head: the largest in one head.
    calls: (layer, which of its attention calls) of the rows of layers, where layers[n][k] is the largest mean over that
    call's heads that another token gives k.
    """

    format: ClassVar[str] = "regard unseen"

    tokens: Sequence[Token]
    least: float
    heads: int
    may: Sequence[int]
    most: Sequence[Look | None]
    mean: Sequence[float | None]
    head: Sequence[Look | None]
    calls: Sequence[CallNumber]
    layers: Sequence[Sequence[float | None]]

    @property
    def order(self) -> list[int]:
        """The tokens that others may look at, the least seen first."""
        known = [(look.weight, k) for k, look in enumerate(self.most) if look is not None]
        return [k for _, k in sorted(known)]

    @property
    def unseen(self) -> list[int]:
        """The numbers of the unseen tokens, the least seen first."""
        return [k for k in self.order if not self._most(k).weight >= self.least]

    def title(self) -> str:
        """Say of which text."""
        text = self.about.texts[0][0] if self.about.texts else " ".join(token.text for token in self.tokens)
        return f"Tokens that nobody looks at, of {shortened(text, LONG)}"

    def findings(self) -> list[str]:
        """Say which are unseen, or that none is; how much a single head looks at them; what is looked at most."""
        order, unseen = self.order, self.unseen
        told = [self._unseen(unseen) if unseen else self._none()] if order else []
        if unseen:
            told.append(self._one_head(unseen))
        if len(order) > 1:
            told.append(f"Other tokens look most at {self._called(order[-1])}: {self._gets(self._most(order[-1]))}.")
        alone = [self._called(k) for k, look in enumerate(self.most) if look is None]
        apart = "it is not counted" if len(alone) == 1 else "they are not counted"
        return [*told, *([f"No other token may look at {listed(alone)}: {apart}."] if alone else [])]

    def exactness(self) -> list[str]:
        """Say what counts as a look, and what that does not say."""
        return [
            f"What a token gets is the mean weight of all {self.heads} heads; what it gives itself is left out.",
            "Attention says where a token looks, not what it makes of that.",
        ]

    def rows(self) -> list[Row]:
        """List one row a token, in the text's order: what it gets, from which token, and in which head most."""
        unseen, looks = set(self.unseen), zip(self.tokens, self.most, self.head, strict=True)
        return [
            {
                "token": k, "text": token.text, "special": token.special, "unseen": k in unseen,
                "may_look": self.may[k], "most": most and most.weight, "from": most and most.query,
                "mean": self.mean[k], "head_most": head and head.weight, "head_from": head and head.query,
                "layer": head and head.layer, "head": head and head.head,
            }
            for k, (token, most, head) in enumerate(looks)
        ]  # fmt: skip

    def data(self) -> dict[str, object]:
        """Give the rows, what counts as a look, and what every token gets in each layer."""
        calls = [{"layer": layer, "call": call} for layer, call in self.calls]
        by_layer = [{**call, "most": row} for call, row in zip(calls, self.layers, strict=True)]
        return {"least": self.least, "heads": self.heads, "rows": self.rows(), "layers": by_layer}

    def panels(self) -> list[Panel]:
        """Show the tokens as the text has them, each layer's, and a table with the least seen first."""
        names = [f"{token.text.strip()} {k}" for k, token in enumerate(self.tokens)]
        short = [None if look is None else max(0.0, self.least - look.weight) for look in self.most]
        strip = Strip(
            name="Unseen", title=f"Nobody looks at these: how far below {self.least:g} they stay", picture=True,
            tokens=[token.text for token in self.tokens], values=short, digits=4, unit=f"weight below {self.least:g}",
            note=f"A token to which some other one gives {self.least:g} or more has none.",
        )  # fmt: skip
        twice = {layer for layer, call in self.calls if call}
        heat = Heat(
            name="Layer by layer", title="What each token gets at most from another one", columns=names, picture=True,
            values=self.layers, largest=min(1.0, DARKEST * self.least),
            rows=[f"layer {layer}" + f", call {call}" * (layer in twice) for layer, call in self.calls],
            axes=("layer", "token"), unit="mean weight of the layer's heads",
            note=f"Darkest are {min(1.0, DARKEST * self.least):g} and more. Unseen is told by the mean of all layers.",
        )  # fmt: skip
        columns = [
            Column("token"), Column("gets", 3, bar=True), Column("from"), Column("mean", 3), Column("one head", 2),
            Column("head"), Column("from"),
        ]  # fmt: skip
        alone = [k for k, look in enumerate(self.most) if look is None]
        rows = [
            [self._called(k), self._most(k).weight, self._called(self._most(k).query), self.mean[k], *self._of_head(k)]
            for k in self.order
        ] + [[self._called(k), None, "nobody may look", None, None, "", ""] for k in alone]
        table = Table(
            name="Least seen first", title="Least seen first", columns=columns, rows=rows, screen=True,
            note="What a token gets at most, and from which, is the mean of all heads. Mean: from all that may look at "
            "it. One head: the largest weight of any head, with its layer and head.",
        )  # fmt: skip
        return [strip, heat, table]

    def _unseen(self, unseen: Sequence[int]) -> str:
        named = [self._called(k) for k in unseen[:NAMED]]
        more = len(unseen) - NAMED
        names = listed(named) if more <= 0 else f"{', '.join(named)} and {more:,} more"
        all_of_them, them = count_of_tokens(len(self.order)), "it" if len(unseen) == 1 else "any of them"
        return (
            f"Nobody looks at {len(unseen):,} of {all_of_them}, {names}: no other token gives {them} "
            f"{self.least:g} or more of its attention ({self._over()})."
        )

    def _none(self) -> str:
        least, count = self.order[0], len(self.order)
        gets = f"{self._gets(self._most(least))} ({self._over()})"
        if count == 1:
            return f"The token {self._called(least)} is looked at: it gets {gets}."
        return f"All {count_of_tokens(count)} are looked at: even {self._called(least)}, the least seen, gets {gets}."

    def _one_head(self, unseen: Sequence[int]) -> str:
        looks = {k: look for k in unseen if (look := self.head[k]) is not None}
        least = min(looks, key=lambda k: looks[k].weight)
        of = "" if len(unseen) == 1 else ", the least of them,"
        where = f"in head {short_head(looks[least].layer, looks[least].head)}"
        return f"In a single head {self._called(least)}{of} gets up to {self._gets(looks[least])}, {where}."

    def _over(self) -> str:
        return "in the only head" if self.heads == 1 else f"mean of all {self.heads:,} heads"

    def _gets(self, look: Look) -> str:
        return f"{number(look.weight)} from {self._called(look.query)}"

    def _most(self, k: int) -> Look:
        look = self.most[k]
        assert look is not None
        return look

    def _of_head(self, k: int) -> list[str | float]:
        look = self.head[k]
        assert look is not None
        return [look.weight, short_head(look.layer, look.head), self._called(look.query)]

    def _called(self, k: int) -> str:
        return f"{quoted(self.tokens[k].text)} ({k}{', special' if self.tokens[k].special else ''})"


def unseen(trace: Trace, least: float = 0.05, *, progress: Progress | None = None) -> Unseen:
    """Find the tokens that get less than `least` from every other one, by the definition above, in all that it holds.

    Every weight is read once, some rows at a time: no tensor of all heads' L × L exists. progress: told how many of the
    queries are done.

    Raises:
        RegardError: the whole trace of an encoder-decoder, a trace without attention, keys that are no tokens of the
            text, or weights that are no numbers.
    """
    calls, maps = held_attention_calls(trace), maps_between_tokens(trace, "who is looked at is not known")
    length = len(trace.tokens)
    heads = sum(weights.shape[0] for weights in maps)
    may = torch.stack([equal_shares(weights, itself=True)[0].amax(0) for weights in maps]).amax(0)
    total, layers = torch.zeros(length, dtype=torch.float64), torch.zeros(len(maps), length, dtype=torch.float64)
    most = _Largest(length)
    single = _Largest(length)
    for rows in torch.arange(length).split(max(1, BLOCK // (max(each.shape[0] for each in maps) * length))):
        given = torch.zeros(len(rows), length, dtype=torch.float64)
        for n, weights in enumerate(maps):
            part = weights[:, int(rows[0]) : int(rows[-1]) + 1].cpu().double()  # (H, r, L)
            part[:, torch.arange(len(rows)), rows] = 0.0  # what a token gives itself
            given += part.sum(0)
            layers[n] = torch.maximum(layers[n], part.mean(0).amax(0))
            single.add(part.flatten(0, 1), int(rows[0]), len(rows), n)
        given /= heads
        total += given.sum(0)
        most.add(given, int(rows[0]), len(rows), 0)
        if progress is not None:
            progress(int(rows[-1]) + 1, length)
    if bool(total.isnan().any()):
        raise RegardError(f"the attention of {trace.status.model} has weights that are no numbers (NaN)")
    seen = [int(each) for each in may]
    return Unseen(
        trace.tokens, least, heads, seen,
        most=[Look(*most.at(k)[:2]) if seen[k] else None for k in range(length)],
        mean=[float(total[k]) / seen[k] if seen[k] else None for k in range(length)],
        head=[_unseen_look_in_head(single.at(k), calls) if seen[k] else None for k in range(length)],
        calls=calls,
        layers=[[float(each) if seen[k] else None for k, each in enumerate(row)] for row in layers],
        about=Read.of(trace),
    )  # fmt: skip


def _unseen_look_in_head(found: tuple[float, int, int, int], calls: Sequence[CallNumber]) -> Look:
    weight, query, call, head = found
    return Look(weight, query, calls[call][0], head)


class _Largest:
    """The largest weight that each key got so far, with its query, call and head."""

    def __init__(self, length: int) -> None:
        self.weight = torch.full((length,), -1.0, dtype=torch.float64)
        self.where = torch.zeros(3, length, dtype=torch.long)

    def add(self, part: Float[Tensor, "n L"], first: int, rows: int, call: int) -> None:
        """Look at the weights (heads · rows, L) of some queries, from the first on, of all heads of a call."""
        weight, at = part.max(0)
        larger = weight > self.weight
        self.weight = torch.where(larger, weight, self.weight)
        found = torch.stack([first + at % rows, torch.full_like(at, call), at // rows])
        self.where = torch.where(larger, found, self.where)

    def at(self, key: int) -> tuple[float, int, int, int]:
        """(weight, query, call, head) of a key."""
        query, call, head = self.where[:, key].tolist()
        return float(self.weight[key]), query, call, head
