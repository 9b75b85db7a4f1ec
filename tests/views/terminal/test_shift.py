import io

from rich.console import Console

from regard.views.terminal.shift import show_shift


def test_the_distance_its_test_and_the_senses(bank_store) -> None:
    console = Console(width=80, file=io.StringIO())
    found = bank_store.shift("bank", column="kind", examples=1)
    show_shift(found, console)
    said = console.file.getvalue()
    assert f"{found.change.apd:.4f}" in said
    assert f"p = {found.change.p:.3g}, 999 permutations of documents" in said
    assert "kind=river" in said
    assert "gained" in said
