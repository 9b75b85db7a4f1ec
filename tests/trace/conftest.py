"""Traces of small random models."""

from typing import Any

import pytest
import torch

from regard.models.model import Model
from tests.support.attention_outputs import make_model, traced


@pytest.fixture(scope="session")
def trace() -> Any:
    return traced(make_model("bert"), torch.tensor([[7, 11, 13, 17, 19]]))


@pytest.fixture(scope="session")
def pair() -> Any:
    return Model(make_model("bart"), None, name="bart").trace(ids=[7, 11, 13], target_ids=[5, 3])
