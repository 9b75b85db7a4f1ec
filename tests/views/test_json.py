import json
import math
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest

from regard.explain.texts.summary import summarise
from regard.views.json import summary_data, write_json


@pytest.fixture(scope="module")
def schema():
    return json.loads(files("regard.views").joinpath("see.schema.json").read_text(encoding="utf-8"))


def test_every_file_fits_the_schema(bank, minilm, schema, tmp_path: Path) -> None:
    jsonschema.Draft202012Validator.check_schema(schema)
    for summary in (
        summarise(bank, "bank", references=[minilm.trace("money")], layer=1),
        summarise(bank),
        summarise(bank[:1], "bank"),
    ):
        write_json(summary_data(summary), tmp_path / "a.json")
        jsonschema.validate(json.loads((tmp_path / "a.json").read_text(encoding="utf-8")), schema)


def test_floats_keep_their_precision(bank, tmp_path: Path) -> None:
    summary = summarise(bank, "bank")
    write_json(summary_data(summary), tmp_path / "a.json")
    read = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    assert read["occurrences"][0]["learned"] == bank[0].learned[11].tolist()
    assert read["pairs"][0]["hidden_states"] == summary.pairs[0].hidden_states


def test_the_version_is_the_schemas(bank, schema) -> None:
    assert summary_data(summarise(bank))["version"] == schema["properties"]["version"]["const"] == 1


def test_what_is_no_number_is_null(bank) -> None:
    summary = summarise(bank, "bank")
    object.__setattr__(summary.pairs[0], "learned", math.nan)
    assert summary_data(summary)["pairs"][0]["learned"] is None
