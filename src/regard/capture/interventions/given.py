"""What may stand in a list of interventions: ablations, patches, steering."""

from collections.abc import Sequence
from typing import Any

from regard.capture.interventions.names import Ablate, Edge, Head
from regard.capture.interventions.patch import Patch
from regard.capture.interventions.steer import Steer
from regard.errors import RegardError

Intervention = Ablate | Patch | Steer


def checked(intervention: Any) -> Intervention:
    """The intervention itself."""
    if isinstance(intervention, (Head, Edge)):
        name = type(intervention).__name__.lower()
        raise RegardError(f"interventions: given regard.{name}(...), needs regard.ablate(regard.{name}(...))")
    if not isinstance(intervention, (Ablate, Patch, Steer)):
        needs = "regard.ablate(...), regard.patch(...) or regard.steer(...)"
        raise RegardError(f"interventions: given {type(intervention).__name__}, needs {needs}")
    return intervention


def check_interventions(given: Any) -> None:
    """Check that interventions are given, several of them, before a pass begins."""
    if not isinstance(given, Sequence) or isinstance(given, str):
        listed = "[regard.ablate(...)]"
        raise RegardError(f"interventions: given {type(given).__name__}, needs a list of what is done: {listed}")
    for each in given:
        checked(each)


def intervention_names_tokens(intervention: Any) -> bool:
    """Whether an intervention means tokens of one text, so that it has no meaning in a window of it."""
    each = checked(intervention)
    if isinstance(each, Ablate):
        return isinstance(each.target, Edge)
    return isinstance(each, Patch) or each.at is not None
