"""A tiny model's folder, to be changed."""

import shutil
from pathlib import Path
from typing import Any

import pytest

import regard
from tests.support import make_tiny


@pytest.fixture(scope="package")
def original(minilm: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("folder") / "tiny"
    make_tiny(folder, minilm)
    regard.load(folder, device="cpu")  # what is imported on the way is imported now
    return folder


@pytest.fixture
def tiny(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "tiny"))
