import io

from rich.console import Console

from regard.corpus.asking.shift_sentences import shift_sentences
from regard.views.terminal.shift import show_shift


def test_the_distance_its_test_and_the_senses(bank_store) -> None:
    console = Console(width=80, file=io.StringIO())
    found = bank_store.shift("bank", column="kind", examples=1)
    show_shift(found, console)
    said = console.file.getvalue()
    assert f"{found.change.apd:.4f}" in said
    assert f"p = {found.change.p:.3g}, 999 permutations of documents" in " ".join(said.split())
    assert "kind=river" in said
    assert "gained" in said
    wide = Console(width=300, file=io.StringIO())
    show_shift(found, wide)
    for sentence in shift_sentences(found):
        assert sentence in wide.file.getvalue()


def test_what_could_not_be_told_apart_is_no_sense(cloud_store) -> None:
    console = Console(width=300, file=io.StringIO())
    found = cloud_store.shift("bank", column="age")
    show_shift(found, console)
    said = console.file.getvalue()
    assert shift_sentences(found)[1] in said
    assert "sense 1" not in said
