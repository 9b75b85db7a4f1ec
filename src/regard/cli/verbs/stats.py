"""`regard stats`: what every head does over a whole corpus, from the sums that its store keeps."""

from regard.cli import options
from regard.cli.store_outputs import HeadsCsvFile, HtmlFile, ParquetFile, StoreFolder, StoreOutputs, check_store
from regard.cli.telling import tell


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
    from regard.cli.console import consoles
    from regard.corpus.asking.head_means import head_means
    from regard.corpus.store import Store
    from regard.questions.heads.answer import of_corpus

    with Store(store) as opened:
        found = of_corpus(head_means(opened))
    tell(found, outputs, consoles(json_file), top=None)
