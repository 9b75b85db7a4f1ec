from regard.views.terminal.layout import lines_of
from regard.views.terminal.training import training
from tests.explain.findings.test_training import log


def test_a_run_fits_one_screen() -> None:
    held = {n: 4.0 - n / 50 for n in range(5, 101, 5)}
    for width in (60, 80, 140):
        lines = lines_of(training(log([4.0 - n / 40 for n in range(100)], held), 65, "runs/a", width), width)
        assert max(map(len, lines)) <= width
        assert len(lines) <= 30
        out = " ".join(" ".join(lines).split())
        assert "12 more evaluations are in log.jsonl" in out
        assert " 100 " in out
        assert "regard generate TEXT --model runs/a" in out


def test_without_evaluations_there_is_no_table() -> None:
    assert not any("held out" in line for line in lines_of(training(log([2.0, 1.0]), 65, "runs/a", 80), 80))
