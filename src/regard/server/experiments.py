"""Answer a question to a model that was asked of texts, and put its page together."""

from regard.errors import RegardError
from regard.models.model import Model
from regard.server.asked import ExperimentAsked
from regard.server.kept import Kept
from regard.server.limits import Limits
from regard.server.work import Job
from regard.web.assemble import Choice, Opening
from regard.web.join_pages import page_beside


def experiment_page(model: Model, asked: ExperimentAsked, limits: Limits, job: Job) -> Kept:
    """Answer it, and put its page together; that of one text has the text's attention as well.

    Raises:
        RegardError: what the library refuses, and models that read pairs. RefusedError: the job was stopped.
    """
    if model.pairs:
        raise RegardError(f"experiments here are of models that read one text, {model.name} reads pairs")

    def progress(done: int, every: int) -> None:
        job.say("", done / every)

    question = asked.experiment.question()
    question.check(len(asked.texts))
    traces = [model.trace(text) for text in asked.texts]
    job.go_on()
    found = question.answer(model, traces, progress)
    if len(traces) > 1:
        return Kept(found.page())
    return Kept(page_beside(found, traces, Choice(), Opening(), limits.kept))
