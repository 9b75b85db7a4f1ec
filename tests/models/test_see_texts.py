"""Looking at texts in one line is tracing them and looking at the traces."""

import regard
from regard.explain.texts.summary import summarise


def test_several_texts_in_one_line(minilm) -> None:
    seen = regard.see(["a river bank", "a money bank"], "bank", references="river", model=minilm)
    traces = minilm.trace(["a river bank", "a money bank"])
    assert seen.summary.pairs == summarise(traces, "bank").pairs
    assert [each.text for each in seen.traces] == ["a river bank", "a money bank"]
    assert [each.word for each in seen.summary.references] == ["river", "river"]
    assert regard.see("a river bank", model=minilm).summary.word is None
