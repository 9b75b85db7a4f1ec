"""`regard stats`: what every head does over a whole corpus, from the sums that its store keeps."""

from pathlib import Path
from typing import TYPE_CHECKING

from regard.cli import options
from regard.cli.store_outputs import HeadsCsvFile, HtmlFile, ParquetFile, StoreFolder, StoreOutputs, check_store

if TYPE_CHECKING:
    from regard.web.page import Page


def stats(
    store: StoreFolder,
    figure: options.FigureFile = None,
    html: HtmlFile = None,
    csv: HeadsCsvFile = None,
    parquet: ParquetFile = None,
    json_file: options.JsonFile = None,
) -> None:
    """Show what every head's attention follows over a whole corpus: positions, special and repeated tokens."""
    outputs = StoreOutputs(csv, parquet, json_file, figure, html)
    outputs.check()
    check_store(store)
    from regard.cli.console import consoles, finish
    from regard.corpus.asking.head_means import head_means
    from regard.corpus.store import Store
    from regard.views.asked import stats_data
    from regard.views.terminal.head_means import show_head_means

    console, errors = consoles(json_file)
    with Store(store) as opened:
        found = head_means(opened)

    def draw(file: Path) -> None:
        from regard.views.figures.head_means import draw_head_means

        draw_head_means(found, file)

    def page() -> "Page":
        from regard.web.head_means import head_means_page

        return head_means_page(found)

    outputs.write(found.rows, lambda: stats_data(found), draw, page)
    show_head_means(found, console, found.notes)
    finish(console, errors, outputs.files)
