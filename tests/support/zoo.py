"""Packages of models that regard doesn't need: a test that uses one is skipped if it isn't installed."""

from typing import Any

import pytest
import torch

_operators = torch.library.Library("torchvision", "FRAGMENT")


def package(name: str) -> Any:
    """Import a package, or skip the test. torchvision for CUDA also imports on PyTorch without it."""
    for operator in ("nms", "qnms"):
        if not hasattr(
            torch.ops.torchvision, operator
        ):  # its operators can't be loaded there, and importing asks for them
            _operators.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return pytest.importorskip(name, reason=f"{name} is not installed")
