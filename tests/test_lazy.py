"""Submodules are imported when they are first asked for, and no others."""

import sys
from types import ModuleType

import pytest

from regard.lazy import lazy_modules


def test_a_module_is_imported_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    load = lazy_modules("xml", ("sax", "dom"))
    monkeypatch.delitem(sys.modules, "xml.sax", raising=False)
    found = load("sax")
    assert isinstance(found, ModuleType)
    assert found is sys.modules["xml.sax"]
    with pytest.raises(AttributeError, match="module 'xml' has no attribute 'etree'"):
        load("etree")  # there, but not among the names
