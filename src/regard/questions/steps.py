"""Show how a head computes a word's context vector: scores, weights, weighted values and their sum."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from regard.display.answer import IN_PYTHON, Read, TracesAnswer
from regard.display.panels import Cell, Column, Heat, Panel, Table, numbered
from regard.display.sentences import MAX_SENTENCES, Template, sentences
from regard.explain.weights.attended import check_head, check_layer
from regard.explain.weights.head_steps import HeadSteps, head_steps
from regard.explain.weights.sinks import Sink, sinks
from regard.explain.wording import count_of_tokens, fixed
from regard.shown import Row
from regard.text.quoting import display_text, quoted
from regard.text.tokens import Token
from regard.text.words import wordlike
from regard.trace.trace import Trace

if TYPE_CHECKING:
    from rich.console import RenderableType

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
EXP = "exp(score − max)"
KEYS = 14  # rows of the first table; all other keys share one row
DRAWN = 24  # rows of the heat map of vectors, for the largest weights


def _sentence_numbers(answer: "Steps", query: int, record: "HeadSteps") -> dict[str, Any]:
    """Return the numbers and names that fill the templates of a token's sentences."""
    tokens, sinks = answer.tokens, [sink.token for sink in answer.sinks]
    texts = [token.text for token in tokens]

    def name(n: int) -> str:
        suffix = f" ({n})" if texts.count(texts[n]) > 1 else ""
        text = texts[n] if tokens[n].special else quoted(texts[n])
        return f"{'the attention sink ' * (n in sinks)}{text}{suffix}{' itself' * (n == query)}"

    allowed = [n for n, score in enumerate(record.scores.tolist()) if score > float("-inf")]
    others = [n for n in allowed if n not in (query, *sinks) and not tokens[n].special and wordlike(texts[n])]
    parts, weights = record.contributions, record.weights
    top, source = int(weights.argmax()), int(parts.argmax())
    shown = max(others or [top], key=lambda n: float(weights[n]))
    several = f" (token {query})" if len(answer.found) > 1 else ""
    return {
        "layer": answer.layer, "head": answer.head, "query": quoted(texts[query]) + several, "allowed": len(allowed),
        "top": "itself" if top == query else name(top), "weight": float(weights[top]), "shown": name(shown),
        "shown_weight": float(weights[shown]), "other": name(shown) if others else None, "source": name(source),
        "part": float(parts[source]),
        "scaled": f"divided by {usual_scale(record)[2:]}" if usual_scale(record) else f"times {record.scale:.4g}",
        "product": float(record.products[shown]), "score": float(record.scores[shown]),
        "plain": float(record.scores[shown]) == float(record.scaled[shown]),
    }  # fmt: skip


def usual_scale(steps: "HeadSteps") -> str:
    """Return the name of the scale, 1/√width, or an empty string for another scale."""
    width = len(steps.query)
    return f"1/√{width}" if abs(steps.scale - width**-0.5) < 1e-9 else ""


def steps_panels(answer: "Steps") -> list[Panel]:
    """Return panels with every number and vector of each token of the word. The last token's weights come first.

    In a causal model, the last token attends to the most tokens.
    """
    panels: list[Panel] = []
    for n, (query, record) in enumerate(answer.found):
        last = n == len(answer.found) - 1
        where = f"{quoted(display_text(answer.tokens[query].text))} (token {query}) in layer {answer.layer}, "
        where += f"head {answer.head}"
        tab = f", token {query}" if len(answer.found) > 1 else ""
        panels += [_weights_table(answer, record, where)] if last else []
        panels += [
            _numbers_table(answer, record, where, tab),
            Heat(
                name=f"Query{tab}", title=f"{where}: the query", rows=["query"], columns=numbered(len(record.query)),
                values=[record.query.tolist()], axes=("vector", "component"), unit="component", signed=True,
                picture=last,
            ),
            _weighted_values(answer, record, where, tab, last),
        ]  # fmt: skip
    return panels


def _weights_table(answer: "Steps", record: "HeadSteps", where: str) -> Table:
    """Return a table of the largest weights, in text order, with one row for all other keys and one for the sum."""
    order = record.weights.sort(descending=True, stable=True).indices.tolist()
    keys = [n for n in order if not record.scores[n].isinf()]
    fractions, rest = record.contributions, keys[KEYS:]
    columns = record.products, record.scores, record.exponentials, record.weights, fractions
    rows: list[list[Cell]] = [[_key_name(answer, n), *(float(c[n]) for c in columns)] for n in sorted(keys[:KEYS])]
    if rest:
        sums = (float(values[rest].sum()) for values in (record.exponentials, record.weights, fractions))
        rows.append([f"{len(rest)} more token{'s' * (len(rest) > 1)}", None, None, *sums])
    if record.sink is not None:
        weight = 1 - float(record.weights.sum())
        rows.append(["learned sink", None, record.sink, weight * record.total, weight, 0.0])
    hidden = len(order) - len(keys)
    out = f"; {count_of_tokens(hidden)} masked" if hidden else ""
    return Table(
        name="Weights", title=f"Attention from {where}: from scores to weights", rows=rows, screen=True, brief=True,
        picture=True, total=["sum", None, None, record.total, 1.0, float(fractions.sum())],
        columns=[Column("key"), *(Column(name, 2, unbounded=True) for name in ("q · k", "score")), Column(EXP, 2),
                 Column("weight", 2, bar=True), Column("contribution", 2, unbounded=True)],
        note=f"Weight is {EXP} / {fixed(record.total, 2, unbounded=True)}; contribution is the fraction of "
        f"the context vector from this token{out}.",
    )  # fmt: skip


def _numbers_table(answer: "Steps", record: "HeadSteps", where: str, tab: str) -> Table:
    """Return a table of all keys in text order, with every number from q · k to the weight and contribution."""
    steps = [("q · k", record.products), ("× scale", record.scaled)]
    steps += [] if record.softcap is None else [(f"capped at {record.softcap:g}", record.capped)]
    steps += [("+ bias", record.capped + record.bias)] if bool((record.bias != 0).any()) else []
    ends = [(EXP, record.exponentials), ("weight", record.weights), ("contribution", record.contributions)]
    hidden = record.scores.isinf().tolist()
    rows: list[list[Cell]] = [
        [_key_name(answer, n) + " (masked)" * hidden[n], *(float(values[n]) for _, values in steps),
         *(None if hidden[n] else float(values[n]) for _, values in ends)]
        for n in range(len(hidden))
    ]  # fmt: skip
    root = f" = {usual_scale(record)}" if usual_scale(record) else ""
    total = f"{fixed(record.total, 2, unbounded=True)}{', with a learned sink' if record.sink is not None else ''}"
    note = f"Scale is {record.scale:.4g}{root}; weight is {EXP} / {total}"
    return Table(
        name=f"Every number{tab}", title=f"{where}, step by step", rows=rows, note=f"{note}.",
        columns=[Column("key"), *(Column(name, 2, unbounded=True) for name, _ in steps),
                 *(Column(name, 2, bar=name == "weight", unbounded=name == "contribution") for name, _ in ends)],
    )  # fmt: skip


def _weighted_values(answer: "Steps", record: "HeadSteps", where: str, tab: str, picture: bool) -> Heat:
    """Return a heat map of weighted values, those with the largest weights, and of their sum, the context vector."""
    keys = sorted(record.weights.argsort(descending=True, stable=True)[:DRAWN].tolist())
    limit = f"; the {DRAWN} with the largest weights are shown" if len(keys) < len(record.weights) else ""
    return Heat(
        name=f"Weighted values{tab}", title=f"{where}: weight × value, and their sum", signed=True,
        rows=[*(_key_name(answer, n) for n in keys), "context"], columns=numbered(len(record.context)),
        values=[*record.weighted[keys].tolist(), record.context.tolist()], axes=("key", "component"), unit="component",
        picture=picture,
        note=f"The last row, the context vector, is the sum of all {len(record.weights)} keys' rows{limit}.",
    )  # fmt: skip


def _key_name(answer: "Steps", n: int) -> str:
    """Name a key by its token number and text, and mark it if it is an attention sink."""
    sink = " (sink)" if any(sink.token == n for sink in answer.sinks) else ""
    return f"{n} {display_text(answer.tokens[n].text)}{sink}"


@dataclass(frozen=True, eq=False, repr=False)
class Steps(TracesAnswer):
    """The steps of each token of a word. found: (token number, steps in the head). tokens, sinks: of the text."""

    format = "regard steps"
    panels = steps_panels

    word: str
    layer: int
    head: int
    tokens: Sequence[Token]
    sinks: Sequence[Sink]
    found: Sequence[tuple[int, HeadSteps]]

    def findings(self) -> list[str]:
        """Return a sentence on each word token's most attended token. For a single token, explain the weight."""
        if len(self.found) > 1:
            return [sentences(TABLE[:1], _sentence_numbers(self, *row))[0] for row in self.found[:MAX_SENTENCES]]
        return sentences(TABLE, _sentence_numbers(self, *self.found[0]))

    def title(self) -> str:
        """Return the title, which names the word, layer and head."""
        return f"{quoted(self.word)} in layer {self.layer}, head {self.head}, step by step"

    def exactness(self) -> list[str]:
        """Return a note on the largest difference between these weights and the model's."""
        error = max(record.error for _, record in self.found)
        return [f"These weights differ from the model's by at most {error:.1e}."]

    def rows(self) -> list[Row]:
        """List one row per key and token of the word: the key's numbers, and its fraction of the context vector."""
        sink_tokens = {sink.token for sink in self.sinks}
        return [
            {
                "token": query, "key": n, "text": key.text, "special": key.special, "sink": n in sink_tokens,
                "product": float(record.products[n]), "scaled": float(record.scaled[n]),
                "capped": float(record.capped[n]), "bias": float(record.bias[n]),
                "score": None if record.scores[n].isinf() else float(record.scores[n]),
                "exponential": float(record.exponentials[n]), "weight": float(record.weights[n]),
                "of_context": float(fractions[n]),
            }
            for query, record, fractions in ((n, record, record.contributions) for n, record in self.found)
            for n, key in enumerate(self.tokens)
        ]  # fmt: skip

    def data(self) -> dict[str, object]:
        """Return every number and vector of all steps. A masked score is null."""
        queries = [{"token": n, **{item.name: getattr(record, item.name) for item in fields(record)}}
                   for n, record in self.found]  # fmt: skip
        tokens, sinks = [asdict(token) for token in self.tokens], [asdict(sink) for sink in self.sinks]
        content = {"text": self.about.texts[0][0], "tokens": tokens, "sinks": sinks}
        return {**content, "layer": self.layer, "head": self.head, "queries": queries}

    def shown(
        self, width: int, top: int = 0, more: str = IN_PYTHON, *, everything: bool = False
    ) -> "list[RenderableType]":
        """Show all rows of the tables. They are in text order, so the largest weight can be in any row."""
        return super().shown(width, len(self.tokens) + 2, more, everything=everything)

    def opening(self) -> dict[str, str | int | None]:
        """Return the page's first view: the steps of this word and head."""
        return {"view": "steps", "layer": self.layer, "head": self.head, "word": self.word}

    def tabs(self) -> list[Panel]:
        """Return no tabs, because the page's Steps view has these numbers for any token and head."""
        return []

    def steps_of(self) -> list[int]:
        """Return the layer that the page needs for its Steps view."""
        return [self.layer]


def steps(trace: Trace, word: str, layer: int = 0, head: int = 0) -> Steps:
    """Compute every step of each token of a word in one head. Layers and heads count from 0 (-1 is the last)."""
    layer, head = check_layer(trace, layer), check_head(trace, head)
    records = [(n, head_steps(trace, n, layer, head)) for occurrence in trace.word(word) for n in occurrence.tokens]
    return Steps(word, layer, head, trace.tokens, sinks(trace), records, about=Read.of(trace), traces=[trace])
