from regard.trace.status import Status, largest, merge_statuses


def test_merged_statuses_say_what_either_says() -> None:
    first = Status("m", ("a",), "cpu", "float32", 1e-7, 3, None, ("x",), (), ("both", "one"), 0.5, "")
    second = Status("m", ("b", "a"), "cpu", "float32", None, 5, 2e-7, (), ("y",), ("both", "two"), 0.25, "its own")
    merged = merge_statuses(first, second)
    assert merged == Status(
        "m", ("a", "b"), "cpu", "float32", 1e-7, 5, 2e-7, ("x",), ("y",), ("both", "one", "two"), 0.5, "its own"
    )
    assert merge_statuses(second, first).difference == 1e-7
    assert largest([None, None]) is None
