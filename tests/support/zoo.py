"""Packages of models that regard doesn't need. `make test-zoo` installs them: pytest -p tests.support.zoo -m zoo

The torchvision of Python's package index is built for CUDA. Beside a CPU build of torch its compiled operators can't be
loaded, and the import fails at the first of them. Our models need none, so it's enough that these two have a name. They
have to have it before transformers is imported, which looks for torchvision: hence the plug-in.
"""

import importlib
import os
from typing import Any

import pytest
import torch

LIBRARY = torch.library.Library("torchvision", "FRAGMENT")
for operator in ("nms", "qnms"):
    if not hasattr(torch.ops.torchvision, operator):
        LIBRARY.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")


def package(name: str) -> Any:
    """Import a package, or skip the test. `make test-zoo` installs all of them: there, none may be missing."""
    return importlib.import_module(name) if os.environ.get("REGARD_ZOO") else pytest.importorskip(name)
