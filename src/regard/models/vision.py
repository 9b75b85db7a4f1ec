"""Vision transformers of timm and torchvision, as models that read images. Neither package is needed for regard.

timm's models say how images are preprocessed (`pretrained_cfg`). torchvision's weights do, in `weights.transforms()`.
"""

from functools import partial
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from torch import Tensor, nn

from regard.capture.watched_session import WatchedSession
from regard.errors import RegardError
from regard.models.kinds import ModelKind
from regard.models.model import Model


class VisionModule(nn.Module):
    """A module of timm or torchvision, called as a vision model of transformers is.

    config: patch_size of the image, None if its tokens are no such patches; prefix_tokens, the names of those before.
    """

    main_input_name, session_class = "pixel_values", WatchedSession
    dtype = property(lambda self: next(self.parameters()).dtype)
    device = property(lambda self: next(self.parameters()).device)

    def __init__(self, module: nn.Module, config: SimpleNamespace) -> None:
        super().__init__()
        self.module, self.config = module, config

    def forward(self, pixel_values: Tensor) -> Any:
        """Run the module."""
        return self.module(pixel_values)

    def get_output_embeddings(self) -> None:
        """Return None: there is no language head, and no table of ids either."""

    get_input_embeddings = can_generate = get_output_embeddings


def preprocess(transform: Any, images: Any, return_tensors: str = "pt") -> dict[str, Tensor]:
    """Preprocess one image by a transform, image -> (3, height, width), as processors of transformers do."""
    if transform is None:
        needs = "pass load(model, processor=weights.transforms())"
        raise RegardError(f"torchvision models don't say how images are preprocessed: {needs}")
    return {"pixel_values": transform(images)[None]}


class VisionKind(ModelKind):
    """A module of timm or torchvision."""

    def model(self, source: Any, tokenizer: Any, processor: Any) -> Model | None:
        """Open such a module; processor as in `vision_model`."""
        if not isinstance(source, nn.Module):
            return None
        module = source.get_submodule("model") if type(source).__name__ == "FeatureGetterNet" else source  # of timm
        packages = {base.__module__.partition(".")[0] for base in type(module).__mro__}
        return vision_model(module, packages, processor) if packages & {"timm", "torchvision"} else None


VISION = VisionKind()


def vision_model(module: nn.Module, packages: set[str], processor: Any) -> Model:
    """Return the model of a module of timm or torchvision. packages: that its classes are from.

    processor: a transform, or a processor of transformers. Default: what the module's `pretrained_cfg` says.
    """
    settings: Any = getattr(module, "pretrained_cfg", {})
    name, patch, names = type(module).__name__, getattr(module, "patch_size", None), ["[CLS]"]
    if "timm" in packages:
        embed: Any = getattr(module, "patch_embed", None)
        name, patch = str(settings.get("architecture") or name), getattr(embed, "patch_size", None)
        names = [f"[{kind.upper()}]" for kind in ("cls", "dist") if getattr(module, f"{kind}_token", None) is not None]
        names += [f"[REG{n}]" for n in range(1, getattr(module, "num_prefix_tokens", 0) - len(names) + 1)]
        if processor is None:
            data = import_module("timm.data")
            options = data.resolve_model_data_config(module)
            if size := getattr(embed, "img_size", None):  # it may have been made for another one
                options["input_size"] = (3, *size)
            processor = data.create_transform(**options, is_training=False)
    elif ".swin_transformer" in type(module).__module__:
        patch = 1  # the grid is the states' own
    if not hasattr(processor, "model_input_names"):
        processor = partial(preprocess, processor)
    config = SimpleNamespace(patch_size=patch, prefix_tokens=names)
    return Model(VisionModule(module, config), None, name=name, image_processor=processor)
