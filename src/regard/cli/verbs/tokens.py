"""`regard tokens`: a text's tokens, coloured, with their ids and counts."""

from pathlib import Path
from typing import Annotated

from regard.cli import options
from regard.cli.options import option
from regard.cli.outputs import NOTHING, Outputs, writes
from regard.cli.source import check_text_arguments
from regard.cli.telling import tell
from regard.errors import RegardError
from regard.files import check_readable

OWN = ("words", "cl100k_base")


@writes("csv", "json")
def tokens(
    texts: options.Texts = None,
    tokenizer: Annotated[str | None, option("--tokenizer", "all-MiniLM-L6-v2")] = None,
    ranks: Annotated[Path | None, option("--ranks")] = None,
    everything: options.All = False,
    outputs: Outputs = NOTHING,
) -> None:
    """Show the tokens of your texts in colour, with ids and counts."""
    if not texts:
        raise RegardError("no text given: regard tokens TEXT [TEXT ...]")
    if ranks is not None and tokenizer != "cl100k_base":
        raise RegardError("--ranks needs --tokenizer cl100k_base: the file holds its ranks")
    if ranks is not None:
        check_readable(ranks, "--ranks")
    if any(not text for text in texts):
        raise RegardError("a text is empty: needs at least one character")
    if tokenizer not in OWN:
        check_text_arguments("text", texts)

    from regard.questions import tokens as question

    tell(question.tokens(texts, tokenizer, ranks), outputs, everything=everything)
