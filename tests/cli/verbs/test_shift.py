"""`regard shift` as a person runs it."""

import json
from pathlib import Path


def test_two_parts_of_one_store(regard_command, bank_folder: Path, tmp_path: Path) -> None:
    result = regard_command(
        "shift", "bank", "--store", str(bank_folder), "--column", "kind", "--values", "river,money", "--json", "a.json",
        "--csv", "a.csv",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    data = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    assert data["groups"] == ["kind=river", "kind=money"]
    assert data["change"]["p"] <= 0.01
    assert {each["fate"] for each in data["senses"]} == {"gained", "lost"}
    assert "gained" in result.stdout
    assert "permutations of documents" in result.stdout
    assert len((tmp_path / "a.csv").read_text(encoding="utf-8").splitlines()) == 17


def test_a_store_beside_itself_has_not_changed(regard_command, bank_folder: Path) -> None:
    result = regard_command("shift", "bank", "--store", str(bank_folder), "--store", str(bank_folder), "--json", "-")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["change"]["p"] > 0.5


def test_what_does_not_fit(regard_command, bank_folder: Path) -> None:
    for arguments, message in (
        (["--store", str(bank_folder)], "--store: given 1, needs two, or one with --column NAME"),
        (["--store", str(bank_folder), "--store", str(bank_folder), "--values", "a,b"], "--values needs --column"),
        (["--store", str(bank_folder), "--column", "year"], "has a column 'year'; there are kind"),
    ):
        result = regard_command("shift", "bank", *arguments)
        assert (result.returncode, result.stdout) == (2, "")
        assert message in result.stderr
