"""`regard see --image`: the answer, its files, and what is refused in a line."""

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from regard.cli.main import main
from tests.models.test_pictured_text import save_looker
from tests.models.test_pictures import PROCESSOR, built, noise


@pytest.fixture(scope="module")
def model(tmp_path_factory: Any) -> Path:
    folder: Path = tmp_path_factory.mktemp("model")
    built("dinov2").save_pretrained(folder)
    PROCESSOR.save_pretrained(folder)
    Image.fromarray(noise(131, 97)).save(folder / "cat.png")
    return folder


def test_it_says_where_it_looks_and_writes_its_files(model: Path, tmp_path: Path, capsys: Any) -> None:
    files = [f"{tmp_path}/a.{end}" for end in ("json", "csv", "png")]
    given = ["--image", f"{model}/cat.png", "--model", str(model), "--json", files[0], "--csv", files[1]]
    with pytest.raises(SystemExit) as left:
        main(["see", *given, "--figure", files[2]])
    assert left.value.code == 0
    said = capsys.readouterr().out
    assert all(part in " ".join(said.split()) for part in ("cat.png", "layer 1, mean of 2 heads", "[CLS]"))
    data = json.loads(Path(files[0]).read_text())
    assert data["format"] == "regard look"
    assert data["texts"] == ["cat.png"]
    assert len(data["rows"]) == 16
    assert len(Path(files[1]).read_text().splitlines()) == 17
    with Image.open(files[2]) as drawn:
        assert drawn.width > 900


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["--image", "{}/cat.png"], "--image needs --model"),
        (["--image", "{}/none.png", "--model", "{}"], "--image '{}/none.png' cannot be read: No such file"),
        (["--image", "{}/config.json", "--model", "{}"], "is none that can be read, needs PNG"),
        (["a text", "--image", "{}/cat.png", "--model", "{}"], "reads pictures alone"),
        (["--image", "{}/cat.png", "--model", "{}", "--word", "a"], "--image and --word: a picture has no words"),
        (["--image", "{}/cat.png", "--model", "{}", "--logit-lens"], "--image and --logit-lens: given both, needs one"),
        (["--image", "{}/cat.png", "--model", "{}", "--top", "0"], "--top: given 0, needs 1 or more"),
        (["--image", "{}/cat.png", "--model", "{}", "--remove", "all"], "--remove: given 'all', needs blank, mean or"),
        (["a text", "--remove", "blank"], "--remove: needs --image, whose regions it removes"),
        (["--image", "{}/cat.png", "--model", "{}", "--layer", "7"], "layer 7 is out of range"),
    ],
)
def test_what_is_refused(model: Path, given: list[str], says: str, capsys: Any) -> None:
    with pytest.raises(SystemExit) as left:
        main(["see", *(each.format(model) for each in given)])
    assert left.value.code == 2
    said = capsys.readouterr().err
    assert says.format(model) in " ".join(said.split())
    assert len(said.strip().splitlines()) <= 3


def test_a_text_looks_at_its_picture(tmp_path: Path, capsys: Any) -> None:
    save_looker(tmp_path)
    given = ["--image", f"{tmp_path}/cat.png", "--model", str(tmp_path), "--json", f"{tmp_path}/a.json"]
    for word, who in (([], "“?”"), (["--word", "mat", "--layer", "1", "--head", "2"], "“mat”")):
        with pytest.raises(SystemExit) as left:
            main(["see", "what is on the mat ?", *given, *word])
        assert left.value.code == 0
        said = " ".join(capsys.readouterr().out.split())
        assert all(part in said for part in (who, "layer 1, head 2" if word else "layer 2, mean of 3 heads"))
        assert len(json.loads((tmp_path / "a.json").read_text())["rows"]) == 16


def test_regions_are_removed(model: Path, tmp_path: Path, capsys: Any) -> None:
    given = ["--image", f"{model}/cat.png", "--model", str(model), "--remove", "mean"]
    with pytest.raises(SystemExit) as left:
        main(["see", *given, "--json", f"{tmp_path}/a.json", "--figure", f"{tmp_path}/a.png"])
    assert left.value.code == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "from 1.00 to" in said
    assert "fill: mean" in said
    assert any("cosine of [CLS]" in each for each in json.loads((tmp_path / "a.json").read_text())["findings"])
