from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from regard.corpus.manifest import ModelSummary
from regard.corpus.places import Place, embed_places
from regard.corpus.store import Store
from tests.support.stores import Document, word_rows, write_store

RIVER = ["The boat drifted towards the muddy bank of the river", "Willows grew along the bank of the river",
         "The river burst its bank after the rain", "Reeds covered the far bank of the river",
         "Otters slid down the steep bank into the river", "The canoe was pulled up on the bank of the stream",
         "Fishermen lined the bank of the stream at dawn", "They camped on the left bank of the river"]  # fmt: skip
MONEY = ["She opened an account at the bank to save money", "The bank raised its interest rates for loans",
         "He withdrew money from the bank", "The bank refused to give him a loan of money",
         "Robbers stole money from the bank on Friday", "My bank charges a fee for loans",
         "The bank manager counted the money", "Shares of the bank fell after loans went bad"]  # fmt: skip


@pytest.fixture(scope="session")
def bank_folder(tmp_path_factory: pytest.TempPathFactory, minilm) -> Path:
    """Sentences with "bank" in two senses, in two shards, embedded one by one; metadata say which."""
    documents = [Document(f"r{n}", text + ".", {"kind": "river"}) for n, text in enumerate(RIVER)]
    documents += [Document(f"m{n}", text + ".", {"kind": "money"}) for n, text in enumerate(MONEY)]
    shards = []
    for some in (documents[::2], documents[1::2]):
        places = [Place(some[row["part"]].text, row["start"], row["end"]) for row in word_rows(some)]
        shards.append((some, embed_places(minilm, places, [3, 5])[:, :, 0].astype(np.float16)))
    model = ModelSummary("all-MiniLM-L6-v2", "all-MiniLM-L6-v2", "", 6, 12, 384)
    return write_store(tmp_path_factory.mktemp("stores") / "bank", shards, model=model, layers=(3, 5))


@pytest.fixture
def bank_store(bank_folder: Path, minilm) -> Iterator[Store]:
    """That store, with the model that is loaded already."""
    with Store(bank_folder) as opened:
        vars(opened)["model"] = minilm
        yield opened
