import pytest

from regard.corpus.asking.occurrences import Line
from regard.questions.find.answer import Concordance
from regard.questions.find.sentences import NEAR, of_lines


def found(total: int, shown: int, sort: str = "source", like: str | None = None, **given: bool) -> Concordance:
    line = Line("a ", "bank", " b", "bank", "d", 2, 6, "a.txt", None, {}, "s", 0)
    return Concordance("bank", (line,) * shown, total, sort, like, 5, (), **given)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (found(1, 1), ["“bank” occurs once; here it is."]),
        (found(1204, 1204), ["“bank” occurs 1,204 times; they stand here in the order of the texts."]),
        (found(7, 7, "left"), ["“bank” occurs 7 times; they stand here by the words before it."]),
        (found(7, 3, "right", "a bank"),
         ["“bank” occurs 7 times; here are the first 3, by the words behind it.", NEAR]),
        (found(7, 3, "meaning", "a bank"),
         ["“bank” occurs 7 times; here are the first 3, from the largest to the smallest cosine with the embedding "
          "(layer 5) of “bank” in “a bank”.", NEAR]),
        (found(700, 3, "meaning", "a bank", everywhere=True),
         ["The store has 700 words; here are the first 3, from the largest to the smallest cosine with the embedding "
          "(layer 5) of “bank” in “a bank”.", NEAR]),
        (found(7, 7, "meaning"),
         ["“bank” occurs 7 times; they stand here along the first principal axis of its embeddings, the direction in "
          "which they differ most."]),
    ],
)  # fmt: skip
def test_which_lines_in_which_order(answer: Concordance, said: list[str]) -> None:
    assert of_lines(answer) == said


def test_no_promise_of_meaning_where_cosines_are_what_orders() -> None:
    sentences = of_lines(found(7, 3, "meaning", "a bank"))
    assert "not all of the first lines need to have the meaning" in sentences[1]
