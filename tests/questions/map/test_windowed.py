"""The matrix of a text in windows, against rows taken from each token's own window by hand."""

import pytest
import torch

from regard.errors import RegardError
from regard.questions.map.whole import matrix, windowed
from tests.support.own_models import opened

TEXT = "A man is fishing on a river bank. She takes money. A bank"


@pytest.mark.parametrize(("kind", "head"), [("gpt", None), ("gpt", 1), ("bert", None)])
def test_received_is_summed_over_each_tokens_own_window(kind: str, head: int | None) -> None:
    model, shares = opened(kind), []
    plan, windows = model.stream(TEXT, window=7, stride=3)
    traces = list(windows)
    assert len(traces) > 2
    found = windowed(plan, iter(traces), 1, head, top=3, far=2, progress=shares.append)
    tokens = plan.encoded.tokens
    source = plan.sources(kind == "gpt")
    expected = torch.zeros(len(tokens), dtype=torch.float64)
    for token, number in enumerate(source):
        weights = traces[number].attention[1].dense().double()
        row = (weights.mean(0) if head is None else weights[head])[token - plan.shift(number)]
        for key in range(len(row)):
            if 0 <= key + plan.shift(number) < len(tokens) and (number, key) not in outside(plan, traces, number):
                expected[key + plan.shift(number)] += row[key]
    assert found.received == pytest.approx(expected.tolist(), abs=1e-5)
    assert sum(shares) == pytest.approx(1)
    assert found.picture is None
    assert found.band is not None
    assert all(pair.distance > 2 for pair in found.pairs)


def outside(plan, traces, number: int) -> set[tuple[int, int]]:
    """The special tokens that a window has and the whole text has not there."""
    first, last = number == 0, number == len(traces) - 1
    size = len(traces[number].tokens)
    return {(number, n) for n in range(plan.before if not first else 0)} | {
        (number, size - 1 - n) for n in range(plan.after if not last else 0)
    }


def test_one_window_is_the_whole_matrix_and_none_is_refused() -> None:
    model = opened("gpt")
    plan, windows = model.stream(TEXT, window=31)
    found, whole = windowed(plan, windows, -1, top=3), matrix(model.trace(TEXT), 1, top=3)
    assert found.receivers == whole.receivers
    assert found.picture == whole.picture
    plan, _ = model.stream(TEXT, window=7)
    with pytest.raises(RegardError, match="a text in no windows has no matrix"):
        windowed(plan, [], 0)
    plan, windows = model.stream(TEXT, window=7)
    with pytest.raises(RegardError, match="layer 2 is out of range"):
        windowed(plan, windows, 2)
