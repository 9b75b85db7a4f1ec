"""`regard embed`: read any amount of text once, and keep every word's embedding and attention in a store."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli import options, start
from regard.cli.options import number, option, whole_numbers
from regard.cli.outputs import NOTHING, Outputs, consoles, report, writes
from regard.cli.verb import Verb
from regard.corpus.reading.document import Columns
from regard.corpus.reading.documents import find_files
from regard.corpus.settings import Settings, Where
from regard.errors import RegardError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.status import Status

    from regard.corpus.embed_texts import EmbedProgress, Runner

Paths = Annotated[
    list[str], typer.Argument(metavar="PATH...", help="Files, folders or patterns, or - for standard input.")
]
EVERY = 20.0  # seconds between lines of progress where no line can be redrawn


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
    backend: Annotated[str, option("--backend")] = "torch",
    precision: Annotated[str, option("--precision")] = "float32",
    prompt: Annotated[str | None, option("--text-prompt", "the folder's default")] = None,
    workers: Annotated[int | None, number("--workers", "the number of cores")] = None,
    ray: Annotated[str | None, option("--ray")] = None,
    prune: Annotated[bool, option("--prune")] = False,
    follow_links: Annotated[bool, option("--follow-links")] = False,
    outputs: Outputs = NOTHING,
) -> None:
    """Read texts once and store each word's contextual embedding and attention in an index that you can query."""
    chosen = Settings(
        layers=_layers_option_value(layers), unit=unit, where=None if where is None else Where.parse(where),
        lemma=lemma, dtype=dtype, statistics=statistics, window=window, stride=stride, shard=shard, backend=backend,
        precision=precision, prompt=prompt,
    )  # fmt: skip

    files = find_files(paths, follow_links=follow_links)
    plain = all(str(each) != "-" and each.suffix.lower() == ".txt" for each in files)
    sizes = sum(each.stat().st_size for each in files) if plain else None  # about how many characters there are
    from regard.corpus.embed_texts import embed as embed_texts
    from regard.corpus.questions.embed import Embedded, missing_words

    _, errors = consoles(outputs.json)
    runner: Runner | None = None
    if ray is not None:
        from regard.corpus.ray_runner import on_ray

        runner = on_ray(ray, workers)
    start.settle()
    try:
        with errors.status("Reading …") as status:
            summary = embed_texts(
                paths, out, model=model, settings=chosen, columns=Columns(text_column, id_column), workers=workers,
                runner=runner, progress=_progress_shown_in(status, sizes), prune=prune, follow_links=follow_links,
            )  # fmt: skip
    except KeyboardInterrupt:
        errors.print("Stopped. Run the same command to continue from what is written.", markup=False)
        raise
    report(Embedded(summary, missing_words(out, chosen.where)), outputs)


def _layers_option_value(given: str) -> tuple[int, ...] | None:
    """Layers as `Settings` takes them."""
    if given == "last":
        return None
    if given == "all":
        return ()
    parts = given.split(",")
    try:  # negative ones count from the end
        return tuple(n for part in parts for n in ([int(part)] if part.strip()[:1] == "-" else whole_numbers(part)))
    except (ValueError, typer.BadParameter) as error:
        raise RegardError(f"--layers: given {given!r}, needs last, all or numbers such as 0,3-5") from error


def _progress_shown_in(status: "Status", characters: int | None) -> "Callable[[EmbedProgress], None]":
    """Make what shows progress, in a line that a terminal draws anew; elsewhere in a new line now and then."""
    said = time.monotonic()

    def show(done: "EmbedProgress") -> None:
        nonlocal said
        rate = done.new_tokens / max(1e-9, done.seconds)
        text = f"{done.shards} shards, {done.tokens:,} tokens, {rate:,.0f} tokens/s"
        if characters and done.new_tokens:
            left = max(0, characters - done.characters) / max(1, done.characters) * done.seconds
            text += f", about {left / 60:.0f} min left"
        status.update(text)
        if not status.console.is_terminal and time.monotonic() - said > EVERY:
            said = time.monotonic()
            status.console.print(text, style="dim", markup=False)

    return show


EMBED = Verb(
    embed, "Build an embedding index of many texts.", takes_dtype=False,
    examples=("embed texts/ --out texts.store", "embed texts/ --out bank.store --where word=bank"),
)  # fmt: skip
