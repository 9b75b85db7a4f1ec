"""`regard lesson`: the list, a lesson's cells in order, waiting for Enter, pictures, and what is refused."""

import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from drawings.exercise import Exercise
from regard.cli.main import main
from regard.course import lesson as verb
from regard.course.lesson import Cell, lesson_files, read_cells, run_cell, run_lesson
from regard.errors import RegardError
from tests.support import ROOT

ARTICLES = ROOT / "docs" / "articles"

LESSON = """# %% [markdown]
# # 1. A title
#
# What is **told**, and [more](2_more.py).

# %%
from drawings.kept import keep
from drawings.sheet import sheet

n = 2

# %%
print("n is", n)
n + 1

# %%
figure, axes = sheet(2.0, 1.0)
keep(figure, "empty.svg", "An empty sheet")
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REGARD_OUT", "none")  # set back when the test is done
    monkeypatch.setattr(sys, "path", [*sys.path])
    found = tmp_path / "1_title.py"
    found.write_text(LESSON, "utf-8")
    return found


def told(file: Path, capsys: pytest.CaptureFixture[str], **given: object) -> str:
    run_lesson(file, Console(width=100, color_system=None), **given)  # type: ignore[arg-type]
    return capsys.readouterr().out


def test_text_code_and_output_come_in_order(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [line.rstrip() for line in told(file, capsys).splitlines() if line.strip()]
    assert lines[0].strip() == "1. A title"
    assert lines[1] == "What is told, and more (regard lesson 2)."
    assert lines[-8:] == [
        "│ n = 2", '│ print("n is", n)', "│ n + 1", "n is 2", "3",
        "│ figure, axes = sheet(2.0, 1.0)", '│ keep(figure, "empty.svg", "An empty sheet")',
        "[picture] An empty sheet (--figures FOLDER keeps it)",
    ]  # fmt: skip


def test_pictures_are_kept_where_that_is_asked_for(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = file.parent / "new" / "pictures"
    assert f"written to {folder}/empty.svg" in told(file, capsys, figures=folder).replace("\n", "")
    assert [each.name for each in folder.iterdir()] == ["empty.svg"]


def test_a_step_waits_and_q_leaves(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n\nq\n"))
    shown = told(file, capsys, step=True)
    assert shown.count("Enter runs this, q leaves: ") == 3
    assert "n is 2" in shown
    assert "[picture]" not in shown
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    assert "n is 2" not in told(file, capsys, step=True)  # nobody is there
    for stdin in (sys.stdin, None):
        sys.stdin.close()
        monkeypatch.setattr(sys, "stdin", stdin)
        with pytest.raises(RegardError, match="--step: standard input is closed"):
            verb.lesson("1", step=True)


def test_an_error_names_the_line_of_the_file() -> None:
    found = list(read_cells("# %%\na = 1\n\n# %% [markdown]\n# Words.\n\n# %%\n\nassert a == 2\n"))
    assert [(each.code, each.line) for each in found] == [(True, 2), (False, 5), (True, 8)]
    names = {"a": 1}
    assert run_cell(Cell(True, "b = a\nb + 1", 1), "lesson.py", names) == 2
    with pytest.raises(AssertionError) as raised:
        run_cell(found[2], "lesson.py", names)
    assert raised.traceback[-1].lineno + 1 == 9


def test_the_list_names_each_lesson_and_what_it_needs(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["lesson"])
    assert left.value.code == 0
    shown = " ".join(capsys.readouterr().out.split())
    count = len(lesson_files())
    assert len(verb.SECONDS) == count
    assert f"runs in {min(verb.SECONDS)} to {max(verb.SECONDS)} seconds" in (ROOT / "docs" / "index.md").read_text(
        "utf-8"
    )
    for file in lesson_files():
        number, title = re.findall(r"^# # (\d+)\. (.+)$", file.read_text("utf-8"), re.M)[0]
        assert f"{number} {title.split()[0]}" in shown
    assert "4 Self-attention the default model 20 s" in shown  # what it needs is read off its file
    assert "7 A transformer that writes more with regard fetch smollm2" in shown
    assert "10 Words that paint scikit-learn 50 s" in shown


def test_the_page_shows_the_list_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    verb.list_lessons(lesson_files(), Console(width=80, color_system=None))
    shown = "\n".join(line.rstrip() for line in capsys.readouterr().out.splitlines())
    assert f"```text\n{shown}\n```" in (ROOT / "docs" / "commands" / "lesson.md").read_text("utf-8")


def test_lessons_of_a_wheel_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert lesson_files()[0].parent == ROOT / "docs" / "lessons"
    (tmp_path / "lessons").mkdir()
    (tmp_path / "lessons" / "1_first.py").write_text("", "utf-8")
    monkeypatch.setattr(verb, "FOLDERS", (tmp_path / "lessons", *verb.FOLDERS))
    assert [file.name for file in lesson_files()] == ["1_first.py"]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["99"], f"lesson '99': there are 0 to {len(lesson_files())}, and regard lesson lists them"),
        (["four"], f"lesson 'four': there are 0 to {len(lesson_files())}, and regard lesson lists them"),
        (["0", "--step"], "lesson 0 is one file to read: it takes no options"),
        (["4", "--step", "--exercises"], "--exercises doesn't run the lesson: leave --step out"),
        (["--step"], "--step needs the number of a lesson"),
        (["--exercises"], "--exercises needs the number of a lesson"),
        (["--figures", "f"], "--figures needs the number of a lesson"),
    ],
)
def test_bad_input_gets_one_line(given: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["lesson", *given])
    assert (left.value.code, capsys.readouterr().err) == (2, f"regard: error: {says}\n")


def test_without_lessons_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(verb, "FOLDERS", (tmp_path / "none",))
    with pytest.raises(SystemExit):
        main(["lesson", "1"])
    assert "the lessons are not there" in capsys.readouterr().err


@pytest.mark.long
def test_a_whole_lesson_runs(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "regard", "lesson", "5", "--figures", "kept"],
        cwd=tmp_path, env={**os.environ, "PYTHONUTF8": "1"}, capture_output=True, encoding="utf-8", check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "dessert  11.1466   2.2753   0.4917" in done.stdout
    text = (ROOT / "docs/lessons/5_queries_keys_values.py").read_text("utf-8")
    pictures = sorted(path.name for path in (tmp_path / "kept").iterdir())
    assert pictures == sorted(re.findall(r'keep\(\s*figure,\s*"([^"]+)"', text))
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_an_exercise_is_asked_until_it_is_right(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = lesson_files()[4]
    (first, *_) = verb.run_path(str(file.parent / "solutions.py"))["SOLUTIONS"]["5"]
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"[[1, 2]\n[[0, 0]] * 4\n?\n{first}\n"))
    verb.run_exercises(file, Console(width=100, color_system=None))
    shown = [line.partition("?")[2] for line in capsys.readouterr().out.splitlines() if line.startswith("Your answer")]
    said = [line.partition(": ")[2] for line in shown][:4]
    assert [line.partition(":")[0] for line in said] == ["Not yet", "Not yet", "One answer", "Right"]
    assert first in said[2]


@pytest.mark.long
@pytest.mark.parametrize("file", lesson_files(), ids=lambda file: file.stem)
def test_each_exercise_takes_its_answer_and_no_other(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(file.parent), *sys.path])
    solutions = verb.run_path(str(file.parent / "solutions.py"))["SOLUTIONS"][file.stem.partition("_")[0]]
    text = file.read_text("utf-8")
    marker = f"# {verb.EXERCISES}\n"
    assert text.count(marker) == 1
    names: dict[str, object] = {"__name__": "lesson", "__file__": str(file)}
    asked = read_cells("# %% [markdown]\n" + text.partition(marker)[2])
    found = [run_cell(cell, str(file), names) for cell in asked if cell.code]
    exercises = [cell for cell in found if isinstance(cell, Exercise)]
    assert len(exercises) == len(solutions) == 3
    for exercise, solution in zip(exercises, solutions, strict=True):
        assert repr(exercise) == "Not answered yet."
        assert exercise.verdict(None)[0] is False
        assert exercise.verdict(eval(solution, names))[0], exercise.verdict(eval(solution, names))[1]


@pytest.mark.long
@pytest.mark.parametrize("number", range(1, len(lesson_files()) + 1))
def test_the_command_gets_through_the_imports(number: int, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "regard", "lesson", str(number), "--step"]
    done = subprocess.run(
        command, cwd=tmp_path, input="\n", capture_output=True, encoding="utf-8", env={**os.environ, "PYTHONUTF8": "1"},
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Enter runs this") == 2  # the imports ran, the next cell was asked for


def test_articles_are_listed_and_run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("REGARD_OUT", "none")  # set back when the test is done
    for arguments, code in ((["article"], 0), (["article", "5"], 2), (["article", "4"], 0)):
        with pytest.raises(SystemExit) as left:
            main(arguments)
        assert left.value.code == code
        out, err = capsys.readouterr()
        if arguments == ["article"]:
            titles = [
                re.findall(r"^# # (.+)$", (ARTICLES / f"{name}.py").read_text("utf-8"), re.M)[0]
                for name in verb.ARTICLES
            ]
            assert out.splitlines()[:4] == [f"{n}  {title}" for n, title in enumerate(titles, 1)]
        elif code:
            assert "article '5': there are 1 to 4" in err
        else:
            assert "the same to 3 decimals: 9 of 9" in out
            assert "$" not in out


@pytest.mark.parametrize(
    ("formula", "plain"),
    [
        (r"$$ \mathrm{softmax}\left(\frac{Q K^T}{\sqrt{d_k}}\right) V $$", "softmax(Q Kᵀ / √d_k) V"),
        (r"$y_i = \sum_j w_{ij} v_j$", "y_i = Σ_j w_ij v_j"),
        (r"$2\pi \cdot 10000^{2i/d}$", "2π · 10000^(2i/d)"),
        (r"$e^{89}$", "e⁸⁹"),
    ],
)
def test_formulas_are_readable_in_a_terminal(formula: str, plain: str) -> None:
    assert verb.FORMULA.sub(verb.plain_formula, formula).replace("\\", "") == plain
