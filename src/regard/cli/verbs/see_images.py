"""`regard see --image`: where a model that reads pictures looks."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from regard.cli.outputs import Outputs
from regard.cli.selection import Selection
from regard.errors import RegardError
from regard.files import check_readable


def see_images(
    images: Sequence[Path],
    texts: Sequence[str] | None,
    told: Mapping[str, object],
    model: str | None,
    chosen: Selection,
    everything: bool,
    outputs: Outputs,
    fill: str | None = None,
) -> None:
    """Trace pictures, alone or with texts, and tell where the model looks.

    texts: one for each picture, or one that is asked of all. told: what else was given, by its option. chosen: of layer
    and head None is the last layer and the mean of its heads; so many patches are named. fill: what stands where a
    region is removed, None for removing none.
    """
    for option, given in told.items():
        if given:
            raise RegardError(f"--image and {option}: given both, needs one of them")
    if chosen.word is not None and not texts:
        raise RegardError("--image and --word: a picture has no words, needs a TEXT beside it")
    if model is None:
        raise RegardError("--image needs --model: one that reads pictures, which the default model does not")
    if fill not in (None, "blank", "mean", "blur"):
        raise RegardError(f"--remove: given {fill!r}, needs blank, mean or blur")
    for image in images:
        check_readable(image, "--image")
    outputs.check()

    from regard.cli.console import consoles
    from regard.cli.start import load_model
    from regard.cli.telling import tell
    from regard.questions.look.answer import looked

    screens = consoles(outputs.json)
    with screens[1].status("Loading and tracing …"):
        asked = texts[0] if texts and len(texts) == 1 else texts
        opened = load_model(model)
        traces = opened.trace(asked, images=list(images))
        remove = None if fill is None else (opened, cast(Any, fill))
        found = looked(traces, chosen.layer, chosen.head, chosen.word, remove=remove)
    tell(found, outputs, screens, chosen.top, everything=everything, traces=list(found.traces))
