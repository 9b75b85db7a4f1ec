from pathlib import Path
from typing import Any

import pytest

from regard.errors import RegardError
from regard.web import built_page
from regard.web.built_page import Shell, built_shell, bundle_of, check_page_built
from regard.web.page import Page


def test_a_page_that_is_not_built_is_said_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(built_page, "BUILT", tmp_path)
    with pytest.raises(RegardError, match=r"^the page is not built: run make page \(panels\.js is not there; .*\)$"):
        check_page_built()
    (tmp_path / "panels.js").write_text("let a = 'ö'", encoding="utf-8")
    with pytest.raises(RegardError, match=r"panels\.css is not there"):
        built_shell(Page(""))
    (tmp_path / "panels.css").write_text("b {}", encoding="utf-8")
    assert built_shell(Page("")) == Shell("let a = 'ö'", "b {}")


@pytest.mark.parametrize(
    ("has", "name"),
    [
        ({}, "panels"),
        ({"panels": [{"kind": "table"}, {"kind": "heat"}]}, "panels"),
        ({"panels": [{"kind": "heat", "over": {}}, {"kind": "heat", "over": {"titles": ["a"]}}]}, "weights"),
        ({"calls": [{}]}, "weights"),
        ({"calls": [{}], "steps": [{}], "comparisons": [{}], "panels": [{"kind": "bars"}]}, "weights"),
        ({"calls": [{}], "panels": [{"kind": "paths"}]}, "paths"),
        ({"panels": [{"kind": "paths"}]}, "paths"),
        ({"calls": [{}], "panels": [{"kind": "paths"}, {"kind": "heat"}]}, "page"),
        ({"calls": [{}], "overview": {"kind": "pair"}}, "page"),
        ({"calls": [{}], "overview": {"kind": "image"}}, "weights"),
        ({"calls": [{}], "overview": {"kind": "writing"}}, "page"),
    ],
)
def test_a_page_takes_the_smallest_bundle_that_has_all_its_views(has: dict[str, Any], name: str) -> None:
    assert bundle_of(Page("", **has)) == name


@pytest.mark.parametrize("name", [f"{name}.js" for name in (*built_page.BUNDLES, "widget", "live")])
def test_a_built_file_carries_the_licences_of_what_is_in_it(name: str) -> None:
    file = built_page.BUILT / name
    if not file.exists():
        pytest.skip("the page is not built: make page")
    head, _, _ = file.read_text("utf-8").partition("*/")
    assert head.startswith("/*! This file carries code of\n"), "make page builds it anew"
    assert "svelte" in head.split()
    assert "Permission is hereby granted, free of charge" in head  # MIT
