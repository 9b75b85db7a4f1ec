"""`regard stats`: what every head does over a whole corpus, from the sums that its store keeps."""

from regard.cli.file_options import writes
from regard.cli.outputs import NOTHING, Outputs
from regard.cli.store_options import EVERY_SCORE, StoreFolder, check_store
from regard.cli.telling import tell


@writes("figure", "html", "csv", "parquet", "json", said=EVERY_SCORE)
def stats(store: StoreFolder, outputs: Outputs = NOTHING) -> None:
    """Show what every head's attention follows over a whole corpus: positions, special and repeated tokens."""
    outputs.check()
    check_store(store)
    from regard.cli.console import consoles
    from regard.corpus.asking.head_means import head_means
    from regard.corpus.store import Store
    from regard.questions.heads.answer import of_corpus

    with Store(store) as opened:
        found = of_corpus(head_means(opened))
    tell(found, outputs, consoles(outputs.json), top=None)
