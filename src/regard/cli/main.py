"""Run the command `regard VERB ...`. Bad input prints one line on stderr and exits with code 2."""

import codecs
import difflib
import os
import signal
import sys
import time
from collections.abc import Iterable
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from regard import plugins
from regard.cli import start
from regard.cli.help import Rows, VerbWithSections, rows_of_options, write_sections
from regard.cli.verb import Verb, verb_of_question
from regard.display.query import Query
from regard.errors import RegardError
from regard.version import __version__

USAGE_ERROR: Any = typer.BadParameter.__mro__[1]  # click's UsageError; its module depends on typer's version

MAX_REPEATED = 60  # maximum characters of a wrong command that the error suggests as a text
IN_ASCII = str.maketrans(  # for encodings without these characters. Darker characters mean higher bars
    dict(zip("▁▂▃▄▅▆▇█▏▎▍▌▋▊▉▒•“”‘’×–—−·★◆○●│␣⍽\xa0", "..:-+*##...####=*\"\"''x---.*#oo|__ ", strict=True))
    | {"…": "...", "→": "->", "←": "<-", "±": "+-", "√": "sqrt ", "↵": "\\n", "π": "pi", "÷": "/"}
)


def replace_unencodable(error: UnicodeError) -> tuple[str, int]:
    """Replace characters that an encoding lacks by ASCII, as a codec error handler. Also returns the next position."""
    assert isinstance(error, UnicodeEncodeError)
    lacking = error.object[error.start : error.end].translate(IN_ASCII)
    return lacking.encode("ascii", "backslashreplace").decode(), error.end


codecs.register_error("readable", replace_unencodable)


def usage_message(error: Any) -> str:
    """Return the message of a usage error, with an example of the verb if an argument is missing."""
    verb = getattr(error.ctx, "info_name", "")
    if getattr(error, "option_name", "") == "--dtype" and verb in VERBS and VERBS[verb].takes_dtype:
        return f"--dtype stands before the verb: regard --dtype bfloat16 {verb} ..."
    examples = VERBS[verb].examples if type(error).__name__ == "MissingParameter" and verb in VERBS else ()
    return f"{error.format_message().rstrip('.')}: regard {examples[0]}" if examples else error.format_message()


class Verbs(TyperGroup):
    """The command `regard`. Errors suggest a verb if it is misspelt or missing."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Return the verb named by the first argument. Raises RegardError with a suggestion if there is none."""
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            if args[0] in plugins.OURS[plugins.QUESTIONS]:
                plugins.our(plugins.QUESTIONS, args[0])  # raises an error if the verb's part is missing
            matches = difflib.get_close_matches(args[0].lower(), self.commands, n=1)
            simple = len(args[0]) <= MAX_REPEATED and not set(args[0]) & set('"\\$`!\n')
            listing = "" if " " in args[0] else f"There are {', '.join(self.commands)}. "
            hint = f"{listing}To look at a text: regard see " + (f'"{args[0]}"' if simple else "TEXT")
            hint = f"Did you mean {matches[0]!r}?" if matches else hint
            raise RegardError(f"No such command {args[0]!r}. {hint}")
        if args and args[0] in VERBS and not VERBS[args[0]].takes_dtype and ctx.params.get("dtype", "auto") != "auto":
            raise RegardError(f"--dtype: regard {args[0]} loads no model in another dtype: leave it out")
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the verbs to the help under their headings, then the options."""
        sections: dict[str, Rows] = {}
        for name in self.commands:
            sections.setdefault(VERBS[name].heading, []).append((name, VERBS[name].summary))
        write_sections(formatter, sections | {"Options": rows_of_options(self.get_params(ctx), ctx)})


app = typer.Typer(
    name="regard",
    help="Show what self-attention does inside transformer models, exactly.",
    cls=Verbs,
    epilog="\b\nExamples:\n"
    '  regard see "A man on a river bank." "Money in a bank." --word bank\n'
    "  regard see -h   (options and examples of a command)",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
NAMES = tuple(plugins.OURS[plugins.QUESTIONS])  # in the order of the help
VERBS: dict[str, Verb] = {}


def as_verb(name: str, entry: Any) -> Verb:
    """Return the `Verb` of a registered entry, which is a `Verb` or a question's `Query` class."""
    if isinstance(entry, Verb):
        return entry
    if not (isinstance(entry, type) and issubclass(entry, Query)):
        raise TypeError(f"needs a Query or a Verb, not {entry!r:.60}")
    return Verb(verb_of_question(name, entry), entry.summary, entry.examples, entry.takes_dtype, entry.heading)


def add_verb(name: str, verb: Verb) -> None:
    """Add a verb to the command `regard`, with its examples below its options."""
    VERBS[name] = verb
    # options after the script are for the script
    settings = {"allow_interspersed_args": False} if name == "run" else None
    text = "\n".join(("\b", "Examples:", *(f"  regard {example}" for example in verb.examples)))  # \b keeps line breaks
    app.command(name, short_help=verb.summary, epilog=text, cls=VerbWithSections, context_settings=settings)(verb.run)


def verb_of_plugin(name: str, entry: Any) -> Verb:
    """Return the `Verb` of another package's entry. Raises an error of any type if typer can't handle it."""
    verb, alone = as_verb(name, entry), typer.Typer()
    alone.command()(verb.run)
    typer.main.get_command(alone)
    return verb


def load_verbs(names: Iterable[str] = NAMES) -> typer.Typer:
    """Import and add the verbs with these names, except those of missing parts, and return the whole command."""
    missing = [name for name in names if name not in VERBS]
    for name, entry in plugins.ours(plugins.QUESTIONS, missing).items() if missing else ():
        add_verb(name, as_verb(name, entry))
    order = {name: position for position, name in enumerate(NAMES)}
    app.registered_commands.sort(key=lambda verb: order.get(verb.name or "", len(order)))
    return app


def print_version(requested: bool) -> bool:
    """Print the version and exit if `--version` was given."""
    if requested:
        typer.echo(f"regard {__version__}")
        raise typer.Exit
    return requested


@app.callback()
def regard(
    dtype: Annotated[
        str,
        typer.Option(
            metavar="auto|float32|bfloat16|float16",
            help="Load models in this dtype. auto keeps weights as stored and computes in float32.",
        ),
    ] = "auto",
    version: Annotated[
        bool, typer.Option("--version", callback=print_version, help="Print the version and exit.", is_eager=True)
    ] = False,
) -> None:
    """Show what self-attention does inside transformer models, exactly."""
    if dtype not in start.DTYPES:
        raise RegardError(f"--dtype: got {dtype!r}, expected one of {', '.join(start.DTYPES)}")
    start.dtype[:] = [dtype]


def main(arguments: list[str] | None = None) -> None:
    """Run the command, or print its help without arguments. Exits with 0, 2 for bad input, or 130 for Ctrl-C."""
    words = sys.argv[1:] if arguments is None else arguments
    for name in ("stdout", "stderr"):
        if getattr(getattr(sys, name), "closed", getattr(sys, name) is None):  # the shell closed it (>&-)
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="readable")
    interrupted: list[int] = []

    def interrupt(number: int, _frame: Any) -> None:
        interrupted.append(number)  # an import may replace KeyboardInterrupt by another error
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    start.began[:] = [time.perf_counter()]
    load_verbs(words[:1] if words and words[0] in NAMES else NAMES)
    if not words or words[0] not in NAMES:  # other names may be plug-ins, which take time to read
        for name, verb in plugins.others(plugins.QUESTIONS, verb_of_plugin).items():
            if name not in VERBS:
                add_verb(name, verb)
    try:
        code = app(words or ["--help"], standalone_mode=False)
        sys.stdout.flush()
    except RegardError as error:
        _fail_in_one_line(str(error))
    except USAGE_ERROR as error:
        _fail_in_one_line(usage_message(error))
    except (typer.Abort, KeyboardInterrupt):
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader closed the pipe (| head)
        sys.exit(1)
    except OSError as error:
        if interrupted:
            sys.exit(130)
        _fail_in_one_line(f"cannot write the output: {error.strerror or error}")
    except Exception:
        if interrupted:
            sys.exit(130)
        raise
    sys.exit(code if isinstance(code, int) else 0)


def command() -> NoReturn:
    """Run the command as the console script. The process ends with it."""
    start.own_process(main)


def _fail_in_one_line(message: str) -> None:
    """Print an error as one line on standard error, and exit with code 2."""
    line = " ".join(message.split())
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in line)
    print(f"regard: error: {shown}", file=sys.stderr)
    try:
        sys.stdout.flush()
    except OSError:  # otherwise Python would try again to write it at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(2)
