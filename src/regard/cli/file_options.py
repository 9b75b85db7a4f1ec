"""The options of the files that a verb writes, declared once: a verb takes all of them as one `Outputs`."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from regard.cli.options import Numbers, option, whole_numbers
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


def _options(
    figure: Annotated[Path | None, option("--figure")] = None,
    html: Annotated[Path | None, option("--html")] = None,
    html_with: Annotated[list[str] | None, option("--html-with")] = None,
    csv: Annotated[Path | None, option("--csv")] = None,
    parquet: Annotated[Path | None, option("--parquet")] = None,
    json_file: Annotated[Path | None, option("--json")] = None,
    save_file: Annotated[Path | None, option("--save")] = None,
    save_layers: Annotated[Numbers | None, option("--save-layers", True, whole_numbers)] = None,
    save_heads: Annotated[Numbers | None, option("--save-heads", True, whole_numbers)] = None,
    save_dtype: Annotated[str | None, option("--save-dtype", "the trace's own precision")] = None,
    save_attention_outputs: Annotated[bool, option("--save-attention-outputs")] = False,
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
