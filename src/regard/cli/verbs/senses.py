"""`regard senses`: the senses of a word in a store, with examples and the words that tell them, checked by ablation."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli import options, start
from regard.cli.store_outputs import (
    By,
    Context,
    CsvFile,
    HtmlFile,
    LayerOption,
    ParquetFile,
    Seed,
    StoreFolder,
    StoreModel,
    StoreOutputs,
    check_store,
)
from regard.errors import RegardError

if TYPE_CHECKING:
    from regard.web.page import Page

Word = Annotated[str, typer.Argument(metavar="WORD", help="The word to look at.")]
K = Annotated[int | None, options.number("N", "How many senses; by default as many as the silhouette says.")]
Train = Annotated[
    Path | None, options.file("--train", "Labelled sentences that teach the senses: .csv of sentence, position, label.")
]
Examples = Annotated[int, options.number("N", "Good examples of each sense.")]
Words = Annotated[int, options.number("N", "Words of the context that set each sense apart.")]
Checked = Annotated[int, options.number("N", "Occurrences in which each of them is cut; 0 for none.")]


def senses(
    word: Word,
    store: StoreFolder,
    k: K = None,
    train: Train = None,
    examples: Examples = 3,
    words: Words = 5,
    checked: Checked = 30,
    by: By = "word",
    layer: LayerOption = None,
    context: Context = 60,
    model: StoreModel = None,
    seed: Seed = 0,
    figure: options.FigureFile = None,
    html: HtmlFile = None,
    csv: CsvFile = None,
    parquet: ParquetFile = None,
    json_file: options.JsonFile = None,
) -> None:
    """Tell the senses of a word: clusters of its occurrences, examples, and what in the context tells them."""
    outputs = StoreOutputs(csv, parquet, json_file, figure, html)
    outputs.check()
    if train is not None and not train.is_file():
        raise RegardError(f"--train {str(train)!r} cannot be read: there is no such file")
    check_store(store, layer)
    start.settle()  # scikit-learn needs scipy, which a command does without at its start
    from regard.cli.console import consoles, finish
    from regard.corpus.asking.labelled import read_labelled
    from regard.corpus.store import Store
    from regard.views.asked import senses_data
    from regard.views.terminal.senses import show_senses

    console, errors = consoles(json_file)
    with Store(store, model=model) as opened, errors.status("clustering, and cutting words …"):
        labelled = None if train is None else read_labelled(train)
        found = opened.senses(
            word, k, by=by, layer=layer, labelled=labelled, examples=examples, words=words, checked=checked,
            context=context, seed=seed,
        )  # fmt: skip

        def draw(file: Path) -> None:
            from regard.views.figures.senses import draw_senses

            draw_senses(found, file)

        def page() -> "Page":
            from regard.web.senses import senses_page

            return senses_page(found)

        outputs.write(lambda: found.rows(context), lambda: senses_data(found), draw, page)
    show_senses(found, console)
    finish(console, errors, outputs.files)
