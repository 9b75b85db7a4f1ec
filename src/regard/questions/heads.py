"""Define the result of `regard heads`: scores of all heads on the texts and in each test."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from regard.display.answer import Answer, Read
from regard.display.panels import Cell, Column, Heat, Panel, Table
from regard.display.sentences import MAX_SENTENCES, Template, sentences
from regard.errors import RegardError
from regard.explain.weights.head_means import (
    ALIKE,
    MEANINGS,
    SHARE,
    HeadMeans,
    content_or_position,
    cross_head_scores,
    is_share,
    mean_scores,
    repeated_tokens,
)
from regard.explain.weights.head_scores import head_scores
from regard.explain.wording import capital, count_of_tokens, number, short_head
from regard.models.model import Model
from regard.shown import Row
from regard.trace.trace import PairTrace, Trace

MAX_NAMED_HEADS = 3  # heads named per score
MIN_SCORE = 0.005  # smaller scores are printed as 0.00, so no head is named for them
LOOKED = 0.1  # smallest attention to shuffled tokens of a head that is said to follow them
AGAINST = {"position": "content", "content": "position"}  # the score that each is compared with
WHERE = {  # the beginning of sentences about a table
    "encoder": "In the encoder, ", "decoder": "In the decoder, ", "cross-attention": "In cross-attention, ",
    "random tokens, repeated": "On repeated random tokens, ", "tokens exchanged": "After tokens are shuffled, ",
}  # fmt: skip
ASKED = {"random tokens, repeated": "induction"}  # the only score of a test that sentences report

HEAD, WEIGHT = "{where}layer {layer}, head {head} ", " (mean weight {value})."
NONE = "There are no tokens {mean_of}, so there is no {name} score."
ONE = {  # sentences on scores that aren't mean weights
    "position": HEAD + "attends to the same positions: similarity {value}, compared with {other} for the same tokens.",
    "content": HEAD + "follows the tokens: similarity {value}, compared with {other} for the same positions.",
    "entropy": HEAD + "spreads its attention most: its mean entropy is {value:n} nats.",
    "distance": HEAD + "attends furthest, {value:n} tokens away on average.",
}
SHARES: list[Template] = [
    ("{where}no head clearly follows {name} more than {rival}.", None),
    (HEAD + "attends almost only to {target}" + WEIGHT, lambda n: n["value"] >= 0.95),
    (HEAD + "attends mostly to {target}" + WEIGHT, lambda n: n["value"] >= 0.5),
    (HEAD + "attends to {target} more than any other head" + WEIGHT, lambda n: n["value"] >= LOOKED),
    ("{where}no head attends to {target} with more than {value} on average (layer {layer}, head {head}).", None),
    ("{where}no head attends to {target}.", None),
]


def heads_sentences(answer: "Heads") -> list[str]:
    """Return sentences on the highest scores of each table, each for a different head, and on each test's score."""
    result = []
    for table, means in answer.tables.items():
        best = {name: top_heads(means, name) for name in means.scores if is_share(name) and MEANINGS[name].looks_at}
        score_of_head: dict[str, str] = {}
        for name in sorted((name for name in best if best[name]), key=lambda name: -best[name][0][1]):
            score_of_head.setdefault(best[name][0][0], name)  # the head for special tokens is often also that for sinks
        names = [ASKED[table]] if ASKED.get(table) in means.scores else list(score_of_head.values())
        count = max(1, MAX_SENTENCES // len(answer.tables))
        result += [score_sentence(means, name, WHERE.get(table, "")) for name in names[:count]]
    return result[:MAX_SENTENCES]


def score_sentence(means: HeadMeans, name: str, where: str = "") -> str:
    """Return the sentence on the head with the highest score. If the score is low, it says so."""
    target, mean_of, best = MEANINGS[name].looks_at, MEANINGS[name].mean_of, ranked_heads(means, name)
    numbers: dict[str, Any] = {"where": where, "name": name, "target": target or "the shuffled tokens"}
    numbers |= dict(zip(("layer", "head", "value"), best[0], strict=True)) if best else {}
    if name in AGAINST and best:
        numbers["other"] = {(row["layer"], row["head"]): row[AGAINST[name]] for row in means.rows()}[best[0][:2]]
    elif name in AGAINST:
        numbers["rival"] = AGAINST[name]
    if np.isnan(means.scores[name]).all():
        return NONE.format(mean_of=mean_of or "to score", name=name)
    first: list[Template] = [(ONE[name], None)] if name in ONE else []
    return sentences([[*first, *SHARES]], numbers)[0]


def top_heads(means: HeadMeans, name: str) -> list[tuple[str, float]]:
    """Return the short names of at most three heads with the highest scores of a kind, without scores of 0.00."""
    return [(short_head(layer, head), score) for layer, head, score in ranked_heads(means, name)[:MAX_NAMED_HEADS]]


def ranked_heads(means: HeadMeans, name: str) -> list[tuple[int, int, float]]:
    """Return (layer, head, score), the highest first. For position and content, the order is by their difference."""
    by = means.scores[name]
    if name in AGAINST:  # a head with even attention has high values of both
        by = np.where(means.scores["looked"] >= LOOKED, by - means.scores[AGAINST[name]], np.nan)
    return means.best(name, int((np.nan_to_num(by, nan=-np.inf) >= MIN_SCORE).sum()), by=by)


def heads_panels(answer: "Heads") -> list[Panel]:
    """Return each table's overview, one grid per score, and a table of all heads. All weights share a scale."""
    several = len(answer.tables) > 1
    scores = [scores for means in answer.tables.values() for name, scores in means.scores.items() if is_share(name)]
    largest = max((value for table in scores for value in _known_scores_of_heads(table)), default=0.0)
    panels: list[Panel] = []
    for name, means in answer.tables.items():
        of, group = (f"{name}: ", name) if several else ("", "")
        names = [score for score in means.scores if score != "sinks" or np.any(means.scores[score] != 0)]
        grids = [_score_grid(means, score, of, group, largest) for score in names]
        tables = _overview_table(means, of), _all_heads_table(means, of)
        panels += [replace(panel, tab=capital(group)) for panel in (*grids, *tables)]
    return panels


def _overview_table(means: HeadMeans, of: str) -> Table:
    """Return a table of the heads with the highest scores of each kind, with the kind's meaning."""
    rows: list[list[Cell]] = []
    for score in means.scores:
        values, meaning = _known_scores_of_heads(means.scores[score]), MEANINGS[score]
        if meaning.looks_at:
            top = ", ".join(f"{head} {number(value)}" for head, value in top_heads(means, score)) or "none"
            mean = float(np.mean(values)) if values else None
            heads = top if values else "no such token"
            rows.append([score, meaning.looks_at, heads, mean, means.count(score), meaning.says])
    columns = [
        Column("score"), Column("attends to"), Column("highest heads"), Column("mean", 2),
        Column("tokens", 0, detail=True), Column("meaning", detail=True),
    ]  # fmt: skip
    title = f"{capital(of)}{'h' if of else 'H'}eads with the highest scores, {count_of_tokens(means.counts['queries'])}"
    units = "".join(f", {name} in {MEANINGS[name].unit}" for name in means.scores if not is_share(name))
    note = f"L0H2 is layer 0, head 2, and scores are mean attention weights from 0 to 1{units}."
    if any(name in AGAINST for name in means.scores):
        note = "Heads are listed by how far one score exceeds the other. L0H2 is layer 0, head 2."
    return Table(name=f"{of}Overview", title=title, columns=columns, rows=rows, screen=True, note=note)


def _score_grid(means: HeadMeans, score: str, of: str, group: str, largest: float) -> Heat:
    """Return a grid of layers by heads with one score. largest: the end of the common colour scale."""
    values, unit = means.scores[score], MEANINGS[score].unit
    quantity = {SHARE: "mean attention weight", ALIKE: "similarity of attention"}.get(unit, unit)
    looked = means.scores["looked"] if score in AGAINST and "looked" in means.scores else np.ones(values.shape)
    grey = [(row, head) for row, head in np.argwhere(~(looked >= LOOKED) & ~np.isnan(values)).tolist()]
    heads = "1 grey head attends" if len(grey) == 1 else f"{len(grey)} grey heads attend"
    detail = f"{heads} with less than {number(LOOKED)} to these tokens." if grey else score_sentence(means, score)
    return Heat(
        name=f"{of}{score}", title=f"{score}: {quantity}, {count_of_tokens(means.count(score))}",
        note=f"{MEANINGS[score].says} {detail}", grey=grey,
        rows=[f"layer {means.layer(n)}" for n in range(values.shape[0])],
        columns=[f"head {n}" for n in range(values.shape[1])], axes=("layer", "head"), unit=unit, picture=True,
        values=[[None if value != value else float(value) for value in row] for row in values], group=group,
        largest=largest if is_share(score) else None, unbounded=not is_share(score),
    )  # fmt: skip


def _all_heads_table(means: HeadMeans, of: str) -> Table:
    rows: list[list[Cell]] = [
        [short_head(row["layer"], row["head"]), *(float(str(row[name])) for name in means.scores)]
        for row in means.rows()
    ]
    return Table(
        name=f"{of}All heads", title="Scores of every head", rows=rows,
        columns=[Column("head"), *(Column(name, 2, unbounded=not is_share(name)) for name in means.scores)],
        note="Click a column name to sort.",
    )  # fmt: skip


def _known_scores_of_heads(values: np.ndarray) -> list[float]:
    """Return the scores that aren't NaN, as a flat list."""
    return [float(value) for value in values.ravel() if value == value]


def heads(model: Model, traces: Sequence[Trace | PairTrace], *, tests: bool = False, seed: int = 0) -> "Heads":
    """Score all heads in traces of texts, or of sources and targets. tests: also score random and shuffled tokens.

    Raises:
        RegardError: tests of an encoder-decoder, or of texts of fewer than 8 tokens.
    """
    if model.pairs and tests:
        raise RegardError(f"--tests: {model.name} is an encoder-decoder, they are for models with a single stack")
    texts = [trace for trace in traces if isinstance(trace, Trace)]
    pairs = [trace for trace in traces if isinstance(trace, PairTrace)]
    sides = {"texts": texts}
    if pairs:
        sides = {"encoder": [pair.encoder for pair in pairs], "decoder": [pair.decoder for pair in pairs]}
    tables = {name: mean_scores([head_scores(trace) for trace in side]) for name, side in sides.items()}
    tables |= {"cross-attention": cross_head_scores(pairs)} if pairs else {}
    if tests:
        tables["random tokens, repeated"] = repeated_tokens(model, seed=seed)
        tables["tokens exchanged"] = content_or_position(model, [trace.text for trace in texts], seed=seed)
    return Heads(tables, about=Read.of(*traces))


@dataclass(frozen=True, eq=False, repr=False)
class Heads(Answer):
    """The mean scores of every head. tables: the scores by the name of the stack or test."""

    format = "regard heads"
    findings = heads_sentences
    panels = heads_panels

    tables: Mapping[str, HeadMeans]

    def title(self) -> str:
        """Return a title with the number of heads and tokens, or with the names of the tables."""
        if len(self.tables) > 1:
            return f"Scores of attention heads: {', '.join(self.tables)}"
        (means,) = self.tables.values()
        layers, heads = next(iter(means.scores.values())).shape
        return f"Scores of {layers * heads} attention heads over {means.counts['queries']:,} tokens"

    def exactness(self) -> list[str]:
        """Return notes on the tokens that scores average over, on the model, and on the embedding index."""
        models = {means.model for means in self.tables.values() if means.model}
        notes = dict.fromkeys(note for means in self.tables.values() for note in means.notes)
        source = "".join(f", read with {model}" for model in models)
        return [f"Means are over all tokens except special tokens and the first token of each text{source}.", *notes]

    def rows(self) -> list[Row]:
        """Return one row per head and table: of, layer, head, and every score."""
        return [{"of": name, **row} for name, means in self.tables.items() for row in means.rows()]

    def data(self) -> dict[str, object]:
        """Return each table's sentences, token counts and scores, as JSON data."""
        tables = {}
        for table, means in self.tables.items():
            findings = [f"{name}: {score_sentence(means, name)}" for name in means.scores]
            tables[table] = {"findings": findings, "counts": means.counts, "heads": means.rows()}
        return {"tables": tables}
