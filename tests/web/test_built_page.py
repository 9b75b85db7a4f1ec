from pathlib import Path

import pytest

from regard.errors import RegardError
from regard.web import built_page
from regard.web.built_page import Shell, built_shell, check_built


def test_a_page_that_is_not_built_is_said_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(built_page, "BUILT", tmp_path)
    with pytest.raises(RegardError, match=r"^the page is not built: run make page \(page\.js is not there; .*\)$"):
        check_built()
    (tmp_path / "page.js").write_text("let a = 'ö'", encoding="utf-8")
    with pytest.raises(RegardError, match=r"page\.css is not there"):
        built_shell()
    (tmp_path / "page.css").write_text("b {}", encoding="utf-8")
    assert built_shell() == Shell("let a = 'ö'", "b {}")
