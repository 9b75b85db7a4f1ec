"""Say from which layer on a model's own token is the likeliest."""

from typing import TYPE_CHECKING

from regard.explain.logits.logit_lens import LogitLens
from regard.explain.texts.summary import Summary
from regard.explain.wording import numbered
from regard.text.quoting import quoted

if TYPE_CHECKING:
    from regard.questions.lens.answer import Lens


def of_lens(found: "Lens") -> list[str]:
    """A sentence a place."""
    return [_settled(each, found.summary, found.side) for each in found.summary.logit_lenses]


def _settled(lens: LogitLens, summary: Summary, side: str) -> str:
    lead, final = "After" if lens.after else "In the place of", lens.final
    at = numbered(summary.tokens[lens.text], lens.token)
    where = f" in {side} {summary.labels[lens.text]}" if len(summary.texts) > 1 else ""
    says = f"{lead} {at}{where} the model would say {quoted(final.text)} ({final.probability:.2f})"
    others = [n for n, layer in enumerate(lens.layers) if layer.rank > 1]
    if not others:
        return f"{says}, and so would every state."
    last = others[-1]
    before = f"of rank {lens.layers[last].rank:,} {'as it enters layer 0' if last == 0 else f'after layer {last - 1}'}"
    if last == len(lens.layers) - 1:
        return f"{says}, though it is {before}."
    return f"{says}: the likeliest from layer {last} on, and {before}."
