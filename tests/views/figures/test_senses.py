from pathlib import Path

import numpy as np

from regard.views.figures.senses import draw_senses, sense_figure


def test_every_occurrence_is_a_point_of_its_sense(bank_store, tmp_path: Path) -> None:
    found = bank_store.senses("bank", checked=0)
    axes = sense_figure(found).axes[0]
    for number, points in enumerate(axes.collections):
        np.testing.assert_allclose(points.get_offsets(), found.points[found.clusters.labels == number])
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        f"{each.name}: {each.occurrences} ({each.share:.0%})" for each in found.senses
    ]
    draw_senses(found, tmp_path / "a.svg")
    draw_senses(found, tmp_path / "b.svg")
    assert b"<svg" in (tmp_path / "a.svg").read_bytes()


def test_what_could_not_be_told_apart_is_no_sense(cloud_store) -> None:
    axes = sense_figure(cloud_store.senses("bank")).axes[0]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["could not be told apart: 30"]
    assert axes.get_title() == "“bank”: 30 occurrences, whose senses could not be told apart"
