"""Define `regard serve`, which opens the interactive page in a browser."""

from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from regard.cli import options
from regard.cli.options import number, option
from regard.cli.outputs import NOTHING, waiting
from regard.cli.start import load_model, settle
from regard.cli.verb import Verb
from regard.errors import RegardError
from regard.lazy import import_from_corpus_extra, import_part
from regard.model_files.folder import DEFAULT_NAME
from regard.text.tokens import check_text

Texts = Annotated[
    list[str] | None, typer.Argument(metavar="TEXT...", help="Texts to show on the page.", show_default=False)
]


def serve(
    texts: Texts = None,
    models: Annotated[list[str] | None, option("--model", options.USUAL_MODEL)] = None,
    files: Annotated[list[Path] | None, option("--open")] = None,
    stores: Annotated[list[Path] | None, option("--store")] = None,
    port: Annotated[int, number("--port", "any free port", least=0, most=65535)] = 0,
) -> None:
    """Open an interactive page on this machine to type, trace and edit texts, and to zoom into long texts.

    Repeat --model, --open and --store to add several. --open also reads saved attention maps.
    """
    for package in ("fastapi", "uvicorn"):
        if find_spec(package) is None:
            raise RegardError(f"{package} is not installed: pip install 'regard[web]'")

    for nth, text in enumerate(texts or [], 1):
        check_text(text, f"text {nth}")
    for store in stores or []:
        import_part("regard.corpus.verb").check_store(store)
        import_from_corpus_extra("duckdb")
    from regard.server import serve as server  # a late import, so that help is fast

    with ExitStack() as stack:
        with waiting(NOTHING, "Loading …"):
            pages = server.open_files(files or [])
            indexes = [stack.enter_context(import_part("regard.corpus.store").Store(store)) for store in stores or []]
            model_names: list[str | None] = [*(models or ())]
            default = any(store.manifest.model.name == DEFAULT_NAME for store in indexes)  # to read an index's texts
            if not model_names and (texts or default or not (pages or indexes)):
                model_names = [None]
            loaded = [load_model(name) for name in model_names]
            server.rename_equal_models(loaded, model_names)
        settle()

        intro = "Open this link in a browser on this machine; Ctrl-C ends it:\n"
        server.serve(loaded, texts or [], pages, stores=indexes, port=port, started=lambda url: typer.echo(intro + url))


SERVE = Verb(
    serve, "Open an interactive page to type texts and explore them.",
    heading="Look at attention",
    examples=('serve "We sat on the quiet river bank."', "serve --store bank.store"),
)  # fmt: skip
