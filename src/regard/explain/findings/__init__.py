"""What was found, in a few sentences: one module a question, each a pure function of what explain/ found."""

from regard.lazy import lazy_modules

__getattr__, __dir__ = lazy_modules(__name__, __path__)
