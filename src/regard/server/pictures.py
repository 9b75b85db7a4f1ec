"""Look at a picture that a browser sent: its page is that of `regard see --image`. Nothing of it is written to disk."""

import base64
import binascii

from regard.capture.progress import report_layers_of_pass
from regard.images.picture import read_picture_bytes
from regard.models.model import Model
from regard.questions.look.answer import looked
from regard.server.asked import PictureAsked
from regard.server.kept import Kept
from regard.server.work import Job, Limits, RefusedError
from regard.web.assemble import Choice


def picture_bytes(asked: PictureAsked, limits: Limits) -> bytes:
    """Return the bytes of the file that was sent. Raises RefusedError for too many, and for what is no base64."""
    try:
        data = base64.b64decode(asked.picture, validate=True)
    except (binascii.Error, ValueError) as error:
        raise RefusedError(422, f"picture: needs the bytes of a file in base64: {error}") from None
    if len(data) > limits.picture:
        raise RefusedError(413, f"{asked.name} has {len(data):,} bytes, {limits.picture:,} are the most")
    return data


def picture_page(model: Model, asked: PictureAsked, data: bytes, limits: Limits, job: Job) -> Kept:
    """Trace a picture, in its text where one was given, and put the page of where the model looks together."""
    picture = read_picture_bytes(data, asked.name)
    job.go_on()
    with report_layers_of_pass(model.model, lambda share: job.advance(0.7 * share)):
        traces = model.trace(asked.text, images=[picture], logits=False)
    job.go_on()
    return Kept(looked(traces).page(Choice(limit=limits.kept)))
