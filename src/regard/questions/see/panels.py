"""The tables of a summary: the texts, what a first screen has, then all of the word, and what the model says."""

from typing import TYPE_CHECKING

from regard.display.panels import Cell, Column, Panel, Shares, Table
from regard.explain.findings.wording import quoted
from regard.explain.logits.logit_lens import LogitLens
from regard.explain.logits.predictions import Prediction
from regard.explain.texts.summary import Summary
from regard.questions.see import pair_panels as pair
from regard.questions.see import text_panels as text
from regard.questions.see import word_panels as word
from regard.questions.see.brief_panels import brief_panels
from regard.questions.see.names import called, name_of, state_name

if TYPE_CHECKING:
    from regard.questions.see.answer import Seen


def of_summary(found: "Seen") -> list[Panel]:
    """The texts, what a first screen says of them in short, then every table in the order of the data's way."""
    summary, target = found.summary, found.summary.target
    panels = [*text.texts(summary, "text"), *text.windows(summary)]
    if target is not None:
        panels += text.texts(target.summary, "target")
        panels += [pair.looks(each, summary, n < pair.TEXTS) for n, each in enumerate(target.alignments)]
    panels += brief_panels(summary)
    panels += _side(summary, "text")
    if target is not None:
        panels += [*pair.across(summary, target), *_side(target.summary, "target", summary)]
    return panels


def _side(summary: Summary, side: str, source: Summary | None = None) -> list[Panel]:
    """What is shown of texts, or of their targets: of the word where it occurs there, or of all tokens.

    source: of targets, the texts.
    """
    panels: list[Panel] = []
    if summary.word is None:
        panels += [text.overview(summary, n, side) for n in range(len(summary.texts))]
    elif summary.occurrences:
        panels += [word.learned(summary, side), *word.cosines(summary, side), word.states(summary, side)]
        panels += [each for own in summary.occurrences for each in word.attends(summary, own, side)]
        panels += [word.updates(each, summary, side, source) for each in summary.layer_updates]
        panels += [word.references(summary)] if summary.references else []
        panels += [word.static(summary.static)] if summary.static is not None else []
    panels += [_predictions(summary, side)] if summary.predictions else []
    return panels + [_lens(each, summary, side) for each in summary.logit_lenses]


def _predictions(summary: Summary, side: str) -> Panel:
    """The likeliest tokens after a place (causal models), or at it (masked language models)."""
    after = summary.predictions[0].after
    rows: list[list[Cell]] = [
        [*_place(summary, each), Shares([(c.text, c.probability) for c in each.candidates])]
        for each in summary.predictions
    ]
    title = "What the model says next" if after else "What the model says here"
    columns = [Column(side), Column("after" if after else "at"), Column("likeliest tokens, and their probability")]
    return Table(name=name_of("Says", side), title=title, columns=columns, rows=rows)


def _lens(lens: LogitLens, summary: Summary, side: str) -> Panel:
    """What each layer would say at one place."""
    label, at = _place(summary, lens)
    rows: list[list[Cell]] = [
        [state_name(layer.state), Shares([(c.text, c.probability) for c in layer.candidates]), str(layer.rank)]
        for layer in lens.layers
    ]
    final = quoted(lens.final.text)
    columns = [Column("state"), Column("likeliest tokens, and their probability"), Column(f"rank of {final}")]
    where = f"{'after' if lens.after else 'at'} {quoted(at)}"
    title = f"What each layer would say {where} in {side} {label} (logit lens)"
    note = (
        f"The model says {final}: {lens.final.probability:.3f}; its own final norm and head are put on each state, and "
        f"from the last give its logits within {lens.difference:.0e}."
    )
    return Table(name=f"Logit lens, {side} {label}", title=title, note=note, columns=columns, rows=rows, screen=True)


def _place(summary: Summary, each: Prediction | LogitLens) -> tuple[str, str]:
    """The label of a text or occurrence, and the token with its number where there are more of its kind."""
    return each.occurrence or summary.labels[each.text], called(each.token, summary.tokens[each.text])
