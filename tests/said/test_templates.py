"""A sentence that nothing parses fails, one that is not true fails; and no sentence is held by a renderer."""

import pytest

from tests.said.templates import Template, hold, largest, shows


def most(groups, numbers) -> None:
    largest(groups["name"], numbers)
    shows(groups["weight"], numbers[groups["name"]])


MOST = Template("most", r"Most goes to “(?P<name>.+)” \((?P<weight>[\d.]+)\)\.", most)


def test_a_true_sentence_holds_and_is_counted() -> None:
    assert hold(["Most goes to “a” (0.75)."], {"a": 0.754, "b": 0.2}, [MOST]) == {"most": 1}


@pytest.mark.parametrize(
    ("sentence", "numbers", "templates", "why"),
    [
        ("Most goes to “b” (0.20).", {"a": 0.75, "b": 0.2}, [MOST], "not true of its numbers"),
        ("Most goes to “a” (0.76).", {"a": 0.75, "b": 0.2}, [MOST], "is printed"),
        ("Much goes to “a”.", {"a": 0.75}, [MOST], "no template parses"),
        ("Most goes to “a” (0.75).", {"a": 0.75}, [MOST, MOST], "all parse"),
    ],
)
def test_what_does_not_hold_fails(sentence, numbers, templates, why) -> None:
    with pytest.raises(AssertionError, match=why):
        hold([sentence], numbers, templates)
