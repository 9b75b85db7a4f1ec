"""The folder of a model of ours: written, read, and refused where it is broken."""

import json
from pathlib import Path

import pytest
import torch

import regard
from regard.nn import folder as model_folder
from tests.support.own_models import KINDS, TEXTS, opened


@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_there_and_back(kind: str, tmp_path: Path) -> None:
    model = opened(kind)
    model.save(tmp_path / "kept")
    assert {file.name for file in (tmp_path / "kept").iterdir()} == {
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    }
    state = torch.get_rng_state()
    read = regard.load(tmp_path / "kept", device="cpu")
    assert torch.equal(state, torch.get_rng_state())  # loading draws nobody's random numbers
    assert read.model.config == model.model.config
    own, again = dict(model.model.named_parameters()), dict(read.model.named_parameters())
    assert all(torch.equal(own[name], again[name]) for name in own)
    assert own.keys() == again.keys()
    a, b = model.trace(TEXTS[0]), read.trace(TEXTS[0])
    assert a.tokens == b.tokens
    assert torch.equal(a.last_hidden_state, b.last_hidden_state)


def test_a_run_is_opened_at_its_newest_checkpoint(tmp_path: Path) -> None:
    for step, kind in ((100, "gpt"), (200, "llama")):
        opened(kind).save(tmp_path / "checkpoints" / f"step-{step:06}")
    with pytest.raises(regard.RegardError, match=r"without a whole checkpoint: it has no latest\.json"):
        model_folder.read_model(tmp_path)
    for name, kind in (("step-000100", "learned"), ("step-000200", "rotary")):
        (tmp_path / "latest.json").write_text(json.dumps({"checkpoint": name}))
        assert regard.load(tmp_path).model.config.positions == kind
    for wrong in ("../gpt", "..", "/etc", "step-000300", 3, ""):
        (tmp_path / "latest.json").write_text(json.dumps({"checkpoint": wrong}))
        with pytest.raises(regard.RegardError, match=r"latest\.json'.*no folder"):
            regard.load(tmp_path)
    (tmp_path / "latest.json").write_text("{")
    with pytest.raises(regard.RegardError, match=r"latest\.json' cannot be read"):
        regard.load(tmp_path)


def test_broken_folders_are_refused_by_name(tmp_path: Path) -> None:
    def broken(file: str, content: bytes | None, says: str) -> None:
        folder = tmp_path / f"{file}{len(list(tmp_path.iterdir()))}"
        opened("gpt").save(folder)
        if content is None:
            (folder / file).unlink()
        else:
            (folder / file).write_bytes(content)
        with pytest.raises(regard.RegardError, match=says):
            regard.load(folder)

    weights = "model.safetensors"
    whole = tmp_path / "whole"
    opened("gpt").save(whole)
    content = (whole / weights).read_bytes()
    broken(weights, None, "model.safetensors.*cannot be read")
    broken(weights, content[:-3], "is truncated or not a safetensors file")
    broken(weights, content.replace(b"decoder_norm.weight", b"decoder_form.weight"), "the first 'decoder_norm.weight'")
    config = json.loads((whole / "config.json").read_text())
    broken(
        "config.json", json.dumps(config | {"d_hidden": 7}).encode(), r"shape \(12, 48\), its config needs \(12, 7\)"
    )
    broken("config.json", json.dumps(config | {"segments": 2}).encode(), "missing, the first 'segments.weight'")
    broken("config.json", json.dumps(config | {"output": "free"}).encode(), "missing, the first 'head.weight'")
    broken("config.json", json.dumps(config | {"vocabulary": 3}).encode(), "shape")
    nan = opened("gpt")
    with torch.no_grad():
        nan.model.decoder_norm.weight[3] = torch.nan
    nan.save(tmp_path / "nan")
    with pytest.raises(regard.RegardError, match=r"weights hold NaN, in tensor 'decoder_norm\.weight'"):
        regard.load(tmp_path / "nan")
    blocker = tmp_path / "file"
    blocker.write_text("")
    with pytest.raises(regard.RegardError, match="cannot make the folder"):
        opened("gpt").save(blocker / "folder")
