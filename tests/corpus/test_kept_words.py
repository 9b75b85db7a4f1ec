from pathlib import Path

import numpy as np
import pytest

from regard.corpus.kept_words import missing_words
from regard.corpus.settings import Where
from tests.support.stores import Document, write_store


@pytest.mark.parametrize(
    ("where", "said"),
    [
        (None, ""),
        ("word=the,bank", ""),
        ("word=bank,bnak", "--where: no word 'bnak' in the texts"),
        ("word=a,b,c,d,e,f,g,h,i,the",
         "--where: no word 'a', 'b', 'c', 'd', 'e', 'f', 'g' and 'h' and 1 more in the texts"),
    ],
)  # fmt: skip
def test_words_without_a_row_are_named(tmp_path: Path, where: str | None, said: str) -> None:
    store = write_store(tmp_path / "s", [([Document("a", "The bank")], np.ones((2, 1, 3), np.float16))])
    assert missing_words(store, where and Where.parse(where)) == said


def test_a_store_without_rows_says_that_it_has_none(tmp_path: Path) -> None:
    store = write_store(tmp_path / "s", [([Document("a", "…")], np.ones((0, 1, 3), np.float16))])
    said = missing_words(store, Where.parse("word=bnak"))
    assert said == "--where: no word 'bnak' in the texts: the store has no rows"
