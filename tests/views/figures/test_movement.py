"""The path picture held against the vectors: what is nearer in its pixels is nearer in all of them, or it is told."""

from itertools import combinations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.explain.texts.summary import summarise
from regard.explain.vectors.movement import movement
from regard.text.tokens import Token
from regard.text.words import Word
from regard.trace.status import Status
from regard.trace.trace import Trace
from tests.support.pictures import paint, pixels


def texts_of(axes) -> str:
    return " ".join(f"{axes.get_title()} {axes.get_xlabel()}".split())


def disagree(near: dict[tuple[str, str], float], cosines: dict[tuple[str, str], float]) -> int:
    """Pairs with one name in common whose distances in a picture are not in the order of their cosines."""
    wrong = 0
    for one, other in combinations(cosines, 2):
        if (one[0] == other[0]) == (one[1] == other[1]) or abs(cosines[one] - cosines[other]) < 1e-5:
            continue
        wrong += (near[one] < near[other]) != (cosines[one] > cosines[other])
    return wrong


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ["money", "river", "water", "loan"],
        ["money"],
        ["money", "river"],
        ["money", "bank"],
        ["poem", "fishing", "cash", "boat", "credit"],
        ["withdrawals", "Money", "money"],
    ],
)
def test_the_nearer_star_has_the_larger_cosine(bank, minilm, words: list[str]) -> None:
    """The cosines are those of the table: 'money' 0.290 and 0.248, 'river' 0.317 and 0.477 in the two texts."""
    summary = summarise(bank, "bank", references=[minilm.trace(word) for word in words])
    axes = paint(summary)
    drawn = pixels(axes)
    cosines = {(each.occurrence, each.word): each.contextual for each in summary.references}
    near = {(o, w): float((drawn[f"end {o}"] - drawn[f"reference {w}"]).norm()) for o, w in cosines}
    assert disagree(near, cosines) == 0
    assert (summary.movement.wrong, summary.movement.disagreement) == (0, None)
    assert "nearer here is nearer in all 384 dimensions" in texts_of(axes)
    assert "final states of " + ", ".join(words) in texts_of(axes)
    assert f"path {summary.occurrences[0].label}" in drawn


@pytest.mark.slow
def test_one_text_with_several_occurrences(minilm) -> None:
    trace = minilm.trace("The bank by the river bank is near the bank that lends money to the other bank.")
    summary = summarise([trace], "bank", references=[minilm.trace("money"), minilm.trace("river")])
    drawn = pixels(paint(summary))
    cosines = {(each.occurrence, each.word): each.contextual for each in summary.references}
    assert len(cosines) == 8
    near = {(o, w): float((drawn[f"end {o}"] - drawn[f"reference {w}"]).norm()) for o, w in cosines}
    assert disagree(near, cosines) == 0 == summary.movement.wrong


def test_without_reference_words_a_path_keeps_how_far_it_is_from_its_start(bank) -> None:
    summary = summarise(bank, "bank")
    axes = paint(summary)
    for occurrence in summary.occurrences:
        path = pixels(axes)[f"path {occurrence.label}"]
        hidden_states = torch.tensor(occurrence.hidden_states, dtype=torch.float64)
        full = torch.cosine_similarity(hidden_states[0], hidden_states[1:], dim=1)
        assert (path[1:] - path[0]).norm(dim=1).argsort().tolist() == full.argsort(descending=True).tolist()
    assert "all states of “bank”" in texts_of(axes)
    assert "dots: the texts' tokens at the end, whose distances may differ" in texts_of(axes)


@pytest.mark.slow
def test_nothing_to_compare_claims_nothing(bank, minilm) -> None:
    axes = paint(summarise(bank[:1], "bank", references=[minilm.trace("money")]))
    assert "nearer" not in texts_of(axes)
    assert {"end 1", "path 1", "reference money"} == set(pixels(axes))
    same = summarise([bank[0], bank[0]], "bank")
    assert torch.equal(*(pixels(paint(same))[f"end {n}"] for n in "12"))


@pytest.mark.slow
def test_both_axes_have_one_scale_and_no_name_lies_on_another(bank, minilm) -> None:
    axes = paint(
        summarise(bank, "bank", references=[minilm.trace(word) for word in ("money", "river", "water", "loan")])
    )
    (a, _), (_, b) = axes.transData.transform([[1, 0], [0, 1]]) - axes.transData.transform([0, 0])
    assert a == pytest.approx(b)
    boxes = [(text.get_text(), text.get_window_extent()) for text in axes.texts]
    assert {"1", "2", "in", "money", "river", "water", "loan"} <= {name for name, _ in boxes}
    assert [f"{a} on {b}" for (a, one), (b, other) in combinations(boxes, 2) if one.overlaps(other)] == []
    assert all(axes.get_window_extent().containsx(box.x0) for _, box in boxes)


STATUS = Status("made up", (), "cpu", "float32", None, 0, None)


def made_up(states: list[torch.Tensor], name: str = "word") -> Trace:
    """A trace of these states (L, M), one token a row."""
    tokens = tuple(Token(n, f"{name}{n}", n, n + 1, n, False) for n in range(len(states[0])))
    text = name if len(tokens) == 1 else "x" * len(tokens)
    return Trace(text, tokens, None, None, None, None, tuple(states), states[-1], None, (), (), STATUS)


def word(trace: Trace, token: int) -> tuple[Trace, Word]:
    return trace, Word(trace.tokens[token].text, token, token + 1, (token,))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 5), st.integers(0, 7), st.integers(3, 40), st.booleans())
def test_what_is_not_kept_is_told_and_only_that(seed: int, count: int, marks: int, width: int, twins: bool) -> None:
    """Random vectors, in more dimensions than two can hold: the count is that of loops over all pairs."""
    generator = torch.Generator().manual_seed(seed)
    states = [torch.randn(count + 2, width, generator=generator) for _ in range(4)]
    references = [
        made_up([torch.randn(1, width, generator=generator) for _ in range(4)], f"r{n}") for n in range(marks)
    ]
    if twins and marks > 1:
        references[1] = made_up(list(references[0].hidden_states), "twin")
    text = made_up(states)
    moved = movement([word(text, n) for n in range(count)], [text], references)

    def cosine(a: torch.Tensor, b: torch.Tensor) -> float:
        return float(torch.cosine_similarity(a.double(), b.double(), dim=0))

    def apart(a: tuple[float, float], b: tuple[float, float]) -> float:
        return float(torch.dist(torch.tensor(a, dtype=torch.float64), torch.tensor(b, dtype=torch.float64)))

    cosines, near = {}, {}
    if references:
        for n in range(count):
            for r, trace in enumerate(references):
                cosines[str(n), f"r{r}"] = cosine(states[-1][n], trace.hidden_states[-1][0])
                near[str(n), f"r{r}"] = apart(moved.words[n][-1], moved.references[r][-1])
        wrong = disagree(near, cosines)
    else:
        wrong = 0
        for n in range(count):
            for kind, others in (("start", range(1, 4)), ("end", [m for m in range(count) if m != n])):
                if kind == "end" and count < 3:
                    continue
                full, flat = {}, {}
                for m in others:
                    if kind == "start":
                        full["x", str(m)] = cosine(states[0][n], states[m][n])
                        flat["x", str(m)] = apart(moved.words[n][0], moved.words[n][m])
                    else:
                        full["x", str(m)] = cosine(states[-1][n], states[-1][m])
                        flat["x", str(m)] = apart(moved.words[n][-1], moved.words[m][-1])
                wrong += disagree(flat, full)
    assert moved.wrong == wrong
    assert (moved.disagreement is not None) == (wrong > 0)
    if moved.disagreement is not None:
        assert moved.disagreement.startswith(
            f"{wrong} of {moved.compared} comparisons of near and far come out otherwise"
        )
        assert f"in all {width} dimensions" in moved.disagreement


@pytest.mark.slow
def test_a_picture_that_cannot_keep_all_says_so(minilm) -> None:
    """Near and far among thirteen occurrences and twelve words do not fit on a plane."""
    trace = minilm.trace("The bank near a bank with a bank and another bank beside the bank: bank, bank, bank, bank.")
    words = ["account", "shore", "loan", "fish", "tree", "coin", "boat", "cash", "night", "poem", "stone", "bird"]
    summary = summarise([trace], "bank", references=[minilm.trace(each) for each in words])
    axes = paint(summary)
    drawn = pixels(axes)
    cosines = {(each.occurrence, each.word): each.contextual for each in summary.references}
    near = {(o, w): float((drawn[f"end {o}"] - drawn[f"reference {w}"]).norm()) for o, w in cosines}
    moved = summary.movement
    assert abs(disagree(near, cosines) - moved.wrong) <= 0.01 * moved.compared  # but for those near a tie
    assert moved.wrong > 0
    assert f"Not to be read off as it stands: {moved.wrong} of {moved.compared} " in texts_of(axes)
    assert "nearer here is nearer" not in texts_of(axes)


def test_massive_activations_are_left_out_and_named() -> None:
    generator = torch.Generator().manual_seed(3)
    states = [torch.randn(7, 24, generator=generator) for _ in range(3)]
    text = made_up(states)
    before = movement([word(text, 4)], [text], [])
    assert before.left_out == []
    longer = [state.clone() for state in states]
    longer[1][0] *= 400 / longer[1][0].norm()  # in one layer alone
    text = made_up(longer)
    median = float(longer[1].norm(dim=1).median())
    (left,) = movement([word(text, 4)], [text], []).left_out
    assert (left.kind, left.name, left.of) == ("token", "word0", "1")
    assert left.times == pytest.approx(400 / median, rel=1e-5)
    moved = movement([word(text, 0), word(text, 4)], [text], [], ["1a", "1b"])
    assert [(each.kind, each.of) for each in moved.left_out] == [("word", "1a")]
    assert moved.words[0] is None
    assert moved.words[1] == movement([word(text, 4)], [text], []).words[0]
    assert moved.tokens[0][0] is None
    alone = movement([word(text, 0)], [text], [])
    assert (alone.words, alone.disagreement, alone.tokens) == ([None], None, [[None] * 7])
