"""What embed is asked to keep: read, checked and written in one line each."""

import json
from dataclasses import fields

import pytest

from regard.corpus.settings import Settings, Where, chosen_layers_to_store, lookup_key, place_among_stored_layers
from regard.errors import RegardError


@pytest.mark.parametrize(
    ("given", "field", "values"),
    [("word=Bank", "word", ("bank",)), (" lemma = run, Walk,run", "lemma", ("run", "walk"))],
)
def test_where_is_read(given: str, field: str, values: tuple[str, ...]) -> None:
    assert Where.parse(given) == Where(field, values)


@pytest.mark.parametrize("given", ["bank", "word=", "form=bank", "=bank", "word=,", ""])
def test_where_of_something_else_is_refused(given: str) -> None:
    with pytest.raises(RegardError, match="--where: got .*expected word=WORD"):
        Where.parse(given)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("word=don't", "\"don't\" is not one word as a store has them: its words are 'don', 't'"),
        ("word=bank,the bank", "'the bank' is not one word .*: its words are 'the', 'bank'"),
        ("word=银行", "'银行' is not one word .*: its words are '银', '行'"),
        ("word=…", "'…' is not one word .*: it has no letter or digit"),
    ],
)
def test_where_of_what_is_several_words_is_refused(given: str, said: str) -> None:
    with pytest.raises(RegardError, match=f"--where: {said}"):
        Where.parse(given)
    assert Where.parse("lemma=don't").values == ("don't",)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"unit": "lines"}, "unit: got 'lines', expected words or tokens"),
        ({"dtype": "int8"}, "dtype: got 'int8', expected float16 or float32"),
        ({"window": 0}, "window: got 0, expected a whole number above 0"),
        ({"shard": -1}, "shard: got -1"),
        ({"unit": "tokens", "where": Where("word", ("a",))}, "--where needs words"),
        ({"where": Where("lemma", ("a",))}, "needs --lemma LANGUAGE"),
        ({"unit": "tokens", "lemma": "en"}, "--lemma needs words"),
    ],
)
def test_settings_that_mean_nothing_are_refused(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(RegardError, match=said):
        Settings(**wrong)


def test_settings_stand_in_a_manifest_as_json_has_them() -> None:
    settings = Settings(layers=(0, 5), where=Where("word", ("bank", "line")), dtype="float32", window=64, stride=17)
    written = settings.to_json()
    assert json.loads(json.dumps(written)) == written
    assert set(written) == {each.name for each in fields(Settings)}
    assert (written["layers"], written["where"], written["stride"]) == ([0, 5], ["word", ["bank", "line"]], 17)
    assert (Settings().to_json()["layers"], Settings().to_json()["where"]) == (None, None)


def test_layers_are_chosen() -> None:
    assert chosen_layers_to_store(None, 6, "m") == [5]
    assert chosen_layers_to_store((), 6, "m") == [0, 1, 2, 3, 4, 5]
    assert chosen_layers_to_store((3, -1, 0, 5), 6, "m") == [0, 3, 5]
    assert [place_among_stored_layers([2, 5], layer) for layer in (None, -1, 2, 5)] == [1, 1, 0, 1]
    with pytest.raises(RegardError, match="layer -2: the store keeps 2, 5"):
        place_among_stored_layers([2, 5], -2)
    with pytest.raises(RegardError, match="layer 6 is out of range: m has layers 0 to 5"):
        chosen_layers_to_store((6,), 6, "m")


def test_words_are_looked_up_composed_and_folded() -> None:
    assert lookup_key("Cafe\u0301") == lookup_key("CAFÉ") == "café"
    assert lookup_key("STRASSE") == lookup_key("Straße")
