"""The options of the files that a verb writes, declared once: a verb takes all of them as one `Outputs`."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from regard.cli.options import Numbers, file, flag, numbers, said
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
Verb = Callable[..., None]
CARRIES = (
    "What the page carries: steps (values and hidden states too, for its tab Steps), float32 (exact numbers, twice as "
    "large), layers=0,3-5 (the attention of these layers alone)."
)


def _options(
    figure: Annotated[Path | None, file("--figure", "Draw a picture: .png, .svg or .pdf.")] = None,
    html: Annotated[Path | None, file("--html", "Write a page to hover over, one offline file: .html.")] = None,
    html_with: Annotated[list[str] | None, said("--html-with", "PART,PART", CARRIES)] = None,
    csv: Annotated[Path | None, file("--csv", "Write the answer as a table: .csv, safe in spreadsheets.")] = None,
    parquet: Annotated[Path | None, file("--parquet", "Write the same table: .parquet.")] = None,
    json_file: Annotated[
        Path | None, file("--json", "Write everything found, at full precision: .json; - is standard output.")
    ] = None,
    save_file: Annotated[Path | None, file("--save", "Write what was traced, for --open: .safetensors.")] = None,
    save_layers: Annotated[Numbers | None, numbers("--save-layers", "Save attention of these layers alone.")] = None,
    save_heads: Annotated[Numbers | None, numbers("--save-heads", "Save these heads alone.")] = None,
    save_dtype: Annotated[
        str | None, said("--save-dtype", "float16|bfloat16", "Save numbers of half the size.")
    ] = None,
    save_attention_outputs: Annotated[
        bool, flag("--save-attention-outputs", "Save attention outputs too, of which contributions are computed.")
    ] = False,
) -> Outputs:
    saved = TraceFile(save_file, save_layers, save_heads, save_dtype, save_attention_outputs)
    return Outputs(figure, PageFile.of(html, html_with or ()), csv, parquet, json_file, saved)


def writes(*groups: str) -> Callable[[Verb], Verb]:
    """Give a verb that takes `outputs: Outputs` the options of some of `GROUPS` in its place, in their order."""
    declared = inspect.signature(_options).parameters
    names = [name for group in groups for name in GROUPS[group]]
    own = [declared[name] for name in names]
    offered = tuple(group.partition(" ")[0] for group in groups)

    def decorate(verb: Verb) -> Verb:
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
            verb(*first, **values, **{PARAMETER: replace(files, offered=offered)})

        with_files.__signature__ = given.replace(parameters=parameters)  # type: ignore[attr-defined]
        return with_files

    return decorate
