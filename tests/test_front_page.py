"""What the README prints and claims: its command's output, its numbers in Python, and figures measured elsewhere."""

import re

import pytest
import torch

import regard
from regard.cli.main import main
from tests.support import ROOT
from tests.support.pages import code_blocks, commands

README = (ROOT / "README.md").read_text(encoding="utf-8")
CHANGES = re.compile(r"weights within \S+ of|; [\d.]+ s in all")  # a machine's rounding and its time


def test_the_first_command_prints_what_the_readme_shows(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(commands("README.md")[0])
    both = code_blocks("README.md", "text")[0], capsys.readouterr().out
    shown, printed = (CHANGES.sub("", " ".join(text.split())) for text in both)
    assert printed.startswith(shown.removesuffix("…"))


def test_numbers_in_python(minilm) -> None:
    trace = minilm.trace("We sat on the river bank.")
    shown = re.search(r"one weight per head:\n\s+# ([\d., ]+)…", README)
    assert shown is not None
    told = [float(number) for number in shown[1].rstrip(", ").split(",")]
    assert [round(float(weight), 2) for weight in trace.attention[0]["bank", "river"][: len(told)]] == told
    ablated = minilm.trace(trace.text, interventions=[regard.ablate(regard.head(5, 7))])
    cosine = torch.nn.functional.cosine_similarity(trace["bank"], ablated["bank"], dim=0)
    assert f"have cosine {float(cosine):.2f}." in README


def test_measured_figures_are_those_of_the_benchmarks() -> None:
    families, table = ((ROOT / f"docs/{name}.md").read_text("utf-8") for name in ("families", "families_table"))
    assert "419 Hugging Face architectures" in " ".join(README.split())
    kinds = re.findall(r"^\| ([a-z ]+) \| (\d+) \|", families, re.M)
    assert [int(count) for _, count in kinds] == [table.count(f"| {kind} | ") for kind, _ in kinds]
    compared = re.search(r"<!-- compared: summary -->.*?<!-- end -->", README, re.S)
    assert compared is not None
    assert "| regard, one token's row | 0.25 | 285 MiB |" in compared[0]
    assert "takes 285 MiB instead of 3.1 GiB" in " ".join(README.split())
    assert "| TransformerLens | 1.42 | 3,182 MiB |" in compared[0]


def test_the_comparison_page_begins_with_the_same_table() -> None:
    table = re.search(r"## How it compares\n\n(\|.*?)\n\n", README, re.S)
    assert table is not None
    assert table[1] in (ROOT / "docs" / "compare.md").read_text("utf-8").split("\n## ")[0]


def test_a_stranger_is_done_soon() -> None:
    assert sum(any(map(str.isalnum, word)) for word in README.split()) <= 1400
