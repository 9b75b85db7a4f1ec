"""Static vectors beside a summary: of a file and of the model's own table."""

from pathlib import Path

import pytest

from regard.cli.selection import Selection
from regard.cli.static_vectors import StaticVectors
from regard.errors import RegardError
from regard.explain.texts.summary import summarise


def test_what_is_refused(tmp_path: Path) -> None:
    for chosen in (Selection(), Selection(word="bank")):
        with pytest.raises(RegardError, match="--static needs --word and --with"):
            StaticVectors("learned").check(chosen)
        StaticVectors(None).check(chosen)
    with pytest.raises(RegardError, match=r"none.txt' cannot be read: No"):
        StaticVectors(str(tmp_path / "none.txt")).check_file()
    StaticVectors("learned").check_file()


def test_a_file_s_and_the_model_s(bank, minilm, tmp_path: Path) -> None:
    references = [minilm.trace("river"), minilm.trace("money")]
    seen = summarise(bank, "bank", references=references)
    assert StaticVectors(None).beside(seen, bank, references) is seen
    learned = StaticVectors("learned").beside(seen, bank, references).static
    assert learned is not None
    assert learned.source == "the learned embeddings of all-MiniLM-L6-v2"
    assert [each.word for each in learned.words] == ["bank", "river", "money"]
    assert learned.width == 384
    file = tmp_path / "glove.txt"
    file.write_text("bank 3 4 0\nriver 0 5 0\n")
    found = StaticVectors(str(file)).beside(seen, bank, references).static
    assert found is not None
    assert found.source == str(file)
    assert [each.cosine for each in found.words] == pytest.approx([1.0, 0.8, None])
