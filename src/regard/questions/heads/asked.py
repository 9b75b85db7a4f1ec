"""What may be asked about what every head's attention follows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from regard.display.asked import Asked, Progress, option
from regard.errors import RegardError

if TYPE_CHECKING:
    from regard.models.model import Model
    from regard.questions.heads.answer import Heads
    from regard.trace.trace import PairTrace, Trace


@dataclass(frozen=True, kw_only=True)
class HeadsAsked(Asked):
    """Score each head's attention to positions, special tokens, repeated tokens, content and translations."""

    ranked: ClassVar[bool] = False  # a table of all

    tests: bool = option("Also test the heads on repeated random tokens and on shuffled tokens.", False)
    seed: int = option("Set the random seed.", 0, metavar="N")

    def answer(
        self, model: "Model", traces: "Sequence[Trace | PairTrace]", progress: Progress | None = None
    ) -> "Heads":
        """Answer it. Raises RegardError for tests of an encoder-decoder, or of texts of fewer than 8 tokens."""
        from regard.display.answer import Read
        from regard.explain.weights.content_or_position import content_or_position
        from regard.explain.weights.head_means import cross_head_scores, mean_scores
        from regard.explain.weights.head_scores import head_scores
        from regard.explain.weights.repeated_tokens import repeated_tokens
        from regard.questions.heads.answer import Heads
        from regard.trace.trace import PairTrace

        if model.pairs and self.tests:
            raise RegardError(f"--tests: {model.name} is an encoder-decoder, they are for models with a single stack")
        pairs = [each for each in traces if isinstance(each, PairTrace)]
        if pairs:
            tables = {
                "encoder": mean_scores([head_scores(each.encoder) for each in pairs]),
                "decoder": mean_scores([head_scores(each.decoder) for each in pairs]),
                "cross-attention": cross_head_scores(pairs),
            }
        else:
            tables = {"texts": mean_scores([head_scores(each) for each in traces if not isinstance(each, PairTrace)])}
        if self.tests:
            tables |= {
                "random tokens, repeated": repeated_tokens(model, seed=self.seed),
                "tokens exchanged": content_or_position(model, [each.sides[0].text for each in traces], seed=self.seed),
            }
        return Heads(tables, about=Read.of(*traces))
