"""The public names: each is in the page of all names, and what that page names is there."""

import re

import regard
from tests.support import ROOT

PAGE = ROOT / "docs" / "api" / "names.md"


def test_every_public_name_is_documented_and_every_documented_name_is_there() -> None:
    rows = re.findall(r"^\| (`.+?) \|", PAGE.read_text(encoding="utf-8"), re.M)
    documented = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert len(documented) == len(set(documented))
    assert set(documented) == {name for name in regard.__all__ if not name.startswith("_")}


def test_every_described_module_is_there_once_and_every_public_name_is_in_one() -> None:
    described = [
        module
        for page in (ROOT / "docs" / "api").glob("*.md")
        for module in re.findall(r"^::: ([\w.]+)$", page.read_text(encoding="utf-8"), re.M)
    ]
    assert len(described) == len(set(described))
    for name in regard.__all__:
        module = getattr(getattr(regard, name), "__module__", None)
        if module is not None and module.startswith("regard."):
            assert module in described, f"{name} is of {module}, which no page of docs/api describes"
