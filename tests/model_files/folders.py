"""Folders that cannot be loaded."""

from typing import Any

import pytest

import regard


def refused(source: Any, says: str) -> None:
    """It is refused, in one line."""
    with pytest.raises(regard.RegardError, match=says) as caught:
        regard.load(source, device="cpu")
    assert "\n" not in str(caught.value)
