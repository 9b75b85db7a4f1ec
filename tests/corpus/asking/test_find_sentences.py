import pytest

from regard.corpus.asking.find import Concordance
from regard.corpus.asking.find_sentences import NEAR, concordance_sentences
from regard.corpus.asking.occurrences import Line


def found(total: int, shown: int, sort: str = "source", like: str | None = None, **given: bool) -> Concordance:
    line = Line("a ", "bank", " b", "bank", "d", 2, 6, "a.txt", None, {}, "s", 0)
    return Concordance("bank", (line,) * shown, total, sort, like, 5, (), **given)


@pytest.mark.parametrize(
    ("answer", "most", "said"),
    [
        (found(1, 1), None, ["“bank” occurs once; here it is."]),
        (found(1204, 1204), 25, ["“bank” occurs 1,204 times; here are the first 25, in the order of the texts."]),
        (found(7, 7, "left"), 25, ["“bank” occurs 7 times; here are all, by the words before it."]),
        (found(7, 3, "right", "a bank"), None,
         ["“bank” occurs 7 times; here are the first 3, by the words behind it.", NEAR]),
        (found(7, 3, "meaning", "a bank"), None,
         ["“bank” occurs 7 times; here are the first 3, from the largest to the smallest cosine with the embedding "
          "(layer 5) of “bank” in “a bank”.", NEAR]),
        (found(700, 3, "meaning", "a bank", everywhere=True), None,
         ["The store has 700 words; here are the first 3, from the largest to the smallest cosine with the embedding "
          "(layer 5) of “bank” in “a bank”.", NEAR]),
        (found(7, 7, "meaning"), None,
         ["“bank” occurs 7 times; here are all, along the first principal axis of its embeddings, the direction in "
          "which they differ most."]),
    ],
)  # fmt: skip
def test_which_lines_in_which_order(answer: Concordance, most: int | None, said: list[str]) -> None:
    assert concordance_sentences(answer, most) == said


def test_no_promise_of_meaning_where_cosines_are_what_orders() -> None:
    sentences = concordance_sentences(found(7, 3, "meaning", "a bank"))
    assert "not all of the first lines need to have the meaning" in sentences[1]
