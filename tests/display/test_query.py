"""What may be asked: values among those that there are, nothing empty, nothing without what it goes with."""

from dataclasses import dataclass

import pytest

from regard.display.query import Query, option
from regard.errors import RegardError


@dataclass(frozen=True, kw_only=True)
class Example(Query):
    """An example."""

    to: str | None = option("A token.", metavar="TOKEN")
    against: str | None = option("Another.", metavar="TOKEN")
    how: str = option("How.", "one", among=("one", "two"))
    steps: int | None = option("Steps.", metavar="N")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (Example(how="three"), "--how: got 'three', expected one of one, two"),
        (Example(to=" "), "--to is empty: pass a token"),
    ],
)
def test_bad_values_are_refused_by_the_callers_name(given: Example, said: str) -> None:
    with pytest.raises(RegardError) as refusal:
        given.check(1, called=lambda name: f"--{name}")
    assert str(refusal.value) == said


def test_what_goes_with_another_is_refused_without_it() -> None:
    with pytest.raises(RegardError, match="^against needs to: two are compared$"):
        Example(against="x").need("against", "to", str, "two are compared")
    Example(against="x", to="y").need("against", "to", str)
    Example(to="y").check(1)
