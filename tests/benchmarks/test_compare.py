"""The comparison with other tools: its pages are what was measured, its rows say why there is no figure."""

import json
import os
import subprocess
import sys

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from benchmarks.compare import long, page, reference
from benchmarks.compare.tools import BASE, TOOLS, Tool, eager, hooked, regard_dense, regard_row, version
from tests.support import ROOT

FOUND = json.loads(page.MEASURED.read_text("utf-8"))
IDS = torch.tensor([[7, 3, 11, 5, 2, 13, 17, 19, 23, 4, 8]])


@pytest.mark.parametrize("file", page.PAGES, ids=lambda file: file.relative_to(ROOT).as_posix())
def test_a_page_has_the_figures_that_were_measured(file) -> None:
    text = file.read_text("utf-8")
    assert text == page.filled(text, FOUND)
    assert page.PLACE.search(text)


def test_every_table_is_on_the_page_and_every_tool_in_it() -> None:
    text = page.PAGES[0].read_text("utf-8")
    assert {place[2] for place in page.PLACE.finditer(text)} == set(page.sections(FOUND)) - {"summary"}
    for kind in {"encoder", "decoder"} & set(FOUND):
        assert list(FOUND[kind]["rows"]) == list(TOOLS)
        for length in FOUND[kind]["lengths"]:
            told = page.table(FOUND[kind]["rows"], str(length))
            assert told in text
            assert all(told.count(f"\n| {name.partition(',')[0]}") for name in TOOLS)
            base = FOUND[kind]["rows"][BASE][str(length)]
            assert all(base[job]["ratio"] == 1 for job in page.JOBS)


def test_where_another_is_better_is_said() -> None:
    ours = {"seconds": 2.0, "mib": 100.0, "error": 1e-6, "ratio": 2.0, "rounds": 5}
    rows = {
        page.WRITTEN_OUT: {"512": {"layer": ours, "all": ours}},
        "A": {
            "512": {
                "layer": {"seconds": 1.0, "mib": 99.0, "error": 2e-6, "ratio": 1.0, "rounds": 1},
                "all": {"stopped": 9},
            }
        },
        "B": {"version": "1", "failed": "no"},
    }
    found = {"encoder": {"lengths": [512], "rows": rows}, "decoder": {"lengths": [], "rows": {}}}
    assert page.better(found) == "- encoder, 512 tokens, one layer, time of regard's: A 0.50 ×"
    assert "| B 1 | no |" in page.table(rows, "512")
    assert "stopped after 9 s" in page.table({"A": rows["A"] | {"512": {"layer": {"stopped": 9}}}}, "512")
    failed = {"failed": "[enforce fail] can't: you tried to allocate 40000000000 bytes. Error"}
    assert page.ended(failed) == "no memory: it tried to allocate 37 GiB at once"


def test_a_tool_that_is_absent_is_said_to_be() -> None:
    assert version(Tool("nothing", "no_such_tool_here", eager)) is None
    assert version(TOOLS[BASE])


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
