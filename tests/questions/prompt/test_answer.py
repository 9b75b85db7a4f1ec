import re

import pytest
import torch

from regard.display.panels import Heat, Table
from regard.questions.prompt.answer import NAMED, PromptPainting
from regard.text.word_pieces import wordlike
from tests.support.prompt_heat import painted


def answer(seed: int, joint: bool = False) -> PromptPainting:
    return PromptPainting(painted(seed, joint), "tiny", "3 steps")


@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("seed", range(7))
def test_sentences_hold_against_the_whole_picture(seed: int, joint: bool) -> None:
    found = answer(seed, joint)
    *words, spent = found.findings()
    assert len(words) == NAMED
    ratios = {
        w.name: float((h := found.heat.of(w)[0]).max() / h.mean()) for w in found.heat.prompt.words if not w.special
    }
    said = []
    for sentence in words:
        named, row, column, weight, times = re.fullmatch(
            r"“(.+)” is looked at most at place (\d+),(\d+) of 5 × 7, which gives it (\S+) of its weight: (\S+) times "
            r"what an average place does\.",
            sentence,
        ).groups()  # type: ignore[union-attr]
        heat = found.heat.of(named)[0]
        assert float(heat[int(row), int(column)]) == float(heat.max())
        assert float(weight) == pytest.approx(float(heat.max()), abs=6e-3)
        assert float(times) == pytest.approx(ratios[named], rel=6e-3)
        said.append(named)
    assert said == sorted(ratios, key=lambda name: -ratios[name])[:NAMED]
    shares = [float(each) for each in re.findall(r"(\d\.\d+) to ", spent)]
    assert sum(shares) == pytest.approx(1, abs=0.03)
    assert ("the picture itself" in spent) == joint
    assert "padding (3 tokens that stand for nothing)" in spent


def test_panels_and_rows_have_the_same_numbers() -> None:
    found = answer(11)
    table, *heats, picture, layers = found.panels()
    assert isinstance(table, Table)
    assert isinstance(layers, Heat)
    for row, panel, word in zip(table.rows, heats, found.words, strict=True):
        assert isinstance(panel, Heat)
        assert panel.over is not None
        assert row[0] == panel.title == word.name
        assert wordlike(word.name)
        values = torch.tensor(panel.values)
        assert row[1:3] == [pytest.approx(float(values.mean())), pytest.approx(float(values.max()))]
        at_steps = torch.tensor(panel.over.values)
        torch.testing.assert_close(at_steps[:-1].mean(0), values)
        assert panel.largest is not None
        assert panel.largest >= float(at_steps.max())
        own = [each for each in found.rows() if each["word"] == word.name and each["picture"] == 0]
        assert [each["weight"] for each in own] == pytest.approx(values.flatten().tolist())
    assert len({panel.largest for panel in heats}) == 1, "one scale for all words"
    assert heats[0].largest == max(float(torch.tensor(panel.over.values).max()) for panel in heats)
    assert isinstance(picture, Heat)
    assert {panel.under for panel in heats} == {picture.name}
    assert picture.values == [[pytest.approx(1 - 128 / 255, abs=1e-3)] * 28] * 20, "grey, as large as it is"
    assert [sum(row) for row in layers.values] == pytest.approx([1.0] * 2), "all that a place gives"
    assert found.to_json()["format"] == "regard paint prompt"


def test_what_is_said_of_exactness_names_what_is_left_out() -> None:
    found = answer(3)
    found.heat.guided, found.heat.others = True, {"down.attn1", "up.attn1"}
    said = " ".join(found.exactness())
    assert "weights of 3 steps and 2 layers" in said
    assert "guided" in said
    assert "2 more attention modules" in said
