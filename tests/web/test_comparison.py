from dataclasses import replace

from regard.trace.trace import Trace
from regard.web.comparison import comparable, comparison_data, comparison_name


def test_the_calls_that_both_have() -> None:
    before, after = {(0, 0): 0, (1, 0): 1, (2, 0): 2}, {(0, 0): 3, (2, 0): 4}
    assert comparison_data("a", before, after) == {"name": "a", "before": [0, 2], "after": [3, 4]}
    assert comparison_data("a", before, {(5, 0): 1}) is None


def test_what_was_done_names_a_comparison(bank: list[Trace]) -> None:
    one, other = bank[0], replace(bank[0])
    assert comparable(one, other)
    assert not comparable(one, bank[1])
    other.status = replace(one.status, notes=(*one.status.notes, "ablated: head 5 of layer 3"))
    assert comparison_name(one, other, ("a", "b")) == "before and after: ablated: head 5 of layer 3"
    assert comparison_name(other, one, ("a", "b")) == "a and b"
    other.status = replace(one.status, model="another")
    assert comparison_name(one, other, ("a", "b")) == "all-MiniLM-L6-v2 and another"
