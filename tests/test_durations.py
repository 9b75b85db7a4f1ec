"""What the suite takes: the record, that it only gets less, and which tests are slow by it. Nothing is timed here."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support import ROOT, durations

MOST = {"test": 36_500}  # units of all tests of a tier: to be lowered with a record, never raised
MOST_SLOW = 140  # tests of `make test` that take more than a second


def report(name: str, seconds: float) -> Any:
    return SimpleNamespace(nodeid=name, duration=seconds)


def test_a_run_writes_its_tier_and_keeps_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durations, "loop_seconds", lambda: 0.5)
    file = tmp_path / "durations.json"
    kept = {"all": 3.0, "count": 1, "tests": {}}
    file.write_text(json.dumps({"apart": kept, "docs": {"all": 1.0, "count": 7, "tests": {"a": 900.0}}}), "utf-8")
    recorder = durations.Recorder("docs", file)
    for name, seconds in (("b", 20.0), ("a", 1.0), ("b", 6.0), ("c", 6.0)):  # set-up, call and end are three reports
        recorder.pytest_runtest_logreport(report(name, seconds))
    recorder.pytest_sessionfinish(1)
    assert durations.slow_tests(file) == {"a"}  # a run that failed is no record
    recorder.pytest_sessionfinish(0)
    assert json.loads(file.read_text("utf-8")) == {
        "apart": kept,
        "docs": {"all": 66.0, "count": 3, "tests": {"b": 52.0, "c": 12.0}},
    }
    assert durations.slow_tests(file) == {"b"}
    assert durations.slow_tests(tmp_path / "none.json") == set()


def test_slow_tests_are_marked(request: pytest.FixtureRequest) -> None:
    slow = durations.slow_tests()
    assert slow
    for item in request.session.items:
        assert (item.get_closest_marker("slow") is not None) == (item.nodeid in slow), item.nodeid


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
