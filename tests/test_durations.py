"""What the suite takes: the record, that it only gets less, and which tests are slow by it. Nothing is timed here."""

import json

import pytest

from tests.support import ROOT, durations

MOST = {"test": 36_500}  # units of all tests of a tier: to be lowered with a record, never raised
MOST_SLOW = 78  # tests of `make test` that take more than a second


def test_every_recorded_test_is_there() -> None:
    sources: dict[str, str] = {}
    for tier in json.loads(durations.FILE.read_text("utf-8")).values():
        for name in tier["tests"]:
            file, *_, test = name.split("::")
            if file not in sources:
                sources[file] = (ROOT / file).read_text("utf-8") if (ROOT / file).is_file() else ""
            assert f"def {test.split('[')[0]}(" in sources[file], (
                f"{name}: rename it in durations.json, or make test RECORD=1"
            )


@pytest.mark.parametrize("tier", MOST)
def test_no_tier_takes_more_than_it_did(tier: str) -> None:
    assert json.loads(durations.FILE.read_text("utf-8"))[tier]["all"] <= MOST[tier]


def test_no_more_tests_are_slow_than_were() -> None:
    units = json.loads(durations.FILE.read_text("utf-8"))["test"]["tests"]
    assert sum(each >= durations.SLOW for each in units.values()) <= MOST_SLOW
