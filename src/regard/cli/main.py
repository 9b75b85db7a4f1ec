"""The command's entry: `regard VERB ...`. Bad input gets one line on stderr and exit code 2."""

import codecs
import difflib
import os
import signal
import sys
import time
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from regard import __version__
from regard.cli import start
from regard.cli.asking import verb_of_question
from regard.cli.help import OLD_NAMES, Rows, VerbWithSections, epilog, examples_of, rows_of_options, write_sections
from regard.cli.verbs.check import check
from regard.cli.verbs.embed import embed
from regard.cli.verbs.fetch import fetch
from regard.cli.verbs.generate import generate, translate
from regard.cli.verbs.heads import heads, steps
from regard.cli.verbs.lesson import article, lesson
from regard.cli.verbs.map import map_file
from regard.cli.verbs.paint import paint
from regard.cli.verbs.run import run
from regard.cli.verbs.search import find, senses, shift
from regard.cli.verbs.see import see
from regard.cli.verbs.serve import serve
from regard.cli.verbs.tokens import tokens
from regard.cli.verbs.train import evolve, train
from regard.cli.verbs.why import why
from regard.errors import RegardError
from regard.questions import QUESTIONS

USAGE_ERROR: Any = typer.BadParameter.__mro__[1]  # click's UsageError, wherever the installed typer keeps it

# Verbs that load no model, or one whose arithmetic is their own.
WITHOUT_DTYPE = (
    "tokens", "run", "train", "paint", "evolve", "embed", "find", "senses", "shift", "lesson", "article", "fetch"
)  # fmt: skip
LONGEST = 60  # characters of a text that are said again
IN_ASCII = str.maketrans(  # for encodings without these characters; darker characters are higher bars
    dict(zip("▁▂▃▄▅▆▇█▏▎▍▌▋▊▉▒•“”‘’×–—−·★◆○●│␣⍽\xa0", "..:-+*##...####=*\"\"''x---.*#oo|__ ", strict=True))
    | {"…": "...", "→": "->", "←": "<-", "±": "+-", "√": "sqrt ", "↵": "\\n", "π": "pi", "÷": "/"}
)


def readable(error: UnicodeError) -> tuple[str, int]:
    """Replace characters that the encoding lacks: drawn ones by similar ASCII, others by their code."""
    assert isinstance(error, UnicodeEncodeError)
    lacking = error.object[error.start : error.end].translate(IN_ASCII)
    return lacking.encode("ascii", "backslashreplace").decode(), error.end


codecs.register_error("readable", readable)


def suggested_verb(given: str, verbs: list[str]) -> str:
    """What may have been meant by something that is no verb."""
    near = difflib.get_close_matches(given.lower(), verbs, n=1)
    if near:
        return f"Did you mean {near[0]!r}?"
    simple = len(given) <= LONGEST and not set(given) & set('"\\$`!\n')
    text = f'"{given}"' if simple else "TEXT"
    known = "" if " " in given else f"There are {', '.join(verbs)}. "
    return f"{known}To look at a text: regard see {text}"


def with_example(error: Any) -> str:
    """Say what is wrong with a call, with an example of the verb where an argument is missing."""
    verb = getattr(error.ctx, "info_name", "")
    if getattr(error, "option_name", "") == "--dtype" and verb not in WITHOUT_DTYPE:
        return f"--dtype stands before the verb: regard --dtype bfloat16 {verb} ..."
    examples = examples_of(error.ctx.info_name or "") if type(error).__name__ == "MissingParameter" else []
    return f"{error.format_message().rstrip('.')}: {examples[0]}" if examples else error.format_message()


class Verbs(TyperGroup):
    """The command's verbs in the order they were added, with a suggestion where one is misspelt or left out."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """The verb that the first argument names."""
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            raise RegardError(f"No such command {args[0]!r}. {suggested_verb(args[0], list(self.commands))}")
        if args and args[0] in WITHOUT_DTYPE and ctx.params.get("dtype", "auto") != "auto":
            raise RegardError(f"--dtype: regard {args[0]} loads no model in another dtype: leave it out")
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the verbs below the headings of `HEADINGS`, then the options."""
        sections: dict[str, Rows] = {}
        for name, verb in self.commands.items():
            heading = HEADINGS.get(name) or list(sections)[-1]
            sections.setdefault(heading, []).append((name, verb.short_help or ""))
        write_sections(formatter, sections | {"Options": rows_of_options(self.get_params(ctx), ctx)})


app = typer.Typer(
    name="regard",
    help="Show what self-attention does inside transformer models, exactly.",
    cls=Verbs,
    epilog="\b\nExamples:\n"
    '  regard see "A man on a river bank." "Money in a bank." --word bank\n'
    "  regard see -h   (options and examples of a command)",
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
        "token_normalize_func": lambda name: OLD_NAMES.get(name, name),
    },
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
BY_HAND = ("heads", "score")  # questions with a verb in `cli/verbs`: `regard heads --store`, `regard why --edge`
VERBS: tuple[tuple[str, Any, str], ...] = (
    ("see", see, "Show what attention does to a word, or to all tokens of texts."),
    ("heads", heads, QUESTIONS["heads"][0]),
    ("map", map_file, "Show a layer's whole attention matrix for a long text."),
    ("steps", steps, "Show all numbers of a word in a head, step by step."),
    ("tokens", tokens, "Show the tokens of texts, with ids and counts."),
    ("serve", serve, "Open an interactive page to type texts and explore them."),
    ("run", run, "Run a Python program and show the attention it computed."),
    ("why", why, "Rank the tokens and heads that affect a word, by ablation."),
    *((name, verb_of_question(name), short) for name, (short, _) in QUESTIONS.items() if name not in BY_HAND),
    ("generate", generate, "Continue a text with a causal model, optionally steered."),
    ("translate", translate, "Translate texts and show how the words align."),
    ("paint", paint, "Generate an image and show where it attends to each word."),
    ("train", train, "Train a small transformer on texts, pairs or letters."),
    ("evolve", evolve, "Show how attention changed during training."),
    ("embed", embed, "Build an embedding index of many texts."),
    ("find", find, "Find a word in an index: in context, or by meaning."),
    ("senses", senses, "Find the senses of a word in an index."),
    ("shift", shift, "Compare a word's meaning between two indexes or periods."),
    ("lesson", lesson, "List the lessons of the course, or run a lesson."),
    ("article", article, "List the four articles on self-attention, or run an article."),
    ("fetch", fetch, "Download the real models that the course uses."),
    ("check", check, "Verify regard's numbers against the model's own code."),
)
HEADINGS = {  # by the first verb below each
    "see": "Look at attention", "why": "Find causes", "generate": "Generate", "train": "Train",
    "embed": "Search a corpus", "lesson": "Learn and verify",
}  # fmt: skip
for name, verb, short in VERBS:
    # options after the script are the script's own
    settings = {"allow_interspersed_args": False} if name == "run" else None
    app.command(name, short_help=short, epilog=epilog(name), cls=VerbWithSections, context_settings=settings)(verb)


def print_version(asked: bool) -> bool:
    """Print the version and stop, where it was asked for."""
    if asked:
        typer.echo(f"regard {__version__}")
        raise typer.Exit
    return asked


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
        raise RegardError(f"--dtype: given {dtype!r}, needs {', '.join(start.DTYPES)}")
    start.dtype[:] = [dtype]


def main(arguments: list[str] | None = None) -> None:
    """Run the command and leave with its exit code: 0, 2 for bad input, 130 for Ctrl-C. Without arguments: its help."""
    given = sys.argv[1:] if arguments is None else arguments
    for name in ("stdout", "stderr"):
        if getattr(getattr(sys, name), "closed", getattr(sys, name) is None):  # >&-: nobody reads what is written
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="readable")
    interrupted: list[int] = []

    def interrupt(number: int, _frame: Any) -> None:
        interrupted.append(number)  # an import that is broken off may turn the interrupt into an error of its own
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    start.began[:] = [time.perf_counter()]
    try:
        code = app(given or ["--help"], standalone_mode=False)
    except RegardError as error:
        _fail_in_one_line(str(error))
    except USAGE_ERROR as error:
        _fail_in_one_line(with_example(error))
    except (typer.Abort, KeyboardInterrupt):
        sys.exit(130)
    except BrokenPipeError:
        _leave_closed_pipe()
    except OSError as error:
        if interrupted:
            sys.exit(130)
        _fail_in_one_line(f"cannot write the output: {error.strerror or error}")
    except Exception:
        if interrupted:
            sys.exit(130)
        raise
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _leave_closed_pipe()
    except OSError as error:
        _fail_in_one_line(f"cannot write the output: {error.strerror or error}")
    sys.exit(code if isinstance(code, int) else 0)


def command() -> NoReturn:
    """Run the command as a process of its own, of which nothing is left when it is done."""
    start.own_process(main)


def _leave_closed_pipe() -> None:
    """Leave quietly: the reader went away (| head), there is nothing more to say, to nobody."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(1)


def _fail_in_one_line(message: str) -> None:
    line = " ".join(message.split())
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in line)
    print(f"regard: error: {shown}", file=sys.stderr)
    try:
        sys.stdout.flush()
    except OSError:  # what could not be written cannot be written at exit either
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(2)
