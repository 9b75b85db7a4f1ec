"""The code in the README and the docs runs as written."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch

import regard

ROOT = Path(__file__).parent.parent


def blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "docs/attention.md",
        "docs/traces.md",
        "docs/captures.md",
        "docs/explanations.md",
        "docs/long.md",
        "docs/transformer.md",
    ],
)
def test_code_blocks_run(page: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {
        "torch": torch,
        "regard": regard,
        "tokens_that_exist": torch.ones(2, 1200, dtype=torch.bool),
        "w_query": torch.randn(16, 24),
        "w_key": torch.randn(16, 24),
        "w_value": torch.randn(16, 28),
        "torch_module": torch.nn.MultiheadAttention(512, 8, batch_first=True),
        "x": torch.randn(2, 7, 512),
    }
    found = blocks(page)
    assert len(found) >= 2
    for block in found:
        exec(block, names)
    if page == "README.md":  # the two lines that compare "bank" with "bank" do
        river, money = names["river"], names["money"]
        assert torch.equal(river.learned[names["n"]], money.learned[names["m"]])
        assert (tmp_path / "river.safetensors").exists()
