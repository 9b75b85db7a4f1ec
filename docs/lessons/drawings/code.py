"""The source code of a function or class, shown where a lesson teaches it."""

import inspect
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Code:
    """Shown as code by a notebook, a page and the terminal."""

    of: Any

    def __repr__(self) -> str:
        return inspect.getsource(self.of).rstrip()

    def _repr_markdown_(self) -> str:
        return f"```python\n{self!r}\n```"
