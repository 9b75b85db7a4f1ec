"""The options of the files that a verb writes, declared once: a verb takes all of them as one `Outputs`."""

import functools
import inspect
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from regard.cli.options import Numbers, file, numbers
from regard.cli.outputs import Outputs, TraceFile
from regard.cli.page_file import PageFile

PARAMETER = "outputs"  # of a verb: where its options stand in the help
GROUPS = {  # what a verb may offer, and the options of it
    "figure": ("figure",),
    "html": ("html",),
    "html of traces": ("html", "html_with"),
    "csv": ("csv",),
    "parquet": ("parquet",),
    "json": ("json_file",),
    "save": ("save_file",),
    "save parts": ("save_file", "save_layers", "save_heads", "save_dtype", "save_attention_outputs"),
}


def _options(
    figure: Annotated[Path | None, file("--figure", "Write a picture: .png or .svg.")] = None,
    html: Annotated[Path | None, file("--html", "Write a page to hover over, in one offline file: .html.")] = None,
    html_with: Annotated[
        list[str] | None,
        typer.Option(
            "--html-with",
            metavar="PART,PART",
            help="What the page carries: steps (values and hidden states too, for its tab Steps), float32 (exact "
            "numbers, twice as large), layers=0,3-5 (the attention of these layers alone).",
        ),
    ] = None,
    csv: Annotated[
        Path | None, file("--csv", "Write what was found as a table, a row each: .csv, safe in spreadsheets.")
    ] = None,
    parquet: Annotated[Path | None, file("--parquet", "Write the same rows: .parquet.")] = None,
    json_file: Annotated[
        Path | None, file("--json", "Write everything shown, at full precision: .json; - is standard output.")
    ] = None,
    save_file: Annotated[Path | None, file("--save", "Write the traces: .safetensors.")] = None,
    save_layers: Annotated[
        Numbers | None, numbers("--save-layers", "Save the attention of these layers alone.")
    ] = None,
    save_heads: Annotated[Numbers | None, numbers("--save-heads", "Save these heads alone.")] = None,
    save_dtype: Annotated[
        str | None, typer.Option("--save-dtype", metavar="D", help="Save as float16 or bfloat16: half the size.")
    ] = None,
    save_attention_outputs: Annotated[
        bool,
        typer.Option("--save-attention-outputs", help="Save what stands around attention too, for contributions."),
    ] = False,
) -> Outputs:
    return Outputs(
        figure,
        PageFile.of(html, html_with or ()),
        csv,
        parquet,
        json_file,
        TraceFile(save_file, save_layers, save_heads, save_dtype, save_attention_outputs),
    )


def writes(
    *groups: str, pictures: tuple[str, ...] = (".png", ".svg"), said: dict[str, str] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a verb that takes `outputs: Outputs` the options of some of `GROUPS` in its place, in their order.

    pictures: the endings that --figure may have. said: help of single options, by name, where it is another here.
    """
    declared = inspect.signature(_options).parameters
    names = [name for group in groups for name in GROUPS[group]]
    own = [_said(declared[name], (said or {}).get(name)) for name in names]
    offered = tuple(group.partition(" ")[0] for group in groups)

    def decorate(verb: Callable[..., None]) -> Callable[..., None]:
        given = inspect.signature(verb)
        parameters = [
            each
            for parameter in given.parameters.values()
            for each in (
                [one.replace(kind=parameter.kind) for one in own] if parameter.name == PARAMETER else [parameter]
            )
        ]

        @functools.wraps(verb)
        def with_files(*first: object, **values: Any) -> None:
            if PARAMETER in values:  # another verb calls it
                verb(*first, **values)
                return
            files = _options(**{name: values.pop(name) for name in names if name in values})
            verb(*first, **values, **{PARAMETER: replace(files, pictures=pictures, offered=offered)})

        with_files.__signature__ = given.replace(parameters=parameters)  # type: ignore[attr-defined]
        return with_files

    return decorate


def _said(parameter: inspect.Parameter, text: str | None) -> inspect.Parameter:
    """An option with another help."""
    if text is None:
        return parameter
    kind, option = parameter.annotation.__origin__, copy(parameter.annotation.__metadata__[0])
    option.help = text
    return parameter.replace(annotation=Annotated[kind, option])
