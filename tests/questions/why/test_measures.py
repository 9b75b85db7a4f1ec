"""What `regard why` measures is worded once: the schema of its JSON says it as notes and sentences do."""

import json
from importlib.resources import files
from typing import Any

from regard.explain.causes.token_rankings import AGREEMENTS
from regard.questions.why.measures import CHANGED, CONTRIBUTION, WEIGHT


def test_what_rankings_are_by_are_the_measures_that_change() -> None:
    assert set(CHANGED) == set(AGREEMENTS)
    assert all(each.of_tokens == each.of_heads for each in CHANGED.values())


def test_the_schema_says_what_notes_say() -> None:
    schema: Any = json.loads(files("regard.questions.why").joinpath("why.schema.json").read_text(encoding="utf-8"))
    said = {name: each.get("description", "") for name, each in schema["$defs"]["cause"]["properties"].items()}
    for name, change in CHANGED.items():
        assert said[name].startswith(change.of_tokens)
    for measure in (CONTRIBUTION, WEIGHT):
        assert said[measure.heading] == f"Of a token: {measure.of_tokens}. Of a head: {measure.of_heads}."
