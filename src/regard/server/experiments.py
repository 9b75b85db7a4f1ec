"""Do an experiment that was asked for, and put its page together: patches, the parts of an outcome, one score split."""

from regard.errors import RegardError
from regard.explain.causes.outcomes import Outcome, cosine, logit_difference, probability
from regard.models.model import Model
from regard.questions.patch.sweep import patch_sweep
from regard.server.asked import ExperimentAsked, PartsAsked, PatchesAsked, ScoreAsked
from regard.server.kept import Kept
from regard.server.limits import Limits
from regard.server.work import Job
from regard.trace.trace import Trace
from regard.web.answers import page_of_answer
from regard.web.assemble import Choice, Opening, page_of
from regard.web.join_pages import add_panels
from regard.web.page import Page


def experiment_page(model: Model, asked: ExperimentAsked, limits: Limits, job: Job) -> Kept:
    """Do it, and put its page together; that of one text has the text's attention as well.

    Raises:
        RegardError: what the library refuses, and models that read pairs. RefusedError: the job was stopped.
    """
    if model.pairs:
        raise RegardError(f"experiments here are of models that read one text, {model.name} reads pairs")
    own = asked.experiment
    if isinstance(own, PatchesAsked):
        return Kept(_patches(model, own, job))
    trace = model.trace(own.text)
    job.go_on()
    found = _parts(model, trace, own) if isinstance(own, PartsAsked) else _score(model, trace, own)
    page = page_of(trace, Choice(), Opening(), findings=[], limit=limits.kept)
    add_panels(page, [page_of_answer(found)])
    page.opening["view"] = "panel 0"
    return Kept(page)


def _patches(model: Model, asked: PatchesAsked, job: Job) -> Page:
    def progress(done: int, every: int) -> None:
        job.say("", done / every)

    found = patch_sweep(
        model, asked.clean, asked.corrupted, _outcome(model, asked), what=asked.what, direction=asked.direction,
        progress=progress,
    )  # fmt: skip
    return page_of_answer(found)


def _outcome(model: Model, asked: PatchesAsked) -> Outcome:
    if (asked.word is None) == (asked.token is None):
        raise RegardError("patches are measured by a word of both texts or by a next token: give one of them")
    if asked.word is not None:
        return cosine(asked.word, model.trace(asked.clean)[asked.word], "what it is in the clean text")
    assert asked.token is not None
    if asked.against is None:
        return probability(model, asked.token)
    return logit_difference(model, asked.token, asked.against)


def _parts(model: Model, trace: Trace, asked: PartsAsked) -> object:
    if (asked.word is None) == (asked.token is None):
        raise RegardError("an outcome is a next token, or how near two words are: give one of them")
    if asked.word is None:
        assert asked.token is not None
        if trace.logits is None:
            raise RegardError(f"token: {model.name} has no language head: give two words of the text")
        return model.attribution(trace, len(trace.tokens) - 1, asked.token, against=asked.against)
    if asked.like is None:
        raise RegardError("like: the word that it is compared with is missing")
    return model.attribution(trace, asked.word, toward=trace[asked.like])


def _score(model: Model, trace: Trace, asked: ScoreAsked) -> object:
    return model.score_sources(trace, asked.query, asked.key, layer=asked.layer, head=asked.head)
