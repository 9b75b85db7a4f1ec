"""Submodules are imported when they are first asked for, and no others."""

import importlib
import operator
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import regard
from regard.errors import RegardError
from regard.lazy import import_from_corpus_extra, lazy_names
from tests.support import ROOT


def test_a_module_is_imported_when_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "lazy_xml.py").write_text("if None:\n    from xml import sax as sax\n    from xml import dom as dom\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("lazy_xml")
    load, names = lazy_names("lazy_xml")
    monkeypatch.delitem(sys.modules, "xml.sax", raising=False)
    assert load("sax") is sys.modules["xml.sax"]
    assert names() == ["dom", "sax"]
    with pytest.raises(AttributeError, match="module 'lazy_xml' has no attribute 'none'"):
        load("none")


@pytest.mark.parametrize("name", ["nn", "text", "train"])
def test_editors_and_dir_know_every_module_of_a_package(name: str) -> None:
    package = getattr(regard, name)
    modules = sorted(module.name for module in pkgutil.iter_modules(package.__path__))
    assert dir(package) == modules
    source = (ROOT / "src" / "regard" / name / "__init__.py").read_text(encoding="utf-8")
    assert re.findall(rf"^    from regard\.{name} import (\w+) as \1$", source, re.M) == modules


def test_functions_are_reached_by_their_own_names() -> None:
    for name in dir(regard.explain):
        assert getattr(regard.explain, name).__name__ == name
    assert regard.outcomes.__name__ == "regard.explain.causes.outcomes"


def test_looking_imports_nothing() -> None:
    code = "import sys, regard; dir(regard.explain), dir(regard.nn); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_package_of_an_extra_is_imported_or_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert import_from_corpus_extra("operator") is operator
    monkeypatch.setitem(sys.modules, "sklearn.cluster", None)  # as if it were not installed
    with pytest.raises(RegardError, match=r'scikit-learn is not installed .*pip install "regard\[corpus\]"'):
        import_from_corpus_extra("sklearn.cluster")
