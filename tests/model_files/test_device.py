import pytest
import torch

from regard.errors import RegardError
from regard.model_files.device import device_to_load_on


def test_a_device_is_tried_out() -> None:
    assert device_to_load_on("cpu") == device_to_load_on(torch.device("cpu")) == torch.device("cpu")
    assert device_to_load_on(None).type in ("cpu", "cuda")
    for name in ("abacus", "meta"):
        with pytest.raises(RegardError, match=f"device '{name}' cannot be used here"):
            device_to_load_on(name)
