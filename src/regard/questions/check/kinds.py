"""Check a model in other precisions and on other devices that there are, against its own code in float64."""

import copy
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch

from regard.errors import RegardError
from regard.memory import require_memory
from regard.questions.check.claims import VECTORS, WEIGHTS, Claim, claim, half_units
from regard.questions.check.differences import distance, own_weights_apart, result_apart, weights_apart
from regard.questions.check.own_code import OwnPass
from regard.questions.check.passes import Read

if TYPE_CHECKING:
    from regard.models.model import Model

DTYPES = (torch.float32, torch.bfloat16, torch.float16)


def kinds(model: "Model") -> list[tuple[torch.device, torch.dtype]]:
    """List the devices and precisions that there are, but for those that the model is checked in anyway."""
    devices = [torch.device("cpu")]
    if torch.cuda.is_available():
        devices += [torch.device("cuda", n) for n in range(torch.cuda.device_count())]
    if torch.backends.mps.is_available():
        devices.append(torch.device("mps"))
    own = model.model.device, model.model.dtype
    return [(device, dtype) for device in devices for dtype in DTYPES if (device, dtype) != own]


def device_and_dtype(device: torch.device, dtype: torch.dtype) -> str:
    """Name a device and a precision."""
    return f"{device}, {str(dtype).removeprefix('torch.')}"


def kind_is_as_near(read: Read, device: torch.device, dtype: torch.dtype) -> Iterator[Claim]:
    """Check that a trace in this precision on this device is as near to float64 as the model's own code there is."""
    model = read.model
    if read.exact is None:
        raise RegardError("its own code does not run in float64, which tells what is near")
    if len(set(getattr(model.model, "hf_device_map", {}).values())) > 1:
        raise RegardError("its weights are spread over devices or the disk, and are not copied")
    weights = sum(each.numel() for each in model.model.parameters()) * dtype.itemsize
    require_memory(weights, device, f"a copy in {str(dtype).removeprefix('torch.')}", "check it where there is more")
    twin = copy.deepcopy(model.model).to(device=device, dtype=dtype)
    there = type(model)(twin, model.tokenizer, name=model.name, image_processor=model.image_processor)
    given = Read(there, read.reading)
    of, exact = device_and_dtype(device, dtype), _on(read.exact, device)
    ours, theirs = weights_apart(given.trace, exact), own_weights_apart(given.own, exact)
    for said, apart, own, least in (
        ("weights are as near float64 as its code's", ours, theirs, WEIGHTS),
        ("results are as near float64 as its code's", result_apart(given.trace, exact),
         distance(given.own.result, exact.result), VECTORS),
    ):  # fmt: skip
        if apart is not None:
            yield claim("precision", said, of, apart, least, own, half=half_units(dtype))


def _on(own: OwnPass, device: torch.device) -> OwnPass:
    def moved(sides: dict[str, list[Any]]) -> dict[str, list[Any]]:
        return {side: [each.to(device) for each in layers] for side, layers in sides.items()}

    last = None if own.last is None else own.last.to(device)
    return OwnPass(moved(own.weights), moved(own.states), last, None if own.logits is None else own.logits.to(device))
