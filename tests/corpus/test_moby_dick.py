"""A whole book, end to end with the default model: every "whale" of a plain search is in the store, and no other."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from regard.corpus.store import Store
from tests.support import SHARED

BOOK = SHARED / "data" / "moby_dick" / "moby_dick.txt"
pytestmark = [
    pytest.mark.shared,
    pytest.mark.nightly,  # two minutes
    pytest.mark.skipif(not BOOK.is_file(), reason=f"no {BOOK} (REGARD_SHARED names another place)"),
]


def test_every_whale_is_found(tmp_path: Path) -> None:
    store_folder = tmp_path / "whales.store"
    command = [sys.executable, "-m", "regard", "embed", str(BOOK), "--out", str(store_folder), "--where", "word=whale"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    text = BOOK.read_text(encoding="utf-8")
    expected = [match.span() for match in re.finditer(r"\bwhale\b", text, re.IGNORECASE)]
    assert len(expected) > 1000
    with Store(store_folder) as store:
        whales = store.find("whale")
        assert whales.total == len(expected)
        rows = store.sql('select start, "end", form, word from rows order by start').to_pylist()
        vectors = [np.load(path) for path in sorted((store_folder / "shards").glob("*/vectors.npy"))]
    assert [(row["start"], row["end"]) for row in rows] == expected
    assert [row["form"] for row in rows] == [text[start:end] for start, end in expected]
    assert {row["word"] for row in rows} == {"whale"}
    norms = np.linalg.norm(np.concatenate(vectors).astype(np.float64), axis=-1)
    assert norms.shape == (len(expected), 1)
    assert float(norms.min()) > 1  # an embedding for each: none left at zero
