"""What a seer learns from: pictures of four handwritten digits, and a question of one corner: "top left ?" is seven."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float, Int
from PIL import Image
from torch import Tensor

from regard.files import whole
from regard.nn.evaluation_mode import model_in_evaluation_mode
from regard.nn.seer import Seer
from regard.nn.seer_config import IMAGE
from regard.text.tokenizers import words
from regard.train.batches import IGNORED, Batch
from regard.train.painter_measures import share
from regard.train.scene_words import COLUMNS, DIGITS, ROWS
from regard.train.scenes import PAPER, SIDE, DigitPictures, DrawnScenes, scene_pictures

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

ASKS = "?"
QUESTIONS = [f"{row} {column} {ASKS}" for row in ROWS for column in COLUMNS]
PICTURES, ENLARGED = 6, 16  # that a run draws to be asked about, and how many times their size
NOISE = 0.2  # added to each pixel that is learned from: 1,200 digits are few


def seer_tokenizer() -> "PreTrainedTokenizerFast":
    """Make a dictionary of a seer's words, and the token that stands for a patch."""
    made = words([*QUESTIONS, *DIGITS], lower=True)
    made.add_special_tokens({"additional_special_tokens": [IMAGE]})
    return made


class AskedScenes(DrawnScenes[Batch]):
    """Pictures and questions without end; those that validate are of digits that are held out."""

    def __init__(self, tokenizer: Any, patches: int, *, batch: int, seed: int) -> None:
        """patches: how many tokens a picture is."""
        super().__init__(batch=batch, seed=seed)
        ids = tokenizer([IMAGE * patches + each for each in QUESTIONS])["input_ids"]
        self.questions = torch.tensor(ids)  # (4, patches + ASKED)
        self.answers = torch.tensor(tokenizer.convert_tokens_to_ids(list(DIGITS)))

    def drawn(
        self, digits: DigitPictures, count: int, drawn: torch.Generator
    ) -> tuple[Int[Tensor, "n 4"], Float[Tensor, "n R R"]]:
        """Draw the four digits of pictures, and these, from 0 (paper) to 2 (ink)."""
        wanted = torch.randint(10, (count, len(QUESTIONS)), generator=drawn)
        corners = torch.arange(len(QUESTIONS)).expand(count, -1)
        return wanted, scene_pictures(digits, wanted, corners, drawn) - PAPER

    def asked(
        self, digits: DigitPictures, count: int, drawn: torch.Generator, noise: float = 0.0
    ) -> tuple[Batch, Int[Tensor, " n"]]:
        """Draw pictures with a question each, and which corner it is about: row by row, from the top left."""
        wanted, pictures = self.drawn(digits, count, drawn)
        pictures = pictures + noise * torch.randn(pictures.shape, generator=drawn)
        corners = torch.randint(len(QUESTIONS), (count,), generator=drawn)
        ids = self.questions[corners]
        labels = torch.full_like(ids, IGNORED)
        labels[:, -1] = self.answers[wanted.gather(1, corners[:, None])[:, 0]]
        return Batch(ids, labels, pixels=pictures[:, None].expand(-1, 3, -1, -1)), corners

    def _batch(self, digits: DigitPictures, drawn: torch.Generator) -> Batch:
        return self.asked(digits, self.size, drawn, NOISE if digits is self.trained else 0.0)[0]


def share_answered(model: Seer, data: AskedScenes) -> float:
    """Ask about 500 pictures of digits held out, and tell the share of right answers."""
    asked, _ = data.asked(data.held, 500, torch.Generator().manual_seed(0))
    assert asked.pixels is not None
    with model_in_evaluation_mode(model), torch.no_grad():
        told = model(asked.ids.to(model.device), asked.pixels.to(model.device)).logits[:, -1].argmax(-1)
    return share(told.cpu() == asked.labels[:, -1])


def write_pictures(data: AskedScenes, run: Path) -> list[Path]:
    """Write pictures of held-out digits to ask about, into RUN/pictures, named by their digits: "7204.png".

    Raises:
        RegardError: the file system refuses.
    """
    wanted, pixels = data.drawn(data.held, PICTURES, torch.Generator().manual_seed(0))
    folder, files = run / "pictures", list[Path]()
    folder.mkdir(exist_ok=True)
    for digits, picture in zip(wanted.tolist(), pixels, strict=True):
        files.append(folder / f"{''.join(map(str, digits))}.png")
        with whole(files[-1]) as file:
            grey = Image.fromarray((255 - 255 / 2 * picture).round().byte().numpy())
            grey.resize((SIDE * ENLARGED, SIDE * ENLARGED), Image.Resampling.NEAREST).save(file, "PNG")
    return files
