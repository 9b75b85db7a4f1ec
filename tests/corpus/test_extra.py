import math

import pytest

from regard.corpus.extra import import_from_corpus_extra
from regard.errors import RegardError


def test_what_is_there_is_imported_and_what_is_not_names_the_extra(monkeypatch) -> None:
    assert import_from_corpus_extra("math") is math
    monkeypatch.setitem(__import__("sys").modules, "sklearn.cluster", None)  # as if it were not installed
    with pytest.raises(RegardError, match=r'scikit-learn is not installed .*pip install "regard\[corpus\]"'):
        import_from_corpus_extra("sklearn.cluster")
