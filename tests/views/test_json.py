import json
import math
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest

from regard.explain.overview import see
from regard.views.json import as_data, write_json


@pytest.fixture(scope="module")
def schema():
    return json.loads(files("regard.views").joinpath("see.schema.json").read_text(encoding="utf-8"))


def test_every_file_fits_the_schema(bank, minilm, schema, tmp_path: Path) -> None:
    jsonschema.Draft202012Validator.check_schema(schema)
    for sight in (see(bank, "bank", references=[minilm.trace("money")], layer=1), see(bank), see(bank[:1], "bank")):
        write_json(sight, tmp_path / "a.json")
        jsonschema.validate(json.loads((tmp_path / "a.json").read_text(encoding="utf-8")), schema)


def test_floats_keep_their_precision(bank, tmp_path: Path) -> None:
    sight = see(bank, "bank")
    write_json(sight, tmp_path / "a.json")
    read = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    assert read["occurrences"][0]["learned"] == bank[0].learned[11].tolist()
    assert read["pairs"][0]["states"] == sight.pairs[0].states


def test_the_version_is_the_schemas(bank, schema) -> None:
    assert as_data(see(bank))["version"] == schema["properties"]["version"]["const"] == 3


def test_what_is_no_number_is_null(bank) -> None:
    sight = see(bank, "bank")
    object.__setattr__(sight.pairs[0], "learned", math.nan)
    assert as_data(sight)["pairs"][0]["learned"] is None
