"""The answer about positions in every medium has the encoding's numbers."""

import json
from pathlib import Path

import pytest
import torch

from regard.errors import RegardError
from regard.questions.positions.answer import positions
from regard.questions.positions.encodings import encoding


@pytest.mark.parametrize("kind", ["sinusoidal", "rotary", "alibi"])
def test_json_has_the_matrices_and_the_rows(kind: str, tmp_path: Path) -> None:
    found = positions(kind, 13, 8)
    found.to_json(tmp_path / "a.json")
    data = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    matrices = encoding(kind, 13, 8)
    assert list(data["matrices"].values()) == matrices.tolist()
    assert (data["format"], data["kind"], data["model"]) == ("regard positions", kind, None)
    assert data["rows"] == found.rows()
    assert len(found.rows()) == {"sinusoidal": 4, "rotary": 4, "alibi": 8}[kind]  # distances, pairs, heads


def test_a_models_own_table(minilm) -> None:
    found = positions("learned", 11, 13, model=minilm)
    assert found.title() == "Learned positions of all-MiniLM-L6-v2, 11 × 13"
    assert torch.equal(found.matrices[0], minilm.model.embeddings.position_embeddings.weight[:11, :13])
    with pytest.raises(RegardError, match="kind learned: give the model whose table it is"):
        positions("learned")
