"""Say in at most three sentences what a word attends to in a head, and how the weight and the output come about."""

from typing import TYPE_CHECKING, Any

from jaxtyping import Float
from torch import Tensor

from regard.display.sentences import MAX_SENTENCES, Template, sentences
from regard.explain.wording import quoted
from regard.text.word_pieces import wordlike

if TYPE_CHECKING:
    from regard.explain.weights.head_steps import HeadSteps
    from regard.questions.steps.answer import Steps

TABLE: list[list[Template]] = [
    [
        ("In layer {layer}, head {head}, {query} can attend only to {top}.", lambda n: n["allowed"] == 1),
        ("In layer {layer}, head {head}, {query} attends most to {top} (weight {weight}).",
         lambda n: n["top"] == n["other"]),
        ("In layer {layer}, head {head}, {query} attends most to {top} (weight {weight}), and among other words to "
         "{other} ({shown_weight}).", None),
        ("In layer {layer}, head {head}, {query} attends most to {top} (weight {weight}).", None),
    ],
    [
        ("For {shown}, q · k is {product:n}, which is {scaled} to give the score {score:n}. Softmax turns that into "
         "the weight {shown_weight}.", lambda n: n["plain"]),
        ("For {shown}, q · k is {product:n} and the final score {score:n}. Softmax turns that into the weight "
         "{shown_weight}.", None),
    ],
    [("The largest contribution to the context vector (the sum of weighted values) is from {source} ({part:%}).",
      lambda n: n["part"] > 0)],
]  # fmt: skip


def of_steps(answer: "Steps") -> list[str]:
    """Name the most attended token of each of the word's tokens, and for a single token how the weight comes about."""
    if len(answer.found) > 1:
        return [sentences(TABLE[:1], _numbers(answer, *found))[0] for found in answer.found[:MAX_SENTENCES]]
    return sentences(TABLE, _numbers(answer, *answer.found[0]))


def _numbers(answer: "Steps", query: int, record: "HeadSteps") -> dict[str, Any]:
    """Collect the numbers of a token's sentences."""
    tokens, sinks = answer.tokens, [sink.token for sink in answer.sinks]
    texts = [token.text for token in tokens]

    def name(n: int) -> str:
        place = f" ({n})" if texts.count(texts[n]) > 1 else ""
        called = texts[n] if tokens[n].special else quoted(texts[n])
        return f"{'the attention sink ' * (n in sinks)}{called}{place}{' itself' * (n == query)}"

    allowed = [n for n, score in enumerate(record.scores.tolist()) if score > float("-inf")]
    others = [n for n in allowed if n not in (query, *sinks) and not tokens[n].special and wordlike(texts[n])]
    parts, weights = shares(record), record.weights
    top, source = int(weights.argmax()), int(parts.argmax())
    shown = max(others or [top], key=lambda n: float(weights[n]))
    several = f" (token {query})" if len(answer.found) > 1 else ""
    return {
        "layer": answer.layer, "head": answer.head, "query": quoted(texts[query]) + several, "allowed": len(allowed),
        "top": "itself" if top == query else name(top), "weight": float(weights[top]), "shown": name(shown),
        "shown_weight": float(weights[shown]), "other": name(shown) if others else None, "source": name(source),
        "part": float(parts[source]),
        "scaled": f"divided by {root_of(record)[2:]}" if root_of(record) else f"times {record.scale:.4g}",
        "product": float(record.products[shown]), "score": float(record.scores[shown]),
        "plain": float(record.scores[shown]) == float(record.scaled[shown]),
    }  # fmt: skip


def shares(steps: "HeadSteps") -> Float[Tensor, " S"]:
    """Return each key's contribution to the context vector: the projection of its weighted value; the sum is 1."""
    length = float(steps.context @ steps.context)
    return (steps.weighted @ steps.context) / length if length > 0 else steps.weights * 0.0


def root_of(steps: "HeadSteps") -> str:
    """Name the usual scale, 1/√width; nothing for another scale."""
    width = len(steps.query)
    return f"1/√{width}" if abs(steps.scale - width**-0.5) < 1e-9 else ""
