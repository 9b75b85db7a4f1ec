"""Versions and products that a store's bytes depend on."""

from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from regard.corpus.environment import (
    check_store_environment,
    describe_store_environment,
    digest_model,
)
from regard.errors import RegardError
from regard.model_files.stored_weight import StoredWeight
from tests.support import make_tiny


def test_a_store_of_other_versions_is_refused() -> None:
    here = describe_store_environment()
    assert here["torch"] == torch.__version__
    with pytest.raises(RegardError, match="made with torch 1.0, here is"):
        check_store_environment(here | {"torch": "1.0"})


def test_a_store_of_other_products_is_refused_and_the_way_on_is_said() -> None:
    here = describe_store_environment()
    check_store_environment(here)
    with pytest.raises(RegardError, match=f"product none, here is {here['tiles']}: .*REGARD_PRODUCT=none goes on"):
        check_store_environment(here | {"tiles": "none"})


def test_a_digest_is_of_weights_and_tokenizer_not_of_what_calls_left(minilm: Any) -> None:
    first = digest_model(minilm)
    minilm.tokenizer(["a", "b c"], padding=True, truncation=True, max_length=3)
    assert digest_model(minilm) == first
    bias = next(minilm.model.parameters())
    with torch.no_grad():
        bias[0, 0] += 1
        changed = digest_model(minilm)
        bias[0, 0] -= 1
    assert changed != first


def test_weights_kept_in_half_precision_are_the_model_that_they_are_in_float32(minilm: Any, tmp_path: Path) -> None:
    make_tiny(tmp_path, minilm)
    regard.load(tmp_path, device="cpu", dtype="bfloat16").model.save_pretrained(tmp_path)
    stored, wide = (regard.load(tmp_path, device="cpu", dtype=dtype) for dtype in ("auto", "float32"))
    assert any(isinstance(each, StoredWeight) for each in stored.model.parameters())
    assert digest_model(stored) == digest_model(wide)
