from pathlib import Path

import pytest

from regard.errors import RegardError
from regard.web import built_page
from regard.web.built_page import Shell, built_shell, check_page_built


def test_a_page_that_is_not_built_is_said_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(built_page, "BUILT", tmp_path)
    with pytest.raises(RegardError, match=r"^the page is not built: run make page \(page\.js is not there; .*\)$"):
        check_page_built()
    (tmp_path / "page.js").write_text("let a = 'ö'", encoding="utf-8")
    with pytest.raises(RegardError, match=r"page\.css is not there"):
        built_shell()
    (tmp_path / "page.css").write_text("b {}", encoding="utf-8")
    assert built_shell() == Shell("let a = 'ö'", "b {}")


@pytest.mark.parametrize("name", ["page.js", "widget.js", "live.js"])
def test_a_built_file_carries_the_licences_of_what_is_in_it(name: str) -> None:
    file = built_page.BUILT / name
    if not file.exists():
        pytest.skip("the page is not built: make page")
    head, _, _ = file.read_text("utf-8").partition("*/")
    assert head.startswith("/*! This file carries code of\n"), "make page builds it anew"
    for package in ("svelte", "d3-selection", "d3-zoom", "d3-interpolate"):
        assert package in head.replace(",", "\n").split(), package
    assert "Permission is hereby granted, free of charge" in head  # MIT
    assert "Permission to use, copy, modify, and/or distribute" in head  # ISC
