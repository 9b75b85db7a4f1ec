"""Choose the device that a model of a folder runs on."""

import torch

from regard.errors import RegardError


def device_to_load_on(device: str | torch.device | None) -> torch.device:
    """Return the device to run on, tried out; None stands for a CUDA device where there is one, else the CPU.

    Raises:
        RegardError: it cannot be used here.
    """
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
        torch.zeros(1, device=chosen).cpu()
    except (RuntimeError, AssertionError, NotImplementedError, TypeError) as error:
        raise RegardError(f"device {str(device)!r} cannot be used here: {str(error).splitlines()[0]}") from error
    return chosen
