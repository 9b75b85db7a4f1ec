import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import regard
from regard.diffusion.pipeline import load_pipeline
from tests.support import pipelines

pytest.importorskip("diffusers", reason="the extra diffusion is not installed")
pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("pipelines") / "tiny"
    pipelines.stable_diffusion().save_pretrained(place)
    return place


@pytest.fixture
def broken(folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder, tmp_path / "broken"))


def rewritten(folder: Path, **given: Any) -> Path:
    index = json.loads((folder / "model_index.json").read_text())
    (folder / "model_index.json").write_text(json.dumps(index | given))
    return folder


def test_a_folder_paints_as_its_pipeline_does(folder: Path) -> None:
    opened, own = load_pipeline(folder, device="cpu"), load_pipeline(pipelines.stable_diffusion())
    given: dict[str, Any] = {"steps": 2, "samples": 2, "height": 16, "width": 16, "guidance_scale": 3.0}
    found, same = (each.paint("a cat", **given) for each in (opened, own))
    assert opened.name == "tiny"
    assert [np.asarray(each).tolist() for each in found.pictures] == [np.asarray(e).tolist() for e in same.pictures]
    assert torch.equal(found.heat.of("cat"), same.heat.of("cat"))
    assert found.heat.of("cat").shape == (2, 8, 8)
    with opened.record() as heat:
        opened.pipeline("a cat", num_inference_steps=1, height=16, width=16)
    assert len(heat.weights) == 1


def test_a_pipeline_refuses_in_its_words_in_a_line(folder: Path) -> None:
    opened = load_pipeline(folder, device="cpu")
    for given, says in (
        ({"height": 17, "width": 16}, "pipeline 'tiny': `height` and `width` have to be divisible"),
        ({"cats": 3}, "pipeline 'tiny' takes no 'cats', it takes prompt, height"),
    ):
        with pytest.raises(regard.RegardError, match=says):
            opened.paint("a cat", steps=1, **given)


def test_what_is_no_whole_pipeline_is_refused(broken: Path) -> None:
    with pytest.raises(regard.RegardError, match=r"model_index.json"):
        load_pipeline(broken / "unet")
    with pytest.raises(regard.RegardError, match="device 'abacus' cannot be used here"):
        load_pipeline(broken, device="abacus")
    with pytest.raises(regard.RegardError, match="regard.load_pipeline opens it"):
        regard.load(broken)
    for given, says in (
        ({"unet": ["evil", "Evil"]}, r"unet is \['evil', 'Evil'\], expected a class of diffusers or transformers"),
        ({"unet": ["diffusers", "UNet1DModel"]}, "its model is UNet1DModel, expected one of UNet2DConditionModel"),
        ({"other": ["diffusers", "UNet1DModel"]}, "it has no folder 'other'"),
    ):
        with pytest.raises(regard.RegardError, match=says):
            load_pipeline(rewritten(Path(shutil.copytree(broken, broken.parent / str(len(says)))), **given))


def test_weights_that_are_cut_short_or_pickled_are_refused(broken: Path) -> None:
    file = broken / "unet" / "diffusion_pytorch_model.safetensors"
    whole = file.read_bytes()
    file.write_bytes(whole[:-1000])
    with pytest.raises(regard.RegardError, match="truncated"):
        load_pipeline(broken)
    file.unlink()
    torch.save({}, broken / "unet" / "diffusion_pytorch_model.bin")
    with pytest.raises(regard.RegardError, match="cannot be loaded"):
        load_pipeline(broken)


def test_code_in_a_folder_is_not_run(broken: Path) -> None:
    (broken / "unet" / "evil.py").write_text("raise SystemExit('run')")
    (broken / "pipeline.py").write_text("raise SystemExit('run')")
    with pytest.raises(regard.RegardError, match="cannot be loaded"):
        load_pipeline(rewritten(broken, _class_name=["pipeline", "Evil"]))
