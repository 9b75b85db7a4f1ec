"""Make a verb from a question's `Query`: its fields become options, in addition to texts, model and output files."""

import shlex
import sys
from collections.abc import Callable
from dataclasses import Field, dataclass, fields, replace
from inspect import Parameter, Signature
from os.path import isfile
from typing import Annotated, Any, get_type_hints

import typer
from rich.text import Text

from regard.cli import options, start
from regard.cli.help import OPTIONS
from regard.cli.outputs import NOTHING, PARAMETER, Outputs, report, waiting, writes
from regard.display.query import Query, option_name
from regard.errors import RegardError
from regard.models.source import Source
from regard.text.quoting import quoted, visible

INPUTS: dict[str, Any] = {  # inputs of verbs, which are fields of `Source`
    "targets": options.Targets, "seconds": options.Seconds, "model": options.ModelName, "window": options.Window,
    "stride": options.Stride, "open_file": options.OpenFile, "images": options.Images, "chat": options.Chat,
}  # fmt: skip


@dataclass(frozen=True)
class Verb:
    """A command of `regard`.

    run: a function with typer's arguments and options. summary: its line in the list of commands, below a heading.
    examples: example calls, shown below its options. takes_dtype: whether `regard --dtype` applies to it.
    """

    run: Callable[..., None]
    summary: str
    examples: tuple[str, ...] = ()
    takes_dtype: bool = True
    heading: str = Query.heading


def verb_of_question(name: str, kind: type[Query]) -> Callable[..., None]:
    """Return the function of a question's verb, whose options are the fields of its `Query` class."""
    argument, hints = typer.Argument(metavar=kind.texts[0], help=kind.texts[1]), get_type_hints(kind)
    texts: Any = Annotated[str | None, argument] if kind.single else Annotated[list[str] | None, argument]
    inputs = {"texts": texts} | {option: INPUTS[option] for option in kind.inputs}
    if kind.needs_model:
        inputs["model"] = options.NeededModel
    parameters = [keyword_parameter(option, annotation) for option, annotation in inputs.items()]
    parameters += [option_of_field(field, hints[field.name]) for field in fields(kind)]
    if kind.full:
        parameters.append(keyword_parameter("everything", options.All, False))
    signature = Signature([*parameters, keyword_parameter(PARAMETER, Outputs, NOTHING)])

    def verb(**arguments: Any) -> None:
        call = signature.bind(**arguments)
        call.apply_defaults()
        values = call.arguments
        source_args = {option: values[option] for option in inputs if values[option] is not None}
        if isinstance(source_args.get("texts"), str):
            source_args["texts"] = [source_args["texts"]]
        if "-" in source_args.get("texts", ()) and kind.texts[0] != "FILE":
            source_args["texts"] = [read_standard_input() if text == "-" else text for text in source_args["texts"]]
        settings = {field.name: values[field.name] for field in fields(kind)}
        settings |= {field.name: tuple(settings[field.name] or ()) for field in fields(kind) if field.default == ()}
        source = Source(**source_args, load=start.load_model)
        ask(name, kind(**settings), source, values[PARAMETER], values.get("everything"))

    verb.__signature__, verb.__doc__ = signature, kind.__doc__  # type: ignore[attr-defined]
    return writes(*kind.files)(verb)


def read_standard_input() -> str:
    """Read a text from standard input, without line breaks at its end. Raises RegardError if it isn't UTF-8."""
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise RegardError(f"-: standard input is not UTF-8 ({error.reason} at byte {error.start})") from None


def keyword_parameter(name: str, annotation: Any, default: Any = None) -> Parameter:
    """Return a keyword parameter of a verb's signature."""
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def option_of_field(field: "Field[Any]", kind: Any) -> Parameter:
    """Return the verb's parameter for an option of a query. field, kind: the query's field and its type."""
    metadata, name, default = field.metadata, option_name(field.name), field.default
    metavar, text = OPTIONS.get(name, (None, ""))
    settings: dict[str, Any] = {"help": metadata["help"] or text, "metavar": metadata["metavar"] or metavar}
    numbers = kind in (tuple[int, ...], tuple[int, ...] | None)
    settings |= {"show_default": metadata["shown"] or True, "parser": options.whole_numbers if numbers else None}
    if kind == tuple[str, ...]:
        kind, default = list[str] | None, None
    elif kind == tuple[int, ...] | None:
        kind = options.Numbers | None
    return keyword_parameter(field.name, Annotated[kind, typer.Option(name, **settings)], default)


def ask(name: str, query: Query, source: Source, outputs: Outputs, everything: bool | None = None) -> None:
    """Run a query on its texts, print the answer, and write the requested files."""
    if query.needs_model and source.model is None:
        source.need_texts(name, query.texts[0])
        raise RegardError(f"--model is needed: {query.needs_model}")
    query.check_source(source, name, outputs)
    with waiting(outputs, "Loading and tracing …") as status:
        answer = query.run(source, lambda done, total: status.update(f"Answering … {done / total:.0%}"))
    if outputs.shape != "slide":
        answer = replace(answer, shape=outputs.shape)  # type: ignore[call-arg]
    if outputs.save.file is not None and outputs.save.layers is None:
        outputs = replace(outputs, save=replace(outputs.save, layers=answer.layers()))  # type: ignore[attr-defined]
    first = []
    if source.written and not query.names_targets:
        first.append(Text(f"The model wrote the target itself: {visible(source.written)}\n", style="dim"))
    for text in source.texts if query.texts[0] != "FILE" else ():
        if isfile(text):
            call = f"- < {shlex.quote(text)}" if len(source.texts) == 1 else f'"$(cat {shlex.quote(text)})"'
            hint = f"{quoted(text)} was read as a text. To read the file: regard {name} {call}"
            first.append(Text(visible(hint) + "\n", style="dim"))
    traces: Any = [getattr(trace, "trace", trace) for trace in getattr(answer, "traces", ())]
    if query.saved_alone and len(traces) == 1:
        (traces,) = traces
    report(answer, outputs, query.listed(answer, full=bool(everything)), first, everything=everything, traces=traces)
