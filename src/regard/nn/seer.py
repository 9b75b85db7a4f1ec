"""A decoder that reads a picture in its text: each patch is a token, and the next word says what is asked of them.

A patch's pixels are projected to where another token's id is looked up (Liu et al. 2023, "Visual Instruction Tuning",
without its vision tower). All else is a `regard.Transformer`'s.
"""

from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float, Int
from PIL import Image
from torch import Tensor, nn

from regard.nn.linear import Linear
from regard.nn.painter import patches
from regard.nn.seer_config import IMAGE, SeerConfig
from regard.nn.transformer import Output, Transformer

if TYPE_CHECKING:
    from transformers import LlavaProcessor


class Seer(Transformer):
    """`model(ids, pictures)` is an `Output`; the ids hold config.image once for each patch, row by row."""

    main_input_name = "input_ids"  # it reads no picture without a text
    config: SeerConfig

    def __init__(self, config: SeerConfig) -> None:
        super().__init__(config)
        self.patch = Linear(config.patch**2, config.d_model)
        for table in (self.embedding, self.positions):  # as large as each other: see `Painter`
            assert isinstance(table, nn.Embedding)
            nn.init.normal_(table.weight)

    def forward(  # type: ignore[override]
        self, input_ids: Int[Tensor, "B L"], pixel_values: Float[Tensor, "B 3 R R"] | None = None
    ) -> Output:
        """States and logits of every token.

        Args:
            input_ids: the texts, the patches' tokens among them.
            pixel_values: the pictures, from 0 (paper) to 2 (ink); None for a text without one.

        Raises:
            RegardError: as a transformer's.
        """
        if pixel_values is None:
            return super().forward(input_ids)
        seen = self.patch(patches(pixel_values.mean(1), self.config.grid))  # (B, P, M)
        is_patch = input_ids == self.config.image
        learned, may = self.embedding(input_ids).masked_scatter(is_patch[..., None], seen), None
        if self.config.values == "plain":
            apart = is_patch[:, None] & (input_ids != self.config.asks)[..., None]  # (B, L, L)
            may = (~apart | torch.eye(apart.shape[1], dtype=torch.bool, device=apart.device))[:, None]
        return self.decode(input_ids, learned=learned, may=may)


def seer_processor(config: SeerConfig, tokenizer: Any) -> "LlavaProcessor":
    """Make what makes pictures and texts ready: white paper becomes 0, black ink 2."""
    from transformers import LlavaProcessor, ViTImageProcessorPil

    side = {"height": config.side, "width": config.side}
    images = ViTImageProcessorPil(size=side, resample=Image.Resampling.BOX, image_mean=[1.0] * 3, image_std=[-0.5] * 3)
    options = {"patch_size": config.patch, "vision_feature_select_strategy": "full", "image_token": IMAGE}
    return LlavaProcessor(images, tokenizer, **options)
