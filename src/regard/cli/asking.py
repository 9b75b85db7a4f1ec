"""Make a verb of a question: its options are what may be asked, with texts, a model and files to write."""

import inspect
from collections.abc import Callable
from dataclasses import Field, fields
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from regard.cli import options
from regard.cli.options import number
from regard.cli.outputs import NOTHING, Outputs, writes
from regard.cli.source import Source, traced
from regard.cli.telling import tell, waiting
from regard.errors import RegardError
from regard.questions import QUESTIONS

if TYPE_CHECKING:
    from regard.display.asked import Asked

NAMED = 10  # entries of each list
PARSERS: dict[Any, Any] = {int: options.whole_number_option_value, int | None: options.whole_number_option_value}


def verb_of_question(name: str) -> Callable[..., None]:
    """Make the verb of a question, one of `QUESTIONS`."""
    module, _, kind = QUESTIONS[name][1].partition(":")
    asked = getattr(import_module(module), kind)

    def verb(**given: Any) -> None:
        own = {each.name: given.pop(each.name) for each in fields(asked)}
        several = {each.name: tuple(own[each.name] or ()) for each in fields(asked) if isinstance(each.default, tuple)}
        ask(name, asked(**own | several), **given)

    known = dict(inspect.signature(ask).parameters)
    metavar, told = asked.texts
    texts: Any = Annotated[list[str] | None, typer.Argument(metavar=metavar, help=told)]
    known["texts"] = known["texts"].replace(annotation=texts)
    if not asked.ranked:
        del known["top"]
    if not asked.pairs:
        del known["seconds"]
    shared = [each for each in known.values() if each.kind is inspect.Parameter.KEYWORD_ONLY]
    hints = get_type_hints(asked)
    declared = [_field_as_typer_parameter(each, hints[each.name]) for each in fields(asked)]
    verb.__signature__ = inspect.Signature([*shared[:2], *declared, *shared[2:]])  # type: ignore[attr-defined]
    verb.__doc__ = asked.__doc__
    return verb


def _field_as_typer_parameter(each: "Field[Any]", kind: Any) -> inspect.Parameter:
    """A field as a parameter that typer reads."""
    told = {"help": each.metadata["help"], "metavar": each.metadata["metavar"]}
    told["show_default"], default = each.metadata["shown"] or True, each.default
    if kind == tuple[str, ...]:
        kind, default = list[str] | None, None
    if kind == tuple[int, ...] | None:
        kind, told = options.Numbers | None, told | {"parser": options.whole_numbers}
    elif kind in PARSERS:
        told["parser"] = PARSERS[kind]
    name = ("--" + each.name.replace("_", "-"),) if kind is bool else ()
    annotation: Any = Annotated[kind, typer.Option(*name, **told)]
    return inspect.Parameter(each.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


@writes("figure", "html", "csv", "json")
def ask(
    name: str,
    asked: "Asked",
    *,
    texts: options.Texts = None,
    targets: options.Targets = None,
    seconds: options.Seconds = None,
    model: options.ModelName = None,
    top: Annotated[int | None, number("--top", str(NAMED), least=1)] = None,
    outputs: Outputs = NOTHING,
) -> None:
    """Ask a question of texts; print the answer, and write it to the files that were asked for."""
    source = Source(texts or [], targets or [], model, second=seconds or [])
    source.check(name, asked.texts[0])
    asked.check(len(source.texts), len(source.targets), called=command_option_name)
    if top is not None and asked.grid:
        raise RegardError("--top: the answer is a grid, which is shown whole: leave it out")
    with waiting(outputs, "Loading the model and tracing …") as status:
        done = traced(source)

        def progress(count: int, every: int) -> None:
            status.update(f"Answering … {count} of {every}")

        found = asked.answer(done.model, done.traces, progress)
    tell(found, outputs, None if asked.grid else top or NAMED, done.written_first())


def command_option_name(field: str) -> str:
    """What the command calls a field."""
    return "--target-text" if field == "target" else "--" + field.replace("_", "-")
