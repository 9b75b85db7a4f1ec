"""Answer a question to a model that was asked of texts, and put its page together."""

from regard.errors import RegardError
from regard.models.model import Model
from regard.server.asked import ExperimentAsked, ScoreAsked
from regard.server.kept import Kept
from regard.server.limits import Limits
from regard.server.work import Job
from regard.trace.trace import Trace
from regard.web.answers import page_of_answer
from regard.web.assemble import Choice, Opening, page_of
from regard.web.join_pages import add_panels


def experiment_page(model: Model, asked: ExperimentAsked, limits: Limits, job: Job) -> Kept:
    """Answer it, and put its page together; that of one text has the text's attention as well.

    Raises:
        RegardError: what the library refuses, and models that read pairs. RefusedError: the job was stopped.
    """
    if model.pairs:
        raise RegardError(f"experiments here are of models that read one text, {model.name} reads pairs")

    def progress(done: int, every: int) -> None:
        job.say("", done / every)

    own = asked.experiment
    question = None if isinstance(own, ScoreAsked) else own.question()
    if question is not None:
        question.check(len(own.texts))
    traces = [model.trace(text) for text in asked.texts]
    job.go_on()
    found = _score(model, traces[0], own) if question is None else question.answer(model, traces, progress)
    if len(traces) > 1:
        return Kept(page_of_answer(found))
    page = page_of(traces[0], Choice(), Opening(), findings=[], limit=limits.kept)
    add_panels(page, [page_of_answer(found)])
    page.opening["view"] = "panel 0"
    return Kept(page)


def _score(model: Model, trace: Trace, asked: ScoreAsked) -> object:
    return model.score_sources(trace, asked.query, asked.key, layer=asked.layer, head=asked.head)
