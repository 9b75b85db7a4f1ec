"""Lets torchvision be imported beside a CPU build of torch: pytest -p tests.support.torchvision_ops

The torchvision of Python's package index is built for CUDA. Beside a CPU build its compiled operators can't be loaded,
and the import fails at the first of them. Our models need none, so it's enough that these two have a name.
"""

import torch

LIBRARY = torch.library.Library("torchvision", "FRAGMENT")
for name in ("nms", "qnms"):
    LIBRARY.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
