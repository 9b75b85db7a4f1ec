from dataclasses import replace

from regard.trace.status import (
    DEFINITION,
    UNKNOWN,
    Status,
    exactness,
    largest_status_difference,
    merge_statuses,
    note_sentences,
)


def test_merged_statuses_say_what_either_says() -> None:
    first = Status("m", ("a",), "cpu", "float32", 1e-7, 3, None, ("x",), (), ("both", "one"), 0.5, "")
    second = Status("m", ("b", "a"), "cpu", "float32", None, 5, 2e-7, (), ("y",), ("both", "two"), 0.25, "its own")
    merged = merge_statuses(first, second)
    assert merged == Status(
        "m", ("a", "b"), "cpu", "float32", 1e-7, 5, 2e-7, ("x",), ("y",), ("both", "one", "two"), 0.5, "its own"
    )
    assert merge_statuses(second, first).difference == 1e-7
    assert largest_status_difference([None, None]) is None


def test_unknown_parts_of_embeddings_are_noted() -> None:
    missed = replace(UNKNOWN, embedding_difference=0.25, notes=("a",))
    assert note_sentences([UNKNOWN, missed]) == [
        "A.",
        "The known parts of the embeddings differ from their sum by 2.5e-01.",
    ]
    assert note_sentences([replace(missed, embedding_difference=9e-4)]) == ["A."]


def test_one_sentence_says_how_exact_runs_are() -> None:
    near = replace(UNKNOWN, difference=1.25e-7, rows_compared=48)
    far = replace(UNKNOWN, difference=3e-6, rows_compared=7, compared_with="its own")
    assert exactness([near]) == "Checked: weights within 1.2e-07 of the model's own attention (48 rows)."
    assert exactness([far, near, UNKNOWN]) == "Checked: weights within 3.0e-06 of the model's own attention (48 rows)."
    far.compared_with = DEFINITION
    assert exactness([far, near]) == "Checked: weights within 3.0e-06 of the definition of attention (48 rows)."
    assert exactness([UNKNOWN, UNKNOWN]).startswith("Not checked: ")
