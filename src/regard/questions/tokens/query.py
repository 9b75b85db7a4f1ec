"""Declare the options of `regard tokens`: how a tokenizer splits texts."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from regard.display.query import Progress, Query, option, option_name
from regard.errors import RegardError

if TYPE_CHECKING:
    from regard.models.source import Source
    from regard.questions.tokens.answer import Tokens


@dataclass(frozen=True, kw_only=True)
class TokensQuery(Query):
    """Show the tokens of your texts in colour, with ids and counts."""

    summary: ClassVar[str] = "Show the tokens of texts, with ids and counts."
    served: ClassVar[bool] = False
    takes_dtype: ClassVar[bool] = False
    inputs: ClassVar[tuple[str, ...]] = ()
    files: ClassVar[tuple[str, ...]] = ("csv", "json")
    full: ClassVar[bool] = True

    tokenizer: str | None = option(shown="all-MiniLM-L6-v2")
    ranks: Path | None = option()

    def check_source(self, source: "Source", verb: str, outputs: Any) -> None:
        """Refuse what goes with another tokenizer. Blank texts have tokens too."""
        source.need_texts(verb, self.texts[0])
        self.check(len(source.texts), called=option_name)
        if self.ranks is not None and self.tokenizer != "cl100k_base":
            raise RegardError("--ranks needs --tokenizer cl100k_base: the file holds its ranks")

    def run(self, source: "Source", progress: Progress) -> "Tokens":
        """Split the texts; no model is loaded."""
        from regard.questions.tokens.answer import tokens

        return tokens(source.texts, self.tokenizer, self.ranks)
