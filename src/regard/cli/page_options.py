"""The options of the page that a verb writes, declared once: a verb takes all of them as one `PageFile`."""

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from regard.cli.options import Numbers, file, numbers
from regard.cli.page_file import PageFile

PARAMETER = "html"  # of a verb: where its options stand in the help


def _options(
    html_file: Annotated[Path | None, file("--html", "Write a page to hover over, in one offline file: .html.")] = None,
    html_numbers: Annotated[
        str | None,
        typer.Option(
            "--html-numbers", metavar="int16|float32", help="How the page carries queries and keys: int16 is half."
        ),
    ] = None,
    html_layers: Annotated[
        Numbers | None, numbers("--html-layers", "Let the page have the attention of these layers alone.")
    ] = None,
    html_steps: Annotated[
        bool,
        typer.Option(
            "--html-steps", help="Let the page have values, hidden states and projections too, for its Steps."
        ),
    ] = False,
) -> PageFile:
    return PageFile(html_file, html_numbers, html_layers, html_steps)


def page_options(verb: Callable[..., None]) -> Callable[..., None]:
    """Give a verb that takes `html: PageFile` the four options of a page in its place."""
    own = inspect.signature(_options).parameters
    given = inspect.signature(verb)
    parameters = [
        each
        for parameter in given.parameters.values()
        for each in (own.values() if parameter.name == PARAMETER else [parameter])
    ]

    @functools.wraps(verb)
    def with_page(*first: object, **values: object) -> None:
        html = _options(**{name: values.pop(name) for name in own if name in values})  # type: ignore[arg-type]
        verb(*first, **values, **{PARAMETER: html})

    with_page.__signature__ = given.replace(parameters=parameters)  # type: ignore[attr-defined]
    return with_page
