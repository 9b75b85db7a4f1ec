"""The comparison with other tools: its pages are what was measured, its rows say why there is no figure."""

import json
import os
import subprocess
import sys

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from benchmarks.compare import long, page, reference
from benchmarks.compare.tools import eager, hooked, regard_dense, regard_row
from tests.support import ROOT

FOUND = json.loads(page.MEASURED.read_text("utf-8"))
IDS = torch.tensor([[7, 3, 11, 5, 2, 13, 17, 19, 23, 4, 8]])


@pytest.mark.parametrize("file", page.PAGES, ids=lambda file: file.relative_to(ROOT).as_posix())
def test_a_page_has_the_figures_that_were_measured(file) -> None:
    text = file.read_text("utf-8")
    assert text == page.filled(text, FOUND)
    assert page.PLACE.search(text)


def test_tools_agree_with_float64(tmp_path) -> None:
    torch.manual_seed(1)
    config = LlamaConfig(vocab_size=29, hidden_size=42, intermediate_size=31, num_hidden_layers=3,
                         num_attention_heads=3, num_key_value_heads=1)  # fmt: skip
    LlamaForCausalLM(config).eval().save_pretrained(tmp_path)
    with torch.no_grad():
        reference.write(str(tmp_path), IDS[0].tolist(), tmp_path / "truth.pt")
        for opened in (eager, hooked, regard_dense, regard_row):
            first, last = opened(str(tmp_path))(IDS, [0, 2])
            assert reference.apart(last, tmp_path / "truth.pt") < 1e-6
            assert reference.apart(first, tmp_path / "truth.pt") > 1e-4


def test_what_is_seen_of_a_long_text(tmp_path) -> None:
    long.write(str(tmp_path))
    seen = long.looks(str(tmp_path), long.ids(300))
    assert list(seen["seconds"]) == ["trace", "row", "region", "whole"]


@pytest.mark.nightly
def test_the_benchmark_runs(tmp_path) -> None:
    python = os.environ.get("REGARD_COMPARE_PYTHON")
    if not python:
        pytest.skip("REGARD_COMPARE_PYTHON names no interpreter that has the tools")
    command = [sys.executable, "-m", "benchmarks.compare", "--quick", "--out", str(tmp_path), "--python", python]
    subprocess.run(command, cwd=ROOT, check=True)
    found = {file.stem: json.loads(file.read_text("utf-8")) for file in tmp_path.glob("*.json")}
    assert set(found) == {"encoder", "decoder", "files", "long"}
    told = page.sections(found)
    assert [name for name, each in told.items() if each == "Not measured yet."] == ["decoder-4096"]
    for kind in ("encoder", "decoder"):
        for name, row in found[kind]["rows"].items():
            if "failed" in row:
                assert not name.startswith(("regard", "transformers"))
            else:
                assert row["512"]["layer"]["error"] < 1e-4, name
