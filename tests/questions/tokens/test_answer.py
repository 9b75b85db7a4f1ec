"""What is kept of tokens: a row each, with the text that its characters are."""

import json
from pathlib import Path

from regard.questions.tokens.answer import tokens


def test_rows_and_json(tmp_path: Path) -> None:
    texts = ["fishing on a riverbank", "a bank, a bank"]
    found = tokens(texts)
    rows = found.rows()
    assert [row["string"] for row in rows if row["text"] == 1][1:-1] == ["fishing", "on", "a", "river", "##bank"]
    for row in rows:
        own = texts[int(row["text"]) - 1][int(row["start"]) : int(row["end"])]
        assert own == str(row["string"]).removeprefix("##") or row["special"]
    assert {row["times"] for row in rows if row["text"] == 2} == {1, 2}
    data = json.loads(json.dumps(found.to_json(tmp_path / "a.json")))
    assert (data["format"], data["tokenizer"], data["texts"]) == ("regard tokens", "the default model", texts)
    assert [[token["id"] for token in each] for each in data["tokens"]] == [
        [row["id"] for row in rows if row["text"] == n] for n in (1, 2)
    ]
    assert data["findings"] == found.findings()
