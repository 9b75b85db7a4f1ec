"""Define `regard lesson` and `regard article`: list the course's lessons or the four articles, or run one of them."""

import ast
import os
import re
import sys
import warnings
from collections.abc import Iterator
from itertools import dropwhile
from pathlib import Path
from runpy import run_path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from regard.cli.options import option
from regard.cli.outputs import consoles
from regard.cli.verb import Verb
from regard.errors import RegardError

if TYPE_CHECKING:
    from rich.console import Console

PACKAGE = Path(__file__).parents[1]
FOLDERS = PACKAGE / "lessons", PACKAGE.parents[1] / "docs" / "lessons"  # in a wheel and in a clone
ARTICLES = "one_sentence", "contextual_embeddings", "formula", "river_and_finance"  # in docs/articles
SECONDS = 20, 70, 20, 20, 20, 20, 30, 40, 20, 50, 20, 20  # approximate run time of each lesson on two cores
EXERCISES = "## Exercises"  # the heading of a lesson's exercises, which run without the cells above it
LINK = re.compile(r"\[([^]]+)\]\(([^)]+)\)")
FORMULA = re.compile(r"\$\$?([^$]+)\$?\$")
SYMBOLS = {
    "cdot": "·", "sum": "Σ", "pi": "π", "sigma": "σ", "omega": "ω", "infty": "∞", "ell": "loss", "dots": "…",
    "quad": "   ", "qquad": "   ", "left": "", "right": "", "log": "log", "sin": "sin", "cos": "cos",
}  # fmt: skip
SUPERSCRIPT = str.maketrans("0123456789TQKVO-+", "⁰¹²³⁴⁵⁶⁷⁸⁹ᵀQKVO⁻⁺")
Number = Annotated[
    str | None, typer.Argument(metavar="NUMBER", help="Lesson to run. Without a number, list all lessons.")
]
ArticleNumber = Annotated[
    str | None, typer.Argument(metavar="NUMBER", help="Article to run. Without a number, list all articles.")
]
Step = Annotated[bool, option("--step")]
Exercises = Annotated[bool, option("--exercises")]
Figures = Annotated[Path | None, option("--figures", "don't save them")]


class Cell(NamedTuple):
    """A cell of a lesson: markdown or code, with the number of its first line in the file."""

    code: bool
    content: str
    line: int


def lesson(number: Number = None, step: Step = False, exercises: Exercises = False, figures: Figures = None) -> None:
    """List the lessons of the course, or run a lesson and print its text, code and output in order."""
    files, out = lesson_files(), consoles()[0]
    if number is None and not (step or exercises or figures):
        list_lessons(files, out)
    elif number == "0":
        if step or exercises or figures:
            raise RegardError("lesson 0 is one file to read: it takes no options")
        _print_code((PACKAGE / "textbook.py").read_text("utf-8"), out)
    elif exercises and (step or figures):
        raise RegardError(f"--exercises doesn't run the lesson: leave {'--step' if step else '--figures'} out")
    elif exercises:
        run_exercises(_file_of_page("lesson", number, "--exercises", files), out)
    else:
        _run_page("lesson", number, files, out, step=step, figures=figures)


def article(number: ArticleNumber = None, step: Step = False, figures: Figures = None) -> None:
    """List the four articles, or run an article and compare each of its numbers with the computed one."""
    folder, out = lesson_files()[0].parents[1] / "articles", consoles()[0]
    files = [folder / f"{name}.py" for name in ARTICLES]
    if number is None and not (step or figures):
        for n, file in enumerate(files, 1):
            out.print(f"{n}  {file.read_text('utf-8').partition('# # ')[2].partition(chr(10))[0]}", markup=False)
        out.print("\nStart with regard article 1. Add --step to go piece by piece.", style="dim", markup=False)
    else:
        _run_page("article", number, files, out, step=step, figures=figures)


def _run_page(
    kind: str, number: str | None, files: list[Path], out: "Console", *, step: bool, figures: Path | None
) -> None:
    """Check the number and --figures, then run the lesson or article. kind: "lesson" or "article"."""
    file = _file_of_page(kind, number, "--step" if step else "--figures", files)
    try:  # check the folder before the lesson runs
        if figures is not None:
            figures.mkdir(parents=True, exist_ok=True)
            TemporaryDirectory(dir=figures).cleanup()
    except OSError as error:
        raise RegardError(f"--figures {str(figures)!r}: expected a folder: {error.strerror or error}") from error
    run_lesson(file, out, step=step, figures=figures)


def _file_of_page(kind: str, number: str | None, flag: str, files: list[Path]) -> Path:
    """Return the file of a lesson or article by its number. Raises RegardError if it doesn't exist."""
    if number is None:
        raise RegardError(f"{flag} needs the number of {'a lesson' if kind == 'lesson' else 'an article'}")
    if number not in [str(n) for n in range(1, len(files) + 1)]:
        first = 0 if kind == "lesson" else 1
        raise RegardError(f"{kind} {number!r}: there are {first} to {len(files)}, and regard {kind} lists them")
    if flag != "--figures" and (sys.stdin is None or sys.stdin.closed):
        raise RegardError(f"{flag}: standard input is closed, and {flag} reads from it")
    return files[int(number) - 1]


def lesson_files() -> list[Path]:
    """Return the lessons' files in order. Raises RegardError if they are missing."""
    for folder in FOLDERS:
        if folder.is_dir():
            return sorted(folder.glob("[0-9]*_*.py"), key=lambda file: int(file.stem.partition("_")[0]))
    raise RegardError(f"the lessons are not there: {FOLDERS[0]} is missing")


def list_lessons(files: list[Path], out: "Console") -> None:
    """Print a table of the lessons: number, title, requirements and approximate run time."""
    from rich.table import Table

    table = Table("lesson", "title", "needs", "about", box=None, pad_edge=False)
    table.add_row("0", "The whole system in one file", "nothing", "")
    for file, seconds in zip(files, SECONDS, strict=True):
        text = file.read_text(encoding="utf-8")
        number, _, title = text.partition("\n# # ")[2].partition("\n")[0].partition(". ")
        requirements = sorted({*re.findall(r"REGARD_LESSON_MODEL|regard fetch [\w-]+", text)})
        needs = ["the default model"] * ("regard.load()" in text) + ["scikit-learn"] * ("scikit-learn" in text)
        needs += [f"more with {' or '.join(requirements)}"] * bool(requirements)
        table.add_row(number, title, "; ".join(needs) or "nothing", f"{seconds} s")
    out.print(table)
    out.print("\nStart with regard lesson 1. Add --step to go piece by piece.", style="dim", markup=False)


def read_cells(text: str) -> Iterator[Cell]:
    """Yield the cells of a lesson's source in order, without empty cells."""
    line = 1
    for part in re.split(r"^(?=# %%)", text, flags=re.MULTILINE):
        marker, _, content = part.partition("\n")
        if content.strip():
            is_text = "markdown" in marker
            source = re.sub(r"^# ?", "", content, flags=re.MULTILINE) if is_text else content
            yield Cell(not is_text, source, line + 1)
        line += part.count("\n")


def run_lesson(file: Path, out: "Console", *, step: bool = False, figures: Path | None = None) -> None:
    """Print a lesson cell by cell, and run its code. step: wait for Enter before each code cell."""
    names = _namespace(file)
    with TemporaryDirectory() as temporary:
        os.environ["REGARD_OUT"] = str(figures or temporary)
        for cell in read_cells(file.read_text(encoding="utf-8")):
            if cell.content.startswith(EXERCISES):
                number = file.stem.partition("_")[0]
                out.print(f"Try the exercises: regard lesson {number} --exercises", markup=False)
                return
            if not cell.code:
                _print_text(cell.content, out)
                continue
            _print_code(cell.content, out)
            if step:
                out.print("Enter runs this, q leaves: ", style="dim", end="")
                line = sys.stdin.readline()
                if not line or line.strip().lower() == "q":
                    return
            result = run_cell(cell, str(file), names)
            if type(result).__name__ == "Picture":
                note = f"written to {result.file}" if figures else "--figures FOLDER keeps it"
                out.print(f"[picture] {result.shows} ({note})", style="dim", markup=False)
            elif type(result).__name__ == "Code":
                _print_code(repr(result), out)
            elif result is not None:
                out.print(result, markup=False)
            out.print()


def run_exercises(file: Path, out: "Console") -> None:
    """Ask for the answer to each exercise of a lesson until it is right or skipped.

    An answer is a Python expression, which can use names that the exercises' cells define.
    """
    names = _namespace(file)
    exercises = dropwhile(lambda c: not c.content.startswith(EXERCISES), read_cells(file.read_text(encoding="utf-8")))
    solutions = iter(run_path(str(file.parent / "solutions.py"))["SOLUTIONS"][file.stem.partition("_")[0]])
    for cell in exercises:
        if not cell.code:
            _print_text(cell.content, out)
            continue
        _print_code(cell.content, out)
        exercise = run_cell(cell, str(file), names)
        if type(exercise).__name__ != "Exercise":  # the cell defines names for the exercises
            continue
        right, solution = False, next(solutions)
        while not right:
            out.print("Your answer (Enter skips, ? shows one, q leaves): ", style="dim", end="")
            line = sys.stdin.readline().strip()
            if line == "q":
                return
            if not line:
                break
            if line == "?":
                out.print(f"One answer: {solution}", markup=False)
                continue
            try:
                answer = compile(line, "your answer", "eval")
            except SyntaxError:
                out.print("Not yet: an answer is one Python expression", markup=False)
                continue
            try:
                with warnings.catch_warnings(action="ignore"):
                    right, verdict = exercise.verdict(eval(answer, names))
            except Exception as error:  # the user's expression can raise anything
                verdict = f"Not yet: {type(error).__name__}: {error}"
            out.print(verdict, markup=False)
        out.print()


def _namespace(file: Path) -> dict[str, Any]:
    """Return the initial namespace of a lesson's code, and make the modules next to the lessons importable."""
    sys.path[:0] = [str(file.parent), str(file.parents[1] / "lessons")]
    return {"__name__": "lesson", "__file__": str(file)}


def _print_text(text: str, out: "Console") -> None:
    from rich.markdown import Markdown

    out.print(Markdown(FORMULA.sub(plain_formula, LINK.sub(_link_in_terminal, text))), end="\n\n")


def _print_code(code: str, out: "Console") -> None:
    from rich.syntax import Syntax
    from rich.text import Text

    colours = Syntax("", "python", theme="ansi_light", background_color="default")
    for line in colours.highlight(code.rstrip()).split("\n"):
        for part in line.wrap(out, max(20, out.width - 2)) or [line]:
            out.print(Text("│ ", "dim").append_text(part), overflow="ignore", no_wrap=True)


def run_cell(cell: Cell, file: str, names: dict[str, Any]) -> Any:
    """Run a cell's code in a namespace. Returns the value of its last statement if that is an expression."""
    tree = ast.increment_lineno(ast.parse(cell.content), cell.line - 1)  # errors show the file's line numbers
    *before, last = tree.body
    if not isinstance(last, ast.Expr):
        exec(compile(tree, file, "exec"), names)
        return None
    exec(compile(ast.Module(before, []), file, "exec"), names)
    return eval(compile(ast.Expression(last.value), file, "eval"), names)


def _link_in_terminal(link: "re.Match[str]") -> str:
    lesson = re.match(r"(?:\.\./lessons/)?(\d+)_\w+\.py", link[2])
    return f"{link[1]} (`regard lesson {lesson[1]}`)" if lesson else link[1]


def plain_formula(formula: "re.Match[str]") -> str:
    """Convert a TeX formula to text for a terminal, such as softmax(Q Kᵀ / √d_k) V."""
    text = formula[1].strip()
    while (simpler := re.sub(r"\\(?:mathrm|text)\{([^{}]*)\}", r"\1", text)) != text:
        text = simpler
    text = re.sub(r"\\sqrt\{([^{}]*(?:\{[^{}]*\})?[^{}]*)\}", r"√\1", text)
    text = re.sub(r"\\frac\{((?:[^{}]|\{[^{}]*\})*)\}\{((?:[^{}]|\{[^{}]*\})*)\}", r"\1 / \2", text)
    text = re.sub(r"\\([a-zA-Z]+)", lambda name: SYMBOLS.get(name[1], name[1]), text).replace("\\,", " ")
    text = re.sub(r"\^(?:([0-9T])|\{([0-9T+-]+)\})", lambda power: (power[1] or power[2]).translate(SUPERSCRIPT), text)
    text = re.sub(r"([_^])\{(\w+)\}", r"\1\2", text)
    text = re.sub(r"([_^])\{([^{}]*)\}", r"\1(\2)", text)
    return re.sub(r" +", " ", text).replace("_", r"\_").replace("*", r"\*")


LESSON = Verb(
    lesson, "List the lessons of the course, or run a lesson.", takes_dtype=False,
    heading="Learn and verify", examples=("lesson 4 --step", "lesson 4 --exercises"),
)  # fmt: skip
ARTICLE = Verb(
    article, "List the four articles on self-attention, or run an article.", takes_dtype=False,
    heading="Learn and verify", examples=("article", "article 1 --step"),
)  # fmt: skip
