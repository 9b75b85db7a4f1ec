"""Documents in shards: all of them, in order, under names that say what is in them."""

from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from regard.corpus.reading.document import Document, Rejected
from regard.corpus.settings import Settings
from regard.corpus.writing.plan_shards import plan_shards
from tests.corpus.test_manifest import MADE


def documents(lengths: list[int]) -> list[Document]:
    return [Document(f"d{n}", "x" * length, 0, "a.txt", None, {}) for n, length in enumerate(lengths)]


@given(st.lists(st.integers(1, 30), max_size=20), st.integers(1, 40))
def test_every_document_once_in_shards_that_are_full(lengths: list[int], size: int) -> None:
    manifest = replace(MADE, settings=Settings(shard=size).to_json())
    rejected: list[Rejected] = []
    bad = Rejected("b.txt", 3, "empty")
    shards = list(plan_shards([*documents(lengths), bad], manifest, rejected))
    assert [each for shard in shards for each in shard.documents] == documents(lengths)
    assert rejected == [bad]
    assert all(shard.characters <= size or len(shard.documents) == 1 for shard in shards)
    pairs = pairwise(shards)
    assert all(one.characters + len(other.documents[0].text) > size for one, other in pairs)
    assert len({shard.name for shard in shards}) == len(shards)


def test_names_depend_on_texts_places_and_settings() -> None:
    def name(document: Document, settings: Settings | None = None, digest: str = "ab12") -> str:
        manifest = replace(MADE, settings=(settings or Settings()).to_json(), model=replace(MADE.model, digest=digest))
        return next(plan_shards([document], manifest, [])).name

    (plain,) = documents([3])
    others = [
        replace(plain, text="xyx"), replace(plain, id="e"), replace(plain, start=1), replace(plain, line=1),
        replace(plain, metadata={"a": "b"}),
    ]  # fmt: skip
    names = [
        name(plain),
        *(name(each) for each in others),
        name(plain, Settings(dtype="float32")),
        name(plain, None, "c"),
    ]
    assert len(set(names)) == len(names)
    assert name(plain) == name(replace(plain))
