import io

from rich.console import Console

from regard.corpus.asking.sense_sentences import sense_sentences
from regard.views.terminal.senses import show_senses


def test_senses_their_words_and_the_way_they_were_found(bank_store) -> None:
    console = Console(width=80, file=io.StringIO())
    found = bank_store.senses("bank", checked=2, words=1, examples=1)
    show_senses(found, console)
    said = console.file.getvalue()
    assert "“bank”: 16 occurrences, 2 senses" in said
    for sense in found.senses:
        assert f"sense {sense.name}: {sense.occurrences} ({sense.share:.0%})" in said
        assert sense.words[0].word in said
    assert f"2: {found.silhouettes[2]:.2f}" in said
    assert max(map(len, said.splitlines())) <= 80 + 40


def test_what_could_not_be_told_apart_is_no_sense(cloud_store) -> None:
    console = Console(width=200, file=io.StringIO())
    found = cloud_store.senses("bank")
    show_senses(found, console)
    said = console.file.getvalue()
    assert sense_sentences(found)[0] in said
    assert "could not be told apart: 30" in said
    assert "sense 1" not in said
    assert "100%" not in said
