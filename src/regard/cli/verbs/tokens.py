"""`regard tokens`: a text's tokens, coloured, with their ids and counts."""

from pathlib import Path
from typing import Annotated, Any

from regard.cli import options
from regard.cli.options import file, said
from regard.cli.source import check_texts
from regard.errors import RegardError
from regard.model_files.sizes import read_sizes

TokenizerName = Annotated[
    str | None,
    said(
        "--tokenizer",
        "words|cl100k_base|MODEL",
        "Whose tokens to show: a dictionary of the texts' own words, tiktoken's, or a model's.",
        "all-MiniLM-L6-v2",
    ),
]
OWN = ("words", "cl100k_base")
RanksFile = Annotated[Path | None, file("--ranks", "With cl100k_base: a local file of its ranks.")]


def tokens(
    texts: options.Texts = None,
    tokenizer: TokenizerName = None,
    ranks: RanksFile = None,
    everything: options.All = False,
) -> None:
    """Show the tokens of one text or several: coloured, with ids and counts."""
    if not texts:
        raise RegardError("no text given: regard tokens TEXT [TEXT ...]")
    if ranks is not None and tokenizer != "cl100k_base":
        raise RegardError("--ranks needs --tokenizer cl100k_base: the file holds its ranks")
    if any(not text for text in texts):
        raise RegardError("a text is empty: needs at least one character")

    if tokenizer not in OWN:
        check_texts("text", texts)
        read_sizes(tokenizer)

    # torch and transformers are imported only now: help and bad input do not wait for them
    found = [(text, each) for text, each in zip(texts, _tokenise(texts, tokenizer, ranks), strict=True)]
    from regard.cli.console import consoles
    from regard.views.terminal.tokens import show_tokens, show_tokens_shortly

    (show_tokens if everything else show_tokens_shortly)(found, tokenizer or "the default model", consoles()[0])


def _tokenise(texts: list[str], tokenizer: str | None, ranks: Path | None) -> list[Any]:
    """Tokenise each text."""
    if tokenizer == "words":
        from regard.textbook import dictionary, word_tokens

        numbers = dictionary(" ".join(texts))
        return [word_tokens(text, numbers) for text in texts]
    if tokenizer == "cl100k_base":
        from regard.text.tiktoken import cl100k_base, cl100k_tokens

        encoding = cl100k_base(ranks)
        return [cl100k_tokens(text, encoding) for text in texts]
    from regard.models.load import load_tokenizer
    from regard.text.tokens import encode

    opened = load_tokenizer(tokenizer)
    return [encode(opened, text).tokens for text in texts]
