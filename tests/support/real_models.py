"""Real models that are no part of the package, as fixtures: a test is skipped where its model's folder is absent."""

import os
from pathlib import Path
from typing import Any

import pytest

from tests.support import SHARED

MARKS = {"stories": "shared", "smollm2": "real", "opus_mt": "real"}  # of the tests with these fixtures
STORIES = SHARED / "models" / "stories260K"
SMOLLM2, OPUS_MT = (Path(os.environ.get(f"REGARD_{name}") or "none") for name in ("SMOLLM2", "OPUS_MT"))


def opened(folder: Path) -> Any:
    import regard

    if not [*folder.glob("*.gguf"), *folder.glob("*.safetensors")]:
        pytest.skip(f"no model in {folder}: REGARD_SHARED, REGARD_SMOLLM2 and REGARD_OPUS_MT name other places")
    return regard.load(folder, device="cpu")


@pytest.fixture(scope="module")
def stories() -> Any:
    """A small model that writes stories."""
    return opened(STORIES)


@pytest.fixture(scope="module")
def smollm2() -> Any:
    """SmolLM2-135M of a quantised GGUF file."""
    return opened(SMOLLM2)


@pytest.fixture(scope="module")
def opus_mt() -> Any:
    """opus-mt-en-fr, an encoder-decoder."""
    pytest.importorskip("sentencepiece", reason="the package sentencepiece is not installed (extra marian)")
    return opened(OPUS_MT)
