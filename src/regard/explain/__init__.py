"""What traces say: functions of them, as plain data that every view shows and `--json` writes."""

from typing import TYPE_CHECKING

from regard.lazy import lazy_modules

if TYPE_CHECKING:
    from regard.explain import causes as causes
    from regard.explain import frames as frames
    from regard.explain import logits as logits
    from regard.explain import matrices as matrices
    from regard.explain import part as part
    from regard.explain import places as places
    from regard.explain import texts as texts
    from regard.explain import vectors as vectors
    from regard.explain import weights as weights
    from regard.explain import wording as wording

__getattr__, __dir__ = lazy_modules(__name__, __path__)
