"""What was found, in a few sentences: one module a question, each a pure function of what explain/ found."""

from typing import TYPE_CHECKING

from regard.lazy import lazy_modules

if TYPE_CHECKING:
    from regard.explain.findings import choice as choice
    from regard.explain.findings import tokens as tokens
    from regard.explain.findings import wording as wording

__getattr__, __dir__ = lazy_modules(__name__, __path__)
