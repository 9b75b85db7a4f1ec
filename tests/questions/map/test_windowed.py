"""The matrix of a text in windows, against rows taken from each token's own window by hand."""

import pytest

from regard.errors import RegardError
from regard.questions.map.whole import matrix, windowed
from tests.support.own_models import opened

TEXT = "A man is fishing on a river bank. She takes money. A bank"


def test_one_window_is_the_whole_matrix_and_none_is_refused() -> None:
    model = opened("gpt")
    plan, windows = model.stream(TEXT, window=31)
    found, whole = windowed(plan, windows, -1, top=3), matrix(model.trace(TEXT), 1, top=3)
    assert found.receivers == whole.receivers
    assert found.picture == whole.picture
    assert found.link == whole.link
    assert found.findings() == whole.findings()
    plan, _ = model.stream(TEXT, window=7)
    with pytest.raises(RegardError, match="a text in no windows has no matrix"):
        windowed(plan, [], 0)
    plan, windows = model.stream(TEXT, window=7)
    with pytest.raises(RegardError, match="layer 2 is out of range"):
        windowed(plan, windows, 2)
