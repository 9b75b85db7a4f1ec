"""`regard see --image`: where a model that reads pictures looks."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from regard.cli.outputs import Outputs
from regard.errors import RegardError
from regard.files import check_readable


def see_images(
    images: Sequence[Path],
    told: Mapping[str, object],
    model: str | None,
    layer: int | None,
    head: int | None,
    top: int,
    everything: bool,
    outputs: Outputs,
) -> None:
    """Trace pictures and tell where the model looks.

    Args:
        images: their files.
        told: what else was given, by its option, that is about texts.
        model: the model's folder or name, None for the default, which reads no pictures.
        layer, head: whose weights, None for the last layer and the mean of its heads.
        top: how many patches are named.
        everything: whether all panels are printed.
        outputs: which files were asked for.

    Raises:
        RegardError: an option that is about texts, a file that cannot be read, or what `Model.trace` raises.
    """
    for option, given in told.items():
        if given:
            raise RegardError(f"--image and {option}: a picture has no words, give one of them")
    if top < 1:
        raise RegardError(f"--top: given {top}, needs 1 or more")
    if model is None:
        raise RegardError("--image needs --model: one that reads pictures, which the default model does not")
    for image in images:
        check_readable(image, "--image")
    outputs.check()

    from regard.cli.console import consoles
    from regard.cli.start import load_model
    from regard.cli.telling import tell
    from regard.questions.look.answer import looked

    screens = consoles(outputs.json)
    with screens[1].status("loading and tracing …"):
        found = looked(load_model(model).trace(images=list(images)), layer, head)
    tell(found, outputs, screens, top, everything=everything, traces=list(found.traces))
