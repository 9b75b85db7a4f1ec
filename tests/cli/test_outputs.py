"""The files that a verb writes, checked before and written after its work."""

import csv
import inspect
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest
import typer

import regard
from regard.cli.main import load_verbs, main
from regard.cli.outputs import NOTHING, Outputs, PageFile, TraceFile, escape_formula, write_csv, write_parquet, writes
from regard.errors import RegardError
from regard.files import write_json
from regard.models.model import Model
from regard.nn.folder import save_model
from regard.nn.transformer import Transformer
from regard.questions.map.whole import matrix
from regard.trace.trace import Trace
from regard.web import html_file
from regard.web.page import Page
from tests.support.own_models import opened, pair
from tests.support.web_pages import Read, build_nothing

COMMANDS: dict[str, Any] = typer.main.get_command(load_verbs()).commands  # type: ignore[attr-defined]
OPTIONS = ["--html", "--html-with"]
Command = Callable[..., subprocess.CompletedProcess[str]]
TEXT = "A man is fishing on a river bank."
ROWS = [
    {"left": "=HYPERLINK(1)", "n": -3, "share": -0.5, "x": None},
    {"left": 'a, "b"\nc', "n": 2, "share": 0.25, "x": None, "metadata.y": "@sum"},
]


@pytest.mark.parametrize(
    ("outputs", "says"),
    [
        (
            Outputs(figure=Path("a.gif")),
            "--figure: cannot write 'a.gif', but the file name must end in .pdf or .png or .svg",
        ),
        (Outputs(json=Path("a.txt")), "--json: cannot write 'a.txt'"),
        (Outputs(save=TraceFile(Path("a.pt"))), "--save: cannot write 'a.pt'"),
        (Outputs(save=TraceFile(layers=[0])), "--save-layers needs --save"),
        (Outputs(save=TraceFile(dtype="float16")), "--save-dtype needs --save"),
        (Outputs(save=TraceFile(attention_outputs=True)), "--save-attention-outputs needs --save"),
        (Outputs(save=TraceFile(Path("a.safetensors"), dtype="int8")), "dtype: got 'int8'"),
    ],
)
def test_what_is_refused(outputs: Outputs, says: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RegardError, match=says):
        outputs.check()
    assert list(tmp_path.iterdir()) == []


def test_traces_are_written_first_for_they_may_refuse(bank, tmp_path: Path) -> None:
    drawn: list[Path] = []

    def draw(file: Path) -> list[str]:
        assert (tmp_path / "a.safetensors").exists()
        drawn.append(file)
        return ["a note"]

    def write(file: Path) -> None:
        write_json({"format": "regard see"}, file, indent=1)

    outputs = Outputs(tmp_path / "a.png", json=tmp_path / "a.json", save=TraceFile(tmp_path / "a.safetensors"))
    outputs.check()
    answer = SimpleNamespace(draw=draw, to_json=write)
    assert outputs.write(answer, list(bank)) == ["a note"]
    assert drawn == [tmp_path / "a.png"]
    assert (tmp_path / "a.json").read_text() == '{\n "format": "regard see"\n}\n'
    assert [trace.text for trace in regard.open(tmp_path / "a.safetensors")] == [trace.text for trace in bank]
    refusing = Outputs(tmp_path / "b.png", save=TraceFile(tmp_path / "b.safetensors", layers=[9]))
    with pytest.raises(RegardError, match="layer 9"):
        refusing.write(answer, list(bank))
    assert drawn == [tmp_path / "a.png"]


def test_nothing_asked_for_is_nothing_written() -> None:
    assert Outputs().files == (None,) * 6
    assert Outputs().write(object(), object()) == []


def test_every_file_is_written_and_none_that_was_not_asked_for(tmp_path: Path) -> None:
    files = Outputs(
        tmp_path / "a.png", csv=tmp_path / "a.csv", parquet=tmp_path / "a.parquet", json=tmp_path / "a.json"
    )
    files.check()
    files.write(
        SimpleNamespace(
            rows=lambda: [{"a": 1}],
            to_json=lambda file: file.write_text("{}"),
            draw=lambda file: [str(file.write_bytes(b"c"))],
        )
    )
    assert [file.name for file in files.files if file and file.is_file()] == ["a.png", "a.csv", "a.parquet", "a.json"]


def test_a_map_is_written_on_one_line(bank: list[Trace], tmp_path: Path) -> None:
    Outputs(json=tmp_path / "a.json").write(matrix(bank[0], 1))
    written = (tmp_path / "a.json").read_text(encoding="utf-8")
    assert written.count("\n") == 1
    assert json.loads(written)["format"] == "regard map"


def test_a_page_that_refuses_leaves_nothing_written(bank: Any, tmp_path: Path, monkeypatch: Any) -> None:
    build_nothing(tmp_path / "built", monkeypatch)

    def refused(_: Any) -> Page:
        raise RegardError("too many")

    saved = TraceFile(tmp_path / "a.safetensors")
    files = Outputs(csv=tmp_path / "a.csv", save=saved, html=PageFile(tmp_path / "a.html"))
    files.check()
    with pytest.raises(RegardError, match="too many"):
        files.write(SimpleNamespace(page=refused), list(bank))
    assert [each for each in files.files if each and each.exists()] == []
    files.write(SimpleNamespace(rows=lambda: [{"a": 1}], page=lambda _: Page("What was found")), list(bank))
    assert Read(tmp_path / "a.html").data["title"] == "What was found"
    monkeypatch.setattr(html_file, "BUILT", tmp_path)
    with pytest.raises(RegardError, match="the page is not built: run make page"):
        files.check()


def test_a_wrong_ending_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match=r"--parquet: cannot write .*must end in \.parquet"):
        Outputs(parquet=tmp_path / "a.csv").check()
    with pytest.raises(RegardError, match=r"--html: cannot write .*must end in \.html"):
        Outputs(html=PageFile(tmp_path / "a.htm")).check()


@pytest.mark.parametrize("verb", ["see", "why", "map", "steps", "generate", "translate", "evolve"])
def test_verbs_that_write_a_page_have_its_options_side_by_side(verb: str) -> None:
    names = [each.opts[0] for each in COMMANDS[verb].params]
    at = names.index("--html")
    assert names[at : at + 2] == OPTIONS


def test_a_verb_takes_them_as_one() -> None:
    taken = []

    @writes("figure", "html of traces")
    def verb(text: str, outputs: Outputs = NOTHING, last: bool = False) -> None:
        taken.append((text, outputs, last))

    file = Path("a.html")
    verb("a", html=file, html_with=["layers=1,2", "steps"], last=True)
    offered = Outputs(html=PageFile(file, (1, 2), True), offered=("figure", "html"))
    assert taken == [("a", offered, True)]
    own = inspect.signature(verb).parameters
    assert list(own) == ["text", "figure", "html", "html_with", "last"]


@pytest.fixture(autouse=True)
def built(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A built page that shows nothing."""
    folder = tmp_path_factory.mktemp("built") / "nothing"
    build_nothing(folder, monkeypatch)
    return folder


def test_see_opens_at_the_word(regard_command: Command, tmp_path: Path) -> None:
    done = regard_command("see", TEXT, "--word", "bank", "--html", "bank.html")
    assert done.returncode == 0, done.stderr
    size = (tmp_path / "bank.html").stat().st_size
    assert done.stdout.splitlines()[-1] == f"Wrote bank.html ({size / 1e3:.0f} kB). Open it in a browser."
    page = Read(tmp_path / "bank.html")
    assert page.data["opening"]["token"] == 8
    assert any(finding in " ".join(done.stdout.split()) for finding in page.data["findings"])


def test_see_has_the_movement_of_its_word(regard_command: Command, tmp_path: Path) -> None:
    """The page has what --json has."""
    words = "--word", "bank", "--compare", "river,money"
    done = regard_command("see", TEXT, *words, "--html", "a.html", "--json", "a.json", "--html-with", "layers=1")
    assert done.returncode == 0, done.stderr
    seen = json.loads((tmp_path / "a.json").read_text())
    (panel,) = Read(tmp_path / "a.html").data["panels"]
    assert (panel["kind"], panel["name"], len(panel["states"])) == ("paths", "Movement", 7)
    assert [curve["label"] for curve in panel["curves"]] == ["river", "money"]
    cosines = [curve["paths"][0] for curve in panel["curves"]]
    assert cosines == [[round(value, 6) for value in each["states"]] for each in seen["references"]]
    shares = [step["rest"] for step in panel["paths"][0]["steps"]]
    assert shares == [round(each["feed_forward_share"], 6) for each in seen["layer_updates"][0]["updates"]]
    assert regard_command("see", TEXT, "--html", "b.html").returncode == 0
    assert Read(tmp_path / "b.html").data["panels"] == []


def test_see_and_steps_of_a_capture(regard_command: Command, tmp_path: Path) -> None:
    saved = regard_command("see", TEXT, "--word", "bank", "--save", "a.safetensors", "--save-attention-outputs")
    assert saved.returncode == 0, saved.stderr
    done = regard_command("see", "--open", "a.safetensors", "--html", "a.html", "--html-with", "layers=0,3-4")
    assert done.returncode == 0, done.stderr
    assert [call["layer"] for call in Read(tmp_path / "a.html").data["calls"]] == [0, 3, 4]
    options = "--layer", "-1", "--head", "2", "--word", "bank", "--html", "b.html"
    done = regard_command("steps", "--open", "a.safetensors", *options)
    assert done.returncode == 0, done.stderr
    page = Read(tmp_path / "b.html")
    assert page.data["opening"] == {"view": "steps", "call": 5, "head": 2, "token": 8}
    assert [(each["call"], each["refused"]) for each in page.data["steps"]] == [(5, None)]


def test_why_has_its_rankings(regard_command: Command, tmp_path: Path) -> None:
    done = regard_command("why", TEXT, "--word", "bank", "--html", "a.html")
    assert done.returncode == 0, done.stderr
    page = Read(tmp_path / "a.html")
    assert [panel["kind"] for panel in page.data["panels"]] == ["strip", "table", "table"]
    assert page.data["opening"]["token"] == 8


def test_map_has_the_layer_that_it_is_of(regard_command: Command, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(f"{TEXT} " * 5)
    done = regard_command("map", "a.txt", "--layer", "2", "--head", "3", "--html", "a.html")
    assert done.returncode == 0, done.stderr
    page = Read(tmp_path / "a.html")
    assert [call["layer"] for call in page.data["calls"]] == [2]
    link = {"token": 11, "key": 13}  # as in its first sentence
    assert page.data["opening"] == {"view": "map", "call": 0, "head": 3} | link
    refused = regard_command("map", "a.txt", "--layer", "2", "--window", "20", "--html", "b.html")
    assert refused.returncode == 2
    assert refused.stderr.startswith("regard: error: --html: windows are read one at a time")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--html", "a.txt"], "--html: cannot write 'a.txt', but the file name must end in .html"),
        (["--html", "none/a.html"], "there is no folder 'none'"),
        (["--html-with", "steps"], "--html-with needs --html"),
        (["--html", "a.html", "--html-with", "int8"], "got 'int8', expected steps or layers=0,3-5"),
        (["--html", "a.html", "--html-with", "steps,"], "got '', expected steps or layers=0,3-5"),
        (["--html", "a.html", "--html-with", "1,2"], "got '1,2', expected steps or layers=0,3-5"),
    ],
)
def test_what_is_refused_before_a_model_is_loaded(
    regard_command: Command, tmp_path: Path, arguments: list[str], says: str
) -> None:
    done = regard_command("see", TEXT, "--model", "nowhere", *arguments)
    assert done.returncode == 2
    assert done.stderr.startswith("regard: error: ")
    assert done.stderr.count("\n") == 1
    assert says in done.stderr
    assert os.listdir(tmp_path) == []


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("layers", ["", "-1", "1.5"])
def test_layers_that_are_no_numbers(capsys: Any, layers: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["see", TEXT, "--html", "a.html", "--html-with", f"layers={layers}"])
    assert ended.value.code == 2
    assert f"got '{layers}', expected whole numbers such as 0,2-4" in capsys.readouterr().err


def test_without_the_built_page(built: Path) -> None:
    (built / "panels.js").unlink()
    with pytest.raises(RegardError, match="the page is not built: run make page"):
        Outputs(html=PageFile(Path("a.html"))).check()
    Outputs().check()


def test_what_of_the_traces_goes_into_it() -> None:
    def page(choice: Any) -> Page:
        raise RegardError(f"{choice.layers} {choice.steps}")

    with pytest.raises(RegardError, match=r"^\[1, 2\] True$"):
        Outputs(html=PageFile(Path("a.html"), [1, 2], steps=True)).write(SimpleNamespace(page=page))


@pytest.mark.parametrize(
    ("given", "page"),
    [
        (["steps"], PageFile(Path("a.html"), steps=True)),
        (["layers=0,3-5,steps"], PageFile(Path("a.html"), (0, 3, 4, 5), True)),
        (["layers=2, 4, steps"], PageFile(Path("a.html"), (2, 4), True)),
        (["layers=2", "steps"], PageFile(Path("a.html"), layers=(2,), steps=True)),
        ([], PageFile(Path("a.html"))),
    ],
)
def test_what_a_page_carries_is_read(given: list[str], page: PageFile) -> None:
    assert PageFile.of(Path("a.html"), given) == page


def ours(folder: Path, model: Model) -> str:
    """Save a model of ours as a folder that the command reads."""
    assert isinstance(model.model, Transformer)
    folder.mkdir()
    save_model(folder, model.model, model.tokenizer)
    return str(folder)


def test_generate_opens_at_the_writing(regard_command: Command, tmp_path: Path) -> None:
    model = ours(tmp_path / "model", opened("gpt"))
    done = regard_command("generate", "A man", "--model", model, "--max-new-tokens", "3", "--html", "a.html")
    assert done.returncode == 0, done.stderr
    page = Read(tmp_path / "a.html")
    assert page.data["opening"]["view"] == "overview"
    assert [len(each["steps"]) for each in page.data["overview"]["texts"]] == [3]
    assert page.data["findings"][0] in " ".join(done.stdout.split())


@pytest.mark.long
def test_translate_opens_at_the_alignment(regard_command: Command, tmp_path: Path) -> None:
    model = ours(tmp_path / "model", pair())
    done = regard_command("translate", "A bank", "A man", "--model", model, "--html", "a.html")
    assert done.returncode == 0, done.stderr
    page = Read(tmp_path / "a.html")
    assert [text["name"] for text in page.data["texts"]] == ["source 1", "target 1", "source 2", "target 2"]
    assert page.data["opening"]["view"] == "overview"
    assert page.data["opening"]["call"] == page.data["alignment"][0]["best"]["call"]
    assert len(page.data["alignment"]) == 2


def test_evolve_has_both_ends_and_its_panels(regard_command: Command, tmp_path: Path) -> None:
    (tmp_path / "run" / "watch").mkdir(parents=True)
    for step, kind in ((0, "gpt"), (10, "post-norm"), (20, "gpt")):
        opened(kind).trace("A man is fishing").save(tmp_path / "run" / "watch" / f"step-{step:06}.safetensors")
    done = regard_command("evolve", "run", "--layer", "-1", "--html", "a.html")
    assert done.returncode == 0, done.stderr
    page = Read(tmp_path / "a.html")
    assert page.data["opening"] == {"view": "panel 1", "call": 3, "head": None, "token": 3}
    assert [text["name"] for text in page.data["texts"]] == ["step 0", "step 20"]
    assert [each["name"] for each in page.data["comparisons"]] == ["step 0 and step 20"]
    assert [panel["title"] for panel in page.data["panels"][:3]] == ["Step 0", "Step 20", "Step 20 minus step 0"]


def test_steps_are_asked_for_and_their_size_is_said_before(regard_command: Command, tmp_path: Path) -> None:
    done = regard_command("see", TEXT, "--word", "bank", "--html", "bank.html", "--html-with", "layers=1,2,steps")
    assert done.returncode == 0, done.stderr
    page = Read(tmp_path / "bank.html")
    assert [each["call"] for each in page.data["steps"]] == [0, 1]
    said = next(line for line in done.stderr.splitlines() if line.startswith("Values, hidden states"))
    assert said in page.data["status"]


@pytest.mark.parametrize("first", ["=", "+", "-", "@", "\t", "\r", "\n", " =", "＝"])
def test_what_a_spreadsheet_takes_for_a_formula_gets_an_apostrophe(first: str) -> None:
    assert escape_formula(f"{first}1+1") == f"'{first}1+1"
    assert escape_formula(f"a{first}") == f"a{first}"


def test_numbers_stay_numbers() -> None:
    assert [escape_formula(each) for each in (-1, -0.5, None, "")] == [-1, -0.5, None, ""]


def test_csv_reads_back(tmp_path: Path) -> None:
    write_csv(ROWS, tmp_path / "a.csv")
    with (tmp_path / "a.csv").open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["left", "n", "share", "x", "metadata.y"]
    assert rows == [["'=HYPERLINK(1)", "-3", "-0.5", "", ""], ['a, "b"\nc', "2", "0.25", "", "'@sum"]]


def test_parquet_keeps_types_and_texts_as_they_are(tmp_path: Path) -> None:
    write_parquet(ROWS, tmp_path / "a.parquet")
    table = pq.read_table(tmp_path / "a.parquet")
    assert table.to_pylist() == [{"metadata.y": None} | row for row in ROWS]
    assert str(table.schema.field("x").type) == "string"
    assert str(table.schema.field("n").type) == "int64"


def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match="cannot write"):
        write_csv(ROWS, tmp_path / "none" / "a.csv")
