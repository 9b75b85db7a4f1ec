"""The picture of a word's way held against the vectors: what is nearer in its pixels is nearer in all of them."""

import json
from itertools import combinations

import pytest
import torch

from regard.display.elements.canvas import all_axes
from regard.explain.texts.summary import summarise
from tests.support.pages import commands, pages
from tests.support.pictures import paint, painted, pixels, plane_of

SENTENCES = [f"{begin} the bank{end}" for begin in ("They saw", "We spoke of", "It was", "I know")
             for end in (".", " today.", ", he said.")]  # fmt: skip


@pytest.fixture(scope="module")
def control(minilm):
    return minilm.trace(SENTENCES, logits=False, attention_outputs=False)


def texts_of(figure) -> str:
    """All that is written above and below the panels."""
    found = [f"{part.get_suptitle()} {part.get_supxlabel()}" for part in figure.subfigs]
    return " ".join(" ".join([*found, *(axes.get_title() for axes in all_axes(figure))]).split())


def disagree(near: dict[tuple[str, str], float], cosines: dict[tuple[str, str], float]) -> int:
    """Pairs with one name in common whose distances in a picture are not in the order of their cosines."""
    wrong = 0
    for one, other in combinations(cosines, 2):
        if (one[0] == other[0]) == (one[1] == other[1]) or abs(cosines[one] - cosines[other]) < 1e-5:
            continue
        wrong += (near[one] < near[other]) != (cosines[one] > cosines[other])
    return wrong


def beside_references(summary) -> dict[tuple[str, str], float]:
    """The cosine of every end, and of the neutral mean, to every reference word: the numbers beside the picture."""
    found = {(each.occurrence, each.word): each.contextual for each in summary.references}
    return found | {("neutral", each.word): each.mean[-1] for each in summary.neutral}


def distances(axes, cosines: dict[tuple[str, str], float]) -> dict[tuple[str, str], float]:
    """How far the marks of these are apart, in pixels."""
    drawn = pixels(axes)
    return {
        (end, word): float((drawn[f"end {end}" if end != "neutral" else end] - drawn[f"reference {word}"]).norm())
        for end, word in cosines
    }


def arrows(axes) -> dict[str, tuple[tuple[float, float], tuple[float, float]]]:
    return {each.get_gid().removeprefix("arrow "): (each.xyann, each.xy) for each in axes.texts if each.get_gid()}


@pytest.mark.parametrize(
    "words",
    [
        ["money", "river", "water", "loan"],
        ["money", "deposit", "nature", "river", "water"],
        ["money", "river"],
        ["money", "bank"],
        ["poem", "fishing", "cash", "boat", "credit"],
        ["withdrawals", "Money", "money"],
    ],
)
def test_each_arrow_goes_where_the_cosines_go(bank, minilm, control, words: list[str]) -> None:
    """Seen from ◆, ★ and ○: the cosines are those of the table, the neutral mean's those of the dotted line."""
    references = [minilm.trace(word) for word in words]
    for neutral in (control, ()):
        summary = summarise(bank, "bank", references=references, control=neutral)
        axes = paint(summary)
        cosines = beside_references(summary)
        assert len(cosines) == len(words) * (3 if neutral else 2)
        assert disagree(distances(axes, cosines), cosines) == 0
        assert summary.movement.tried[-1].wrong == 0
        drawn, found = pixels(axes), arrows(axes)
        assert {"end 1", "end 2", *(f"reference {word}" for word in words)} <= set(drawn)
        assert bool(found) == bool(neutral)
        for label, (start, end) in found.items():
            for word in words:
                mark = drawn[f"reference {word}"]
                from_, to = (torch.tensor(axes.transData.transform(point)).double() for point in (start, end))
                rises = cosines[label, word] > cosines["neutral", word]
                assert bool((to - mark).norm() < (from_ - mark).norm()) == rises, (label, word)


def test_one_text_with_several_occurrences(minilm) -> None:
    trace = minilm.trace("The bank by the river bank is near the bank that lends money to the other bank.")
    summary = summarise([trace], "bank", references=[minilm.trace("money"), minilm.trace("river")])
    cosines = beside_references(summary)
    assert len(cosines) == 8
    assert disagree(distances(paint(summary), cosines), cosines) == 0 == summary.movement.tried[-1].wrong


@pytest.mark.parametrize("count", [1, 2])
def test_without_reference_words_every_state_is_where_it_is_compared(bank, count: int) -> None:
    """Along a path every state from every state; two paths layer by layer; from the start all states of both."""
    summary = summarise(bank[:count], "bank")
    axes = paint(summary)
    drawn = pixels(axes)
    placed = torch.stack([drawn[f"path {o.label}"] for o in summary.occurrences])  # (paths, states, 2)
    states = torch.tensor([o.hidden_states for o in summary.occurrences], dtype=torch.float64)
    assert placed.shape == (*states.shape[:2], 2)
    states = states / states.norm(dim=-1, keepdim=True)
    for path in range(count):
        for state in range(7):
            for other in range(count):
                near = (placed[other] - placed[path, state]).norm(dim=-1)
                full = states[other] @ states[path, state]
                if other == path or state == 0:
                    for a, b in combinations(range(7), 2):
                        if abs(full[a] - full[b]) > 1e-5:
                            assert bool(near[a] < near[b]) == bool(full[a] > full[b]), (path, state, other, a, b)
    if count == 2:
        near, full = (placed[0] - placed[1]).norm(dim=-1), (states[0] * states[1]).sum(-1)
        assert near.argsort().tolist() == full.argsort(descending=True).tolist()
    assert "nearer here is nearer in all 384 dimensions" in texts_of(axes.figure.figure)


def test_start_and_end_alone_where_the_layers_do_not_fit(minilm, bank) -> None:
    more = minilm.trace(["We sat on the grassy bank and watched the water.", "I deposited my money in the bank."])
    summary = summarise([*bank, *more], "bank")
    assert summary.movement.states == [0, 6]
    figure = painted(summary)
    drawn = pixels(plane_of(figure))
    ends = torch.stack([drawn[f"path {n}"] for n in "1234"])
    assert ends.shape == (4, 2, 2)
    states = torch.tensor([o.hidden_states for o in summary.occurrences], dtype=torch.float64)[:, [0, -1]]
    states = states / states.norm(dim=-1, keepdim=True)
    for start in range(4):  # from each start, every end
        near, full = (ends[:, 1] - ends[start, 0]).norm(dim=-1), states[:, 1] @ states[start, 0]
        assert near.argsort().tolist() == full.argsort(descending=True).tolist()
    assert "What is between the first state and the last is not drawn on the plane" in texts_of(figure)


def test_what_fits_no_plane_is_not_drawn_and_told_so(minilm) -> None:
    """Near and far among thirteen occurrences and twelve words do not fit on a plane: the curves stand alone."""
    trace = minilm.trace("The bank near a bank with a bank and another bank beside the bank: bank, bank, bank, bank.")
    words = ["account", "shore", "loan", "fish", "tree", "coin", "boat", "cash", "night", "poem", "stone", "bird"]
    summary = summarise([trace], "bank", references=[minilm.trace(each) for each in words])
    figure = painted(summary)
    moved = summary.movement
    assert moved.tried[-1].wrong > 0
    assert (moved.states, set(moved.words), set(moved.references)) == ([], {None}, {None})
    assert plane_of(figure) is None
    said = texts_of(figure)
    assert f"Only the curves are drawn, no plane: {moved.tried[-1].wrong:,} of {moved.tried[-1].compared:,} " in said
    assert "nearer here is nearer" not in said
    lines = [line.get_gid() for axes in all_axes(figure) for line in axes.lines]
    assert {f"curve {o.label} {word}" for o in summary.occurrences for word in words} <= set(lines)


def test_nothing_to_compare_draws_no_plane(bank, minilm) -> None:
    summary = summarise(bank[:1], "bank", references=[minilm.trace("money")])
    figure = painted(summary)
    assert plane_of(figure) is None
    assert "there are no two distances to compare" in texts_of(figure)


def test_both_axes_have_one_scale_and_no_name_lies_on_another(bank, minilm, control) -> None:
    references = [minilm.trace(word) for word in ("money", "river", "water", "loan")]
    axes = paint(summarise(bank, "bank", references=references, control=control))
    (a, _), (_, b) = axes.transData.transform([[1, 0], [0, 1]]) - axes.transData.transform([0, 0])
    assert a == pytest.approx(b)
    boxes = [(text.get_text(), text.get_window_extent()) for text in axes.texts if text.get_text()]
    assert {"1", "2", "neutral", "money", "river", "water", "loan"} == {name for name, _ in boxes}
    assert [f"{a} on {b}" for (a, one), (b, other) in combinations(boxes, 2) if one.overlaps(other)] == []
    assert all(axes.get_window_extent().containsx(box.x0) for _, box in boxes)


def shipped() -> list[list[str]]:
    """Each command of README and the pages that draws a followed word of the default model, once."""
    found = {}
    for page in pages("sh"):
        for call in commands(page):
            if call[0] == "see" and "--word" in call and not {"--model", "--open"} & set(call):
                kept = [
                    word for n, word in enumerate(call) if not {word, call[n - 1]} & {"--figure", "--html", "--json"}
                ]
                found[tuple(kept)] = call
    return [list(call) for call in found]


def test_every_shipped_picture_goes_where_the_cosines_go(regard_command) -> None:
    """Each line that they draw, as seen from each ◆: the distance falls where the cosine rises, and only there."""
    calls, lines = shipped(), 0
    assert any("--with" in call for call in calls)
    for call in calls:
        done = regard_command(*call, "--json", "-")
        assert done.returncode == 0, done.stderr
        seen = json.loads(done.stdout)
        moved, labels = seen["movement"], [each["label"] for each in seen["occurrences"]]
        if not moved["states"]:
            assert {*moved["words"], *moved["references"], moved["neutral"]} == {None}
            continue
        if not moved["fitted"]:
            states = torch.tensor([each["hidden_states"] for each in seen["occurrences"]], dtype=torch.float64)
            for path, own in zip(moved["words"], states[:, moved["states"]], strict=True):
                for mark, point in zip(own, path, strict=True):
                    full = torch.cosine_similarity(own, mark[None], dim=1)
                    near = (torch.tensor(path) - torch.tensor(point)).norm(dim=1)
                    assert near.argsort().tolist() == full.argsort(descending=True).tolist()
                    lines += 1
            continue
        cosines = {(each["occurrence"], each["word"]): each["contextual"] for each in seen["references"]}
        words = list(dict.fromkeys(word for _, word in cosines))
        places = dict(zip(labels, (path and path[-1] for path in moved["words"]), strict=True))
        if moved["neutral"]:
            cosines |= {("neutral", each["word"]): each["mean"][-1] for each in seen["neutral"]}
            places["neutral"] = moved["neutral"]
        marks = dict(zip(words, moved["references"], strict=True))
        near = {
            (end, word): float((torch.tensor(places[end]).double() - torch.tensor(marks[word]).double()).norm())
            for end, word in cosines
        }
        assert disagree(near, cosines) == 0, call
        lines += len(near)
    assert lines > 0
