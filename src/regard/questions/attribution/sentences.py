"""Say in sentences what made an outcome: of what was written directly, of tokens and of heads by gradients.

Each sentence names what is the most of one whole list, and says which list that is.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from regard.capture.interventions.call_ids import CallId
from regard.explain.causes.score_writers import writers_by_group
from regard.explain.wording import capital, exactly_split, listed, signed
from regard.text.quoting import quoted

if TYPE_CHECKING:
    from regard.questions.attribution.direct import Attribution
    from regard.questions.attribution.heads import HeadAttribution
    from regard.questions.attribution.tokens import TokenAttribution

NAMED = 3  # parts that a sentence names at most
LEAST = 0.05  # of the largest: parts below it are not worth a name
APART = 0.05  # of what is to be explained: a gap above it is too much
KINDS = {  # of parts, as a sentence counts them
    "token": "embeddings", "position": "embeddings", "segment": "embeddings", "attention": "heads",
    "feed-forward": "feed-forward layers", "bias": "biases", "final bias": "biases",
}  # fmt: skip

Parts = Sequence[tuple[str, float]]


def exactness_of_parts(found: "Attribution") -> str:
    """Say how exact a direct split is, what is held fixed in it, and what a part does not say."""
    return f"{exactly_split('parts', 'outcome', found.error)}: without it other parts would change, ablate it to see"


def exactness_of_tokens(found: "TokenAttribution") -> list[str]:
    """Say where one gradient at the embeddings is exact; how far integrated ones are from their sum is a finding."""
    if found.baseline is not None:
        return []
    return ["Gradient x input is exact where the outcome is linear in the learned embeddings, and only there."]


def named_head(call: CallId, head: int) -> str:
    """Name a head: "layer 23, head 4", of an encoder-decoder with its part."""
    part = {None: "", "encoder": "encoder ", "decoder": "decoder ", "cross": "cross-attention "}[call.part]
    again = f", call {call.nth}" if call.nth else ""
    return f"{part}layer {call.layer}{again}, head {head}"


def of_parts(found: "Attribution") -> list[str]:
    """Say what the outcome is, and what wrote it."""
    words = found.unit == "word"
    said = [f"The {found.outcome} is {signed(found.value)}: the sum of what was written there directly."]
    parts = found.by()
    kinds = dict.fromkeys(KINDS[writer.kind] for writer in writers_by_group(found.parts, "writer")[0])
    said += _most_of_attribution_parts(f"Of all {len(parts)} parts ({listed(list(kinds))}),", parts)
    heads = [part for part in parts if "head " in part[0]]
    only_heads = not parts or all(
        part in heads for part in _attribution_parts_named(parts)
    )  # so that this was said of heads already
    if len(heads) > 1 and not only_heads:
        said += _most_of_attribution_parts(f"Of the {len(heads)} heads,", heads)
    carried = [
        (_attribution_source_token(name), added)
        for name, added in found.by("source", words=words)
        if "attention from " in name
    ]
    unit = "word" if words else "token"
    sources = f"the one source {unit}" if len(carried) == 1 else f"all {len(carried)} source {unit}s"
    said += _most_of_attribution_parts(f"Of {sources}, by attention over all heads and layers,", carried, against=NAMED)
    by_kind = [f"{name} {signed(added)}" for name, added in found.by("kind")]
    loose = [float(n) for each, n in zip(found.parts.writers, found.parts.vectors[:, 0], strict=True)
             if each.kind == "bias" and each.layer is None]  # fmt: skip
    of_no_layer = f"; of the biases {signed(sum(loose))} is of no layer" if loose else ""
    return [*said, f"In all: {listed(by_kind)}{of_no_layer}."]


def _attribution_source_token(name: str) -> str:
    """The token of what attention carried over: of cross-attention it is one of the text that the encoder read."""
    if name.startswith("cross-attention from "):
        return name.removeprefix("cross-attention from ").removesuffix(" of the decoder") + " of the encoder"
    return name.removeprefix("attention from ")


def of_tokens(found: "TokenAttribution") -> list[str]:
    """Say what the outcome is, which tokens or words brought it, and how far their scores are from its sum."""
    by = found.unit
    method = found.method if found.baseline is None else f"{found.method}, {found.steps} steps"
    first = f"The {found.outcome_name} is {signed(found.outcome)}"
    if found.baseline is not None:
        first += f", and {signed(found.baseline)} where the baseline stands at every token"
    parts = found.by(by)
    said = [f"{first}.", *_most_of_attribution_parts(f"By {method}, of all {len(parts)} {by}s,", parts)]
    if found.gap is None or found.baseline is None:
        return [*said, "Gradient x input follows the slope at this text alone: the scores need not sum to the outcome."]
    due = found.outcome - found.baseline
    sums = f"The scores sum to {signed(float(found.scores.sum()))}, where {signed(due)} is to be explained"
    if too_far_apart(found):  # said before any number that it is about
        return [f"{sums}: with {found.steps} steps too far apart for single scores to be believed.", *said]
    return [*said, f"{sums}: a gap of {found.gap:.1e}."]


def too_far_apart(found: "TokenAttribution") -> bool:
    """Whether integrated gradients are too far from what they have to sum to for single scores to be believed."""
    return (
        found.gap is not None and found.baseline is not None and found.gap > APART * abs(found.outcome - found.baseline)
    )


def of_heads(found: "HeadAttribution") -> list[str]:
    """Say what the outcome is, and which heads brought it."""
    heads = found.by()
    said = [f"The {found.outcome_name} is {signed(found.outcome)}."]
    said += _most_of_attribution_parts(
        f"Of all {len(heads)} heads, each beside an ablated one, to the first order,", heads
    )
    if heads and heads[0][1] != 0:
        call, head, score = found.best(1)[0]
        n = found.calls.index(call)
        own = found.sources[n][head]
        most = int((own if score >= 0 else -own).argmax())
        text = found.tokens[n][most].text.strip()
        name = capital(named_head(call, head))
        took = f"most of its {signed(score)} from {quoted(text)} ({most}): {signed(float(own[most]))}"
        said.append(f"{name}, the furthest from zero, took {took}.")
    return [*said, "One gradient estimates all of these; ablating a head measures what it does."]


def _most_of_attribution_parts(start: str, parts: Parts, against: int = 1) -> list[str]:
    """Say which parts brought most, and which took most away: so many of these."""
    if not parts or parts[0][1] == 0:
        return []
    named = _attribution_parts_named(parts, against)
    along = [f"{name} ({signed(added)})" for name, added in named if added > 0]
    away = [f"{name} ({signed(added)})" for name, added in named if added < 0]
    brought = f"{listed(along)} brought most" if along else "none brought anything"
    return [f"{start} {brought}" + (f"; {listed(away)} took most away." if away else ".")]


def _attribution_parts_named(parts: Parts, against: int = 1) -> Parts:
    """The parts that a sentence names: the most that was brought, and the most that was taken away.

    What brought most is named however small it is, others where they are no less than a part of the largest of all.
    parts: the largest absolute numbers first. against: how many that took away, beside those that brought.
    """
    least = LEAST * abs(parts[0][1])
    along = [each for each in parts if each[1] > 0][:NAMED]
    along = [each for n, each in enumerate(along) if n == 0 or each[1] >= least]
    away = [each for each in parts if -each[1] >= least and each[1] < 0][: against if along else NAMED]
    return [*along, *away]
