"""How attention formed: the traces of one sentence, side by side."""

import json
import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from regard import RegardError
from regard.capture.interventions.names import PARTS
from regard.display.answer import panel_data
from regard.display.panels import Heat, Panel, Scatter
from regard.display.terminal_parts import plain_lines_of_parts
from regard.explain.weights.head_scores import head_scores
from regard.train import evolve
from regard.train.evolve import MOST, Evolution, evolution, evolution_of
from regard.train.run_files import LOG
from regard.train.training import Training
from regard.web.html_file import script_json
from tests.said.reading import names_in, numbers_in, plain_and_few, shown_with_its_numbers
from tests.support import MONEY, RIVER
from tests.support.own_models import opened, pair


def planted(*weights: list[list[float]], names: tuple[str, ...] = ("a", "b", "c")) -> Evolution:
    """An evolution of causal weights at steps 0, 10, 20 …"""
    entropy = [sum(-w * math.log(w) for row in table for w in row if w > 0) / len(table) for table in weights]
    change = [0.0] + [
        sum(abs(x - y) for r, q in zip(a, b, strict=True) for x, y in zip(r, q, strict=True)) / 9
        for a, b in pairwise(weights)
    ]
    steps = [10 * n for n in range(len(weights))]
    path = [(0.0, 0.0), (1.0, 0.0)]
    return Evolution(
        "attention", 0, None, steps, list(names), list(names),
        list(weights), entropy, change, ["a", "b"], [path, [(0.0, 0.0), (0.0, 3.0)]], (0.5, 0.25),
    )  # fmt: skip


EVEN = [[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [1 / 3, 1 / 3, 1 / 3]]
HALF = [[1.0, 0.0, 0.0], [0.6, 0.4, 0.0], [0.2, 0.6, 0.2]]
SHARP = [[1.0, 0.0, 0.0], [0.9, 0.1, 0.0], [0.0, 1.0, 0.0]]


def test_steps_side_by_side(minilm) -> None:
    trace = minilm.trace(RIVER)
    cut = minilm.trace(RIVER, interventions=[regard.ablate(regard.head(0, 3))])
    found = evolution([(0, trace), (10, cut), (20, trace)], 1, 3)
    expected = trace.attention[1][3].double()
    torch.testing.assert_close(torch.tensor(found.weights[0]).double(), expected, atol=1e-6, rtol=0)
    assert found.steps == [0, 10, 20]
    entropy = torch.special.entr(expected).sum(-1).mean()
    assert found.entropy[0] == pytest.approx(float(entropy), abs=1e-5)
    assert found.change[0] == 0.0
    assert found.change[1] == found.change[2] > 0
    assert found.queries == [token.text for token in trace.tokens]
    assert len(found.embedded) == len({token.id for token in trace.tokens})
    assert all(path[0] == path[2] for path in found.paths)
    mean = evolution([(0, trace)], 1)
    torch.testing.assert_close(torch.tensor(mean.weights[0]), trace.attention[1].dense().mean(0).double().float(),
                               check_dtype=False, atol=1e-6, rtol=0)  # fmt: skip


def test_names_are_no_mathematics(minilm, tmp_path: Path) -> None:
    trace = minilm.trace("a $x_1$ bank & $")
    assert evolution([(0, trace), (1, trace)], 0).draw(tmp_path / "a.svg") == []
    drawn = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert ">$</text>" in drawn
    assert ">&amp;</text>" in drawn


def test_layers_and_heads_count_from_the_end_too(minilm) -> None:
    trace = minilm.trace(RIVER)
    last, same = evolution([(0, trace)], -1, -1), evolution([(0, trace)], 5, 11)
    assert (last.layer, last.head, last.title(), last.weights) == (5, 11, same.title(), same.weights)


def test_induction_of_every_head_and_when_it_formed(minilm) -> None:
    trace = minilm.trace("the cat saw the cat and the dog saw the dog")
    found = evolution([(0, trace), (10, trace)], 0)
    assert found.induction == [head_scores(trace).induction.tolist()] * 2
    best = found.induction_head()
    assert best is not None
    assert found.induction_of(*best)[-1] == max(score for row in found.induction[-1] for score in row)
    assert evolution([(0, minilm.trace("no word comes again"))], 0).induction == []
    grown = replace(found, steps=[0, 10, 20, 30], induction=[[[x, 0.1]] for x in (0.1, 0.5, 0.3, 0.8)])
    assert (grown.induction_head(), grown.formed(0, 0), grown.formed(0, 1)) == ((0, 0), 3, None)
    assert replace(grown, induction=[[[0.5, 0.1]]] * 4).formed(0, 0) == 0
    assert replace(grown, induction=[]).induction_head() is None


def test_what_cannot_be_side_by_side(minilm) -> None:
    river, money = minilm.trace([RIVER, MONEY])
    with pytest.raises(RegardError, match="the trace of step 7 has another text"):
        evolution([(0, river), (7, money)], 0)
    with pytest.raises(RegardError, match="layer 6 is out of range: there are layers 0 to 5"):
        evolution([(0, river)], 6)
    with pytest.raises(RegardError, match="is not an encoder-decoder"):
        evolution([(0, river)], 0, part="cross")
    with pytest.raises(RegardError, match="got no trace"):
        evolution([], 0)


def test_rows_and_json_are_its_numbers(tmp_path: Path) -> None:
    found = replace(planted(EVEN, HALF, SHARP), induction=[[[0.1, float("nan")]], [[0.2, 0.0]], [[0.3, 0.5]]])
    rows = found.rows()
    assert [row["step"] for row in rows] == found.steps
    assert [row["entropy"] for row in rows] == found.entropy
    assert [row["change"] for row in rows] == found.change
    assert [row["induction 0.1"] for row in rows] == [None, 0.0, 0.5]
    for n, row in enumerate(rows):
        i, j = row["query"], row["key"]
        assert isinstance(i, int)
        assert isinstance(j, int)
        assert row["weight"] == found.weights[n][i][j] == max(w for weights in found.weights[n][1:] for w in weights)
        assert (row["query_text"], row["key_text"]) == (found.queries[i], found.keys[j])
    data = found.to_json(tmp_path / "a.json")
    assert data == json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    assert (data["format"], data["title"]) == ("regard evolve", found.title())
    for name in ("steps", "queries", "keys", "weights", "entropy", "change", "embedded"):
        assert data[name] == getattr(found, name)
    assert data["induction"] == [[[0.1, None]], [[0.2, 0.0]], [[0.3, 0.5]]]
    assert "training" not in data
    assert found.findings()[0] in " ".join(str(found).split())
    assert "<table" in found._repr_html_()


def test_a_query_that_sees_one_key_is_not_the_strongest() -> None:
    found = planted(EVEN, SHARP)
    assert found.free_queries == [1, 2]
    assert found.strongest(0) == (0.5, (1, 1))


def test_sentences_name_what_changed_most_and_the_spread() -> None:
    said = planted(EVEN, HALF, SHARP).findings()
    plain_and_few(said)
    assert names_in(said[0]) == ["c", "b"]
    assert numbers_in(said[0]) == ["0.33", "1.00"]
    assert "sharper" in said[1]
    assert "broader" in planted(SHARP, EVEN).findings()[1]
    shown_with_its_numbers(planted(EVEN, HALF, SHARP), [math.exp(x) for x in planted(EVEN, HALF, SHARP).entropy])
    assert "No weight changed" in planted(EVEN, EVEN).findings()[0]
    assert "as sharp as" in planted(EVEN, EVEN).findings()[1]
    assert "0.05 or more" in planted(EVEN, [EVEN[0], [0.51, 0.49, 0.0], EVEN[2]]).findings()[0]
    alone = planted(EVEN).findings()
    assert (names_in(alone[0]), numbers_in(alone[0])) == (["b"], ["0.50", "0"])
    assert "itself" in alone[0]


@pytest.mark.parametrize(
    ("scores", "numbers"),
    [
        ((0.1, 0.5, 0.3, 0.8), ["0", "0", "30", "0.30", "20", "0.80", "30"]),  # it fell in between
        ((0.5, 0.5, 0.5, 0.5), ["0", "0", "30", "0.50"]),
        ((0.1, 0.1, 0.1, 0.2), ["30", "0.20", "0", "0"]),  # none, and the text repeats
    ],
)
def test_sentences_date_induction(scores: tuple[float, ...], numbers: list[str]) -> None:
    found = planted(EVEN, HALF, SHARP, SHARP, names=("a", "a", "a"))
    found = replace(found, induction=[[[x, x / 2]] for x in scores])
    sentence = found.findings()[0]
    assert "induction" in sentence
    assert [number.rstrip(",") for number in numbers_in(sentence)] == numbers
    other = replace(found, queries=["a", "b", "c"]).findings()[0]
    assert ("induction" in other) == (scores[-1] >= 0.3)


LOSSES: list[dict[str, Any]] = [
    {"step": 1, "loss": 3.0, "validation": None, "rate": 0.1, "seconds": 1.0, "tokens": 9},
    {"step": 2, "loss": 2.5, "validation": 2.75, "rate": 0.1, "seconds": 1.0, "tokens": 9},
]


def test_a_run_has_its_loss_beside_its_traces(tmp_path: Path) -> None:
    model = opened("gpt")
    watched = [(step, model.trace("A man is fishing")) for step in (0, 10, 20)]
    for step, trace in watched:
        (tmp_path / "watch").mkdir(exist_ok=True)
        trace.save(tmp_path / "watch" / f"step-{step:06}.safetensors")
    without = evolution_of(tmp_path, 1)
    (tmp_path / LOG).write_text("".join(f"{json.dumps(line)}\n" for line in LOSSES))
    found = evolution_of(tmp_path, 1)
    assert found.weights == without.weights == evolution(watched, 1).weights
    assert without.training is None
    page = found.page()
    assert [panel["name"] for panel in page.panels] == [*(panel["name"] for panel in without.page().panels), "Loss"]
    assert [text["name"] for text in page.texts] == ["step 0", "step 20"]
    assert (page.title, page.opening["view"], page.opening["call"]) == (
        found.title(),
        "panel 1",
        1 + len(page.calls) // 2,
    )
    lines: Any = page.panels[-1]["series"]
    assert (lines[0]["x"], lines[0]["y"]) == ([1, 2], [3.0, 2.5])
    assert (lines[1]["x"], lines[1]["y"]) == ([2], [2.75])


def test_a_run_without_an_update_has_no_loss() -> None:
    found = replace(planted(EVEN, SHARP), training=Training([]))
    assert [panel.name for panel in found.panels()] == [panel.name for panel in planted(EVEN, SHARP).panels()]


def test_what_a_model_does_not_have_is_refused() -> None:
    one, two = opened("gpt").trace("a b"), pair().trace("a b", target="b c")
    with pytest.raises(RegardError, match="'cross': the model is not an encoder-decoder"):
        evolution([(0, one)], 0, part="cross")
    assert len({evolution([(0, two)], 0, part=part).what for part in PARTS}) == 3
    with pytest.raises(RegardError, match="part 'middle': expected encoder, decoder or cross"):
        evolution([(0, two)], 0, part="middle")


def shown(found: Evolution, width: int, *, everything: bool = False) -> list[str]:
    return plain_lines_of_parts(found.shown(width, 1_000_000, everything=everything), width)


def panel_of(found: Evolution, name: str) -> Any:
    panels: dict[str, Panel] = {panel.name: panel for panel in found.panels()}
    return panels[name]


@pytest.mark.parametrize("width", [60, 80, 140])
def test_one_screen(width: int) -> None:
    found = planted(*([EVEN, SHARP] * 30))
    lines = shown(found, width)
    assert max(map(len, lines)) <= width
    assert len(lines) <= 40 or width < 80
    out = " ".join(" ".join(lines).split())
    assert f"{MOST} of 60 steps" in out
    if width >= 80:
        steps = [line.split()[0] for line in lines if "→" in line]
        assert (len(steps), steps[0], steps[-1]) == (MOST, "0", "590")


def test_what_lies_between_rows_is_added_up() -> None:
    found = planted(*([EVEN, SHARP] * 30))
    lines = shown(found, 140)
    changes = [float(line.split()[2]) for line in lines if "→" in line]
    assert sum(changes) == pytest.approx(sum(found.change), abs=0.005 * len(changes))


def test_every_step_on_request() -> None:
    assert "\n".join(shown(planted(*([EVEN, SHARP] * 30)), 80, everything=True)).count("→") == 60


@pytest.mark.parametrize("width", [80, 140])
def test_induction_has_a_column_and_with_all_every_head(width: int) -> None:
    found = planted(EVEN, SHARP, SHARP)
    found = replace(found, induction=[[[0.111 * n + 0.01 * h for h in range(20)]] for n in range(1, 4)])
    lines = shown(found, width)
    assert max(map(len, lines)) <= width
    assert any("induction" in line for line in lines)
    assert [line.split()[-1] for line in lines if "→" in line] == ["0.30", "0.41", "0.52"]
    every = shown(found, width, everything=True)
    assert max(map(len, every)) <= width
    heads = [line.split() for line in every if line.split()[:1] in [[f"L0H{n}"] for n in range(20)]]
    assert [head[0] for head in heads] == [f"L0H{n}" for n in reversed(range(20))]  # those first that end highest
    assert (heads[0][-2], heads[0][-1]) == ("0.30", "0.52")
    assert panel_of(found, "Induction").series[0].y == found.induction_of(0, 19)


def test_a_head_without_scores_has_no_line() -> None:
    found = replace(planted(EVEN, SHARP), induction=[[[float("nan"), 0.1]], [[float("nan"), 0.2]]])
    assert [curve.name for curve in panel_of(found, "Induction").series] == ["L0H1"]


def test_links_of_tokens_that_see_themselves_alone_are_no_strongest_links() -> None:
    noted = "Strongest link leaves out tokens that can attend to one token only"
    assert noted in panel_of(planted(EVEN, SHARP), "Step by step").note
    free = [[0.4, 0.3, 0.3]] * 3
    assert noted not in panel_of(planted(free, free), "Step by step").note


def test_how_attention_formed_on_a_page() -> None:
    model = opened("gpt")
    traces = [(step, model.trace("A man is fishing")) for step in (0, 10, 20)]
    found = evolution(traces, 1)
    first, last, difference, entropy, change, table, points = found.tabs()
    assert [each.series[0].y for each in (entropy, change)] == [found.entropy, found.change]
    assert isinstance(first, Heat)
    assert isinstance(last, Heat)
    assert isinstance(difference, Heat)
    assert isinstance(points, Scatter)
    for panel, values in ((first, found.weights[0]), (last, found.weights[2]), (difference, found.from_start(2))):
        assert [[value or 0.0 for value in row] for row in panel.values] == values
    assert first.largest == last.largest == max(w for n in (0, 2) for row in found.weights[n] for w in row)
    assert (first.name, last.name, difference.signed, table.name) == ("Step 0", "Step 20", True, "Step by step")
    assert [each.after for each in points.points[:4]] == [None, 0, 1, None]
    assert len(points.points) == 3 * len(found.embedded)
    assert [panel.name for panel in evolution(traces[:1], 1).tabs()][:2] == ["Step 0", "Step by step"]
    script_json({"panels": [panel_data(panel) for panel in found.tabs()]})


def test_a_blank_has_a_mark() -> None:
    found = planted(EVEN, SHARP, names=("a", " ", "b"))
    assert panel_of(found, "Step 0").rows == ["a", "␣", "b"]


def test_the_last_grid_has_every_step_for_a_slider(monkeypatch: pytest.MonkeyPatch) -> None:
    found = planted(EVEN, SHARP, EVEN)
    first, last = (panel_of(found, f"Step {found.steps[n]}") for n in (0, -1))
    assert first.over is None
    assert last.over.titles == [f"Step {step}" for step in found.steps]
    shown = [[[value or 0.0 for value in row] for row in grid] for grid in last.over.values]
    torch.testing.assert_close(torch.tensor(shown), torch.tensor(found.weights).float(), rtol=0, atol=5e-5)
    assert last.largest == first.largest == max(w for table in found.weights for row in table for w in row)
    assert "leaves out" not in last.note
    monkeypatch.setattr(evolve, "CELLS", 1)
    few = panel_of(found, f"Step {found.steps[-1]}")
    assert few.over.titles == [first.title, last.title]
    assert few.note.endswith(f"leaves out {len(found.steps) - 2} of {len(found.steps)} steps.")
