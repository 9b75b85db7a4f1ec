"""A text and an outcome whose parts are looked for."""

from typing import Any

import pytest

from regard.explain.causes.outcomes import Outcome, cosine

RIVER, MONEY = "A man on a river bank.", "Money in a town bank."


@pytest.fixture(scope="module")
def river(minilm: Any) -> Any:
    return minilm.trace(RIVER)


@pytest.fixture(scope="module")
def outcome(minilm: Any) -> Outcome:
    return cosine("bank", minilm.trace(MONEY)["bank"], "the bank of money")
