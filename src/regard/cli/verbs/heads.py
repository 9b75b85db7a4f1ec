"""`regard heads`: what every head does, over texts, in tests made for it, or over a whole corpus."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli import options
from regard.cli.early_checks import EarlyChecks, no_tests
from regard.cli.source import Source, check_texts, traced
from regard.cli.store_outputs import HeadsCsvFile, HtmlFile, StoreOutputs
from regard.errors import RegardError

if TYPE_CHECKING:
    from regard.explain.weights.head_means import HeadMeans
    from regard.web.page import Page

StoreFolder = Annotated[
    Path | None, typer.Option("--store", metavar="STORE", help="Over the corpus of what regard embed wrote: no TEXT.")
]
Tests = Annotated[
    bool, typer.Option("--tests", help="Test heads too: on repeated random tokens, and with tokens exchanged.")
]
Seed = Annotated[int, options.number("N", "Of the random tokens and exchanges.")]


def heads(
    texts: options.Texts = None,
    targets: options.Targets = None,
    model: options.ModelName = None,
    store: StoreFolder = None,
    tests: Tests = False,
    seed: Seed = 0,
    figure: options.FigureFile = None,
    html: HtmlFile = None,
    csv: HeadsCsvFile = None,
    json_file: options.JsonFile = None,
) -> None:
    """Show what every head's attention follows: positions, special and repeated tokens, content, translations."""
    outputs = StoreOutputs(csv, None, json_file, figure, html)
    if store is not None:
        for option, given in (("TEXT", texts), ("--target", targets), ("--model", model), ("--tests", tests)):
            if given:
                raise RegardError(f"--store and {option}: a store has its own texts and model, give one of both")
        from regard.cli.verbs.stats import stats

        return stats(store, figure=figure, html=html, csv=csv, json_file=json_file)
    given_texts = Source(texts or [], targets or [], model)
    given_texts.check("heads")
    check_texts("text", given_texts.texts)
    outputs.check()
    early = EarlyChecks.of(given_texts)
    if tests:
        early.check_kind(True, no_tests)

    # torch and transformers are imported only now: help and bad input do not wait for them
    from regard.cli.console import consoles, finish
    from regard.views.asked import heads_data
    from regard.views.terminal.head_means import HEADS, show_heads

    console, errors = consoles(json_file)
    with errors.status("loading and tracing …"):
        found = traced(given_texts)
        if tests and found.model.pairs:
            raise no_tests(found.model.name)
        tables = _of_texts(found.traces)
        if tests:
            tables |= _of_tests(found.model, given_texts.texts, seed)

    def draw(file: Path) -> None:
        from regard.views.figures.head_means import draw_heads

        draw_heads(tables, file)

    def rows() -> list[dict[str, str | int | float | bool | None]]:
        return [{"of": name, **row} for name, means in tables.items() for row in means.rows()]

    def page() -> "Page":
        from regard.web.head_means import heads_page

        return heads_page(tables)

    outputs.write(rows, lambda: heads_data(tables), draw, page)
    titles = {name: f"{name}: {means.counts['queries']:,} tokens" for name, means in tables.items()}
    said = [HEADS]
    if tests:
        said.append("position and content name heads by how much more they follow the one than the other")
    show_heads([(titles[name], means) for name, means in tables.items()], console, said)
    finish(console, errors, outputs.files)
    return None


def _of_texts(traces: "list[object]") -> "dict[str, HeadMeans]":
    """The means over the texts; of an encoder-decoder, of both sides and what stands between them."""
    from regard.explain.weights.cross_head_scores import cross_head_scores
    from regard.explain.weights.head_means import mean_scores
    from regard.explain.weights.head_scores import head_scores
    from regard.trace.trace import PairTrace, Trace

    pairs = [each for each in traces if isinstance(each, PairTrace)]
    if not pairs:
        return {"texts": mean_scores([head_scores(each) for each in traces if isinstance(each, Trace)])}
    return {
        "encoder": mean_scores([head_scores(each.encoder) for each in pairs]),
        "decoder": mean_scores([head_scores(each.decoder) for each in pairs]),
        "cross-attention": cross_head_scores(pairs),
    }


def _of_tests(model: object, texts: Sequence[str], seed: int) -> "dict[str, HeadMeans]":
    """The two tests."""
    from regard.explain.weights.content_or_position import content_or_position
    from regard.explain.weights.repeated_tokens import repeated_tokens
    from regard.models.model import Model

    assert isinstance(model, Model)
    return {
        "random tokens, repeated": repeated_tokens(model, seed=seed),
        "tokens exchanged": content_or_position(model, texts, seed=seed),
    }
