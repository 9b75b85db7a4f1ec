"""What removing regions changes: against passes made by hand, and a model whose answer is known."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import regard
from regard.errors import RegardError
from regard.vision.answer import looked, removal
from tests.vision.test_pictured_text import TEXT, WORDS, save_looker
from tests.vision.test_pictures import PROCESSOR, built, noise


@pytest.mark.parametrize(("kind", "query"), [("dinov2", 0), ("siglip", None)])
def test_without_a_text_the_state_is_compared(kind: str, query: int | None) -> None:
    model = regard.load(built(kind), processor=PROCESSOR)
    trace = model.trace(images=noise(131, 97))
    heat = looked([trace]).looks[0].heat
    found = removal(model, trace, heat, query, "blank")
    pixels = model.image_processor(images=Image.fromarray(noise(131, 97)), return_tensors="pt")["pixel_values"]
    pixels[:, :, 14:28, 28:42] = 0  # the patch of row 1, column 2, of 14 pixels a side
    states = [model.trace(inputs={"pixel_values": pixels}).last_hidden_state, trace.last_hidden_state]
    ours, theirs = (each[0] if query == 0 else each.mean(0) for each in states)
    assert float(found.after[1, 2]) == pytest.approx(float(torch.cosine_similarity(ours, theirs, 0)), abs=1e-5)
    assert (found.unit, found.before, found.after.shape) == ("1 − cosine", pytest.approx(1), (4, 4))
    assert torch.allclose(found.heat, heat / heat.sum())


@pytest.mark.parametrize("fill", ["blank", "mean", "blur"])
def test_in_a_text_the_next_words_probability_is(tmp_path: Path, fill: Any) -> None:
    processor = save_looker(tmp_path)
    model = regard.load(tmp_path)
    trace = model.trace(TEXT, images=tmp_path / "cat.png")
    found = removal(model, trace, looked([trace]).looks[0].heat, 22, fill)
    read = processor(text=TEXT, images=Image.open(tmp_path / "cat.png"), return_tensors="pt")
    part = read["pixel_values"][:, :, :14, :14].clone()
    if fill == "blank":
        read["pixel_values"][:, :, :14, :14] = 0
    elif fill == "mean":
        read["pixel_values"][:, :, :14, :14] = read["pixel_values"].mean((2, 3), keepdim=True)
    else:
        padded = torch.nn.functional.pad(part, (6, 6, 6, 6), mode="reflect")
        read["pixel_values"][:, :, :14, :14] = torch.nn.functional.avg_pool2d(padded, 13, 1)
    with torch.no_grad():
        likely = model.model(**read).logits[0, -1].log_softmax(-1)
    token = int(trace.logits[-1].argmax())
    assert found.before == pytest.approx(float(trace.logits[-1].log_softmax(-1)[token]), abs=1e-5)
    assert float(found.after[0, 0]) == pytest.approx(float(likely[token]), abs=1e-4)
    assert float(found.changes[0, 0]) == pytest.approx(found.before - float(likely[token]), abs=1e-4)
    assert WORDS[token] in looked([trace]).findings()[0]


def test_regions_are_at_most_four_by_four_and_cover_the_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    model = regard.load(built("vit"), processor=PROCESSOR)
    trace = model.trace(images=noise(131, 97))
    asked: list[Any] = []
    monkeypatch.setattr(model, "without", lambda _trace, regions, fill: asked.extend(regions) or [trace] * len(regions))
    found = removal(model, trace, torch.ones(11, 3, dtype=torch.float64), 0, "mean")
    covered = torch.zeros(11, 3)
    for rows, columns in asked:
        covered[rows, columns] += 1
    assert (covered == 1).all()
    assert len(asked) == 12
    assert found.heat[1].tolist() == pytest.approx([3 / 33] * 3)  # of 11 rows: 2, 3, 3 and 3
    assert found.after.flatten().tolist() == pytest.approx([1.0] * 12)


def test_it_is_shown_beside_the_weights() -> None:
    model = regard.load(built("dinov2"), processor=PROCESSOR)
    traces = model.trace(images=[noise(131, 97)] * 2)
    plain, found = looked(traces), looked(traces, remove=(model, "blur"))
    assert len(found.findings()) == len(plain.findings()) == 2, "one for each image"
    names = [f"{name} {n}" for n in (1, 2) for name in ("Patches", "Heat", "Removal")]
    assert [panel.name for panel in found.panels()] == names
    assert found.panels()[2].values == found.looks[0].removal.changes.tolist()
    figure, _ = found.painted()
    shown = figure.axes[2].images[1]
    assert np.asarray(shown.get_array()) == pytest.approx(found.looks[0].removal.changes.clamp(min=0).numpy())
    assert list(shown.get_extent()) == list(figure.axes[1].images[1].get_extent())
    assert "--remove" in plain.exactness()[0]
    assert "blur" in found.exactness()[0]


def test_a_trace_of_no_picture_is_refused() -> None:
    model = regard.load()
    with pytest.raises(RegardError, match="without needs the trace of an image"):
        list(model.without(model.trace("a bank"), []))
