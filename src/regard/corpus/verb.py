"""Define `regard embed`, `find`, `senses` and `shift`: write and query an embedding index of many texts."""

import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard import corpus
from regard.cli import options, start
from regard.cli.options import number, option, whole_numbers
from regard.cli.outputs import NOTHING, Outputs, consoles, report, waiting, writes
from regard.cli.verb import Verb
from regard.corpus.reading.document import Columns
from regard.corpus.reading.documents import find_files
from regard.corpus.schema import read_manifest
from regard.corpus.settings import Settings, Where, place_among_stored_layers
from regard.errors import RegardError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.status import Status

    from regard.corpus.embed_texts import EmbedProgress
    from regard.corpus.store import Store

Paths = Annotated[
    list[str], typer.Argument(metavar="PATH...", help="Files, folders or patterns, or - for standard input.")
]
EVERY = 20.0  # seconds between progress lines if there is no terminal
SHOWN, CONTEXT = 25, 60
StoreFolder = Annotated[Path, option("--store")]
StoreModel = Annotated[str | None, option("--model", "the default model, if it made the index")]
Lookup = Annotated[str, option("--lookup")]
KeptLayer = Annotated[int | None, number("--layer", "the last layer of the index")]
Senses = Annotated[int | None, number("--k", "chosen by silhouette score")]
Examples = Annotated[int, number("--examples")]
Context = Annotated[int, number("--context")]


@writes("json")
def embed(
    paths: Paths,
    out: Annotated[Path, option("--out")],
    model: options.ModelName = None,
    layers: Annotated[str, option("--layers", "last (all: every layer)")] = "last",
    unit: Annotated[str, option("--unit")] = "words",
    where: Annotated[str | None, option("--where")] = None,
    lemma: Annotated[str | None, option("--lemma")] = None,
    dtype: Annotated[str, option("--dtype")] = "float16",
    statistics: Annotated[bool, option("--statistics/--no-statistics")] = True,
    window: Annotated[int | None, number("--window", "the model's limit, at most 512")] = None,
    stride: Annotated[int | None, number("--stride", "3/4 of --window")] = None,
    text_column: Annotated[str, option("--text-column")] = "text",
    id_column: Annotated[str | None, option("--id-column")] = None,
    shard: Annotated[int, number("--shard")] = 250_000,
    workers: Annotated[int | None, number("--workers", "the number of cores")] = None,
    prune: Annotated[bool, option("--prune")] = False,
    follow_links: Annotated[bool, option("--follow-links")] = False,
    outputs: Outputs = NOTHING,
) -> None:
    """Read texts once and store each word's contextual embedding and attention in an index that you can query."""
    settings = Settings(
        layers=_layers_option_value(layers), unit=unit, where=None if where is None else Where.parse(where),
        lemma=lemma, dtype=dtype, statistics=statistics, window=window, stride=stride, shard=shard,
    )  # fmt: skip

    files = find_files(paths, follow_links=follow_links)
    plain = all(str(file) != "-" and file.suffix.lower() == ".txt" for file in files)
    sizes = sum(file.stat().st_size for file in files) if plain else None  # roughly the number of characters
    from regard.corpus.questions.embed import embedded

    _, errors = consoles(outputs.json)
    start.settle()
    try:
        with errors.status("Reading …") as status:
            result = embedded(
                paths, out, model=model, settings=settings, columns=Columns(text_column, id_column), workers=workers,
                progress=_progress_shown_in(status, sizes), prune=prune, follow_links=follow_links,
            )  # fmt: skip
    except KeyboardInterrupt:
        errors.print("Stopped. Run the same command to continue from what is written.", markup=False)
        raise
    report(result, outputs)


def _layers_option_value(text: str) -> tuple[int, ...] | None:
    """Convert the value of `--layers` to that of `Settings.layers`."""
    if text == "last":
        return None
    if text == "all":
        return ()
    parts = text.split(",")
    try:  # negative numbers count from the end
        return tuple(n for part in parts for n in ([int(part)] if part.strip()[:1] == "-" else whole_numbers(part)))
    except (ValueError, typer.BadParameter) as error:
        raise RegardError(f"--layers: got {text!r}, expected last, all or numbers such as 0,3-5") from error


def _progress_shown_in(status: "Status", characters: int | None) -> "Callable[[EmbedProgress], None]":
    """Return a callback that shows progress in a status line, or without a terminal in separate lines."""
    last_printed = time.monotonic()

    def show(progress: "EmbedProgress") -> None:
        nonlocal last_printed
        rate = progress.new_tokens / max(1e-9, progress.seconds)
        text = f"{progress.shards} shards, {progress.tokens:,} tokens, {rate:,.0f} tokens/s"
        if characters and progress.new_tokens:
            seconds = max(0, characters - progress.characters) / max(1, progress.characters) * progress.seconds
            text += f", about {seconds / 60:.0f} min left"
        status.update(text)
        if not status.console.is_terminal and time.monotonic() - last_printed > EVERY:
            last_printed = time.monotonic()
            status.console.print(text, style="dim", markup=False)

    return show


def check_store(store: Path, layer: int | None = None) -> None:
    """Check an index's manifest, and that the index stores a layer. Runs before slow imports."""
    place_among_stored_layers(read_manifest(store).layers, layer)


def _open_store(store: Path, model: str | None = None) -> "Store":
    """Open an embedding index whose manifest was checked."""
    start.settle()
    return corpus.Store(store, model=model)


@writes("html", "csv", "parquet", "json")
def find(
    word: Annotated[str, typer.Argument(metavar="WORD", help="Word or phrase to find.")],
    store: StoreFolder,
    like: Annotated[str | None, option("--like")] = None,
    everywhere: Annotated[bool, option("--everywhere")] = False,
    sort: Annotated[str | None, option("--sort", "source (meaning with --like)")] = None,
    top: Annotated[int | None, number("--top", "25")] = None,
    by: Lookup = "word",
    layer: KeptLayer = None,
    context: Context = CONTEXT,
    model: StoreModel = None,
    outputs: Outputs = NOTHING,
) -> None:
    """Find every occurrence of a word in an embedding index and show it in context.

    With --like, a sentence that contains the word, the occurrences closest in meaning come first. --csv has a row
    for each occurrence.
    """
    check_store(store, layer)
    with _open_store(store, model) as index:
        if like is not None:
            with waiting(outputs, "Loading the model …"):
                _ = index.model
        result = index.find(
            word, like=like, everywhere=everywhere, by=by, sort=sort, top=top, layer=layer, context=context
        )
        report(result, outputs, SHOWN if top is None else top)


@writes("figure", "html", "csv", "parquet", "json")
def senses(
    word: Annotated[str, typer.Argument(metavar="WORD", help="Word to examine.")],
    store: StoreFolder,
    k: Senses = None,
    examples: Examples = 3,
    words: Annotated[int, number("--words")] = 5,
    checked: Annotated[int, number("--checked")] = 30,
    by: Lookup = "word",
    layer: KeptLayer = None,
    context: Context = 60,
    model: StoreModel = None,
    seed: options.Seed = 0,
    outputs: Outputs = NOTHING,
) -> None:
    """Find the senses of a word: clusters of its occurrences, with examples and the context words that mark them.

    --csv has a row for each occurrence.
    """
    check_store(store, layer)
    with _open_store(store, model) as index, waiting(outputs, "Clustering, and cutting words …"):
        result = index.senses(
            word, k, by=by, layer=layer, examples=examples, words=words, checked=checked, context=context, seed=seed
        )  # fmt: skip
    report(result, outputs)


@writes("figure", "html", "csv", "parquet", "json")
def shift(
    word: Annotated[str, typer.Argument(metavar="WORD", help="Word to examine.")],
    stores: Annotated[list[Path], option("--store")],
    column: Annotated[str | None, option("--column")] = None,
    values: Annotated[str | None, option("--values", "the only two")] = None,
    k: Senses = None,
    rounds: Annotated[int, number("--rounds")] = 999,
    examples: Examples = 2,
    by: Lookup = "word",
    layer: KeptLayer = None,
    context: Context = 60,
    seed: options.Seed = 0,
    outputs: Outputs = NOTHING,
) -> None:
    """Compare a word's meaning between two embedding indexes (--store twice) or parts of an index (--column).

    Show how far apart they are, a significance test, and the senses that differ. --csv has a row for each occurrence.
    """
    if len(stores) != (2 if column is None else 1):
        raise RegardError(f"--store: got {len(stores)}, expected two, or one with --column NAME")
    if values is not None and column is None:
        raise RegardError("--values needs --column: it names the two values of that column to compare")
    for store in stores:
        check_store(store, layer)
    names = None if values is None else [value.strip() for value in values.split(",")]
    with ExitStack() as stack:
        first, *others = [stack.enter_context(_open_store(store)) for store in stores]
        with waiting(outputs, "Comparing …"):
            result = first.shift(
                word, others[0] if others else None, column, values=names, k=k, by=by, layer=layer, rounds=rounds,
                examples=examples, context=context, seed=seed,
            )  # fmt: skip
        report(result, outputs)


EMBED = Verb(
    embed, "Build an embedding index of many texts.", takes_dtype=False,
    heading="Search a corpus",
    examples=("embed texts/ --out texts.store", "embed texts/ --out bank.store --where word=bank"),
)  # fmt: skip
FIND = Verb(
    find, "Find a word in an index: in context, or by meaning.", takes_dtype=False,
    heading="Search a corpus",
    examples=("find bank --store bank.store --sort right",
              'find bank --store bank.store --like "Money in the bank." --top 20'),
)  # fmt: skip
SENSES = Verb(
    senses, "Find the senses of a word in an index.", takes_dtype=False,
    heading="Search a corpus",
    examples=("senses bank --store bank.store --k 2", "senses bank --store bank.store --html senses.html"),
)  # fmt: skip
SHIFT = Verb(
    shift, "Compare a word's meaning between two indexes or periods.", takes_dtype=False,
    heading="Search a corpus",
    examples=("shift bank --store bank.store --column period",
              "shift bank --store old.store --store new.store --csv shift.csv"),
)  # fmt: skip
