"""The tests mirror the tree: `tests/X/test_Y.py` is about `src/regard/X/Y.py`. What has none is listed."""

import pytest

from tests.support import ROOT

# Modules that are tested through others: what a user calls is tested, and not each private step to it.
THROUGH_OTHERS = {
    "attention/kernels/cpu/tiles",
    "attention/kernels/cpu/vector",
    "trace/any_attention",
    "version",
    "capture/hooks",
    "capture/interventions/states",
    "capture/watching/seen",
    "capture/operations",
    "explain/causes/score_writers",
    "server/verb",
    "attention/reference",
    "attention/scores",
    "models/kinds",
    "models/source",
    "train/follow",
    "errors",
    "fetched",
}

# Files about something that is no single module: what a user does, a model, a property of several modules.
ABOUT_SEVERAL = {
    "vision/removal",
    "corpus/reading/parquet_files",
    "diffusion/record",
    "display/colours",
    "display/plot",
    "display/terminal_lines",
    "models/wrapped",
    "verify/answer",
    "questions/attribution/panels",
    "questions/generate/panels",
    "questions/map/windowed",
    "questions/why/score_panels",
    "corpus/questions/shift_panels",
    "corpus/questions/shift_sentences",
    "corpus/questions/senses/sentences",
    "questions/why/panels",
    "server/asking",
    "server/pages",
    "articles",
    "fuzz/targets",
    "annotations",
    "durations",
    "architecture",
    "attention/attend_compiled",
    "attention/attend_gradients",
    "attention/attend_not_finite",
    "attention/kernels/cpu/processes",
    "benchmarks/compare",
    "benchmarks/faithfulness",
    "capture/families",
    "capture/watching/packages",
    "capture/status",
    "cli/see_models",
    "cli/reported",
    "cli/attribute",
    "cli/heads",
    "cli/patch",
    "corpus/moby_dick",
    "docs",
    "docs/plain_words",
    "docs_commands",
    "docs_questions",
    "documented",
    "explain/stories",
    "front_page",
    "gguf/weights",
    "layout",
    "lessons",
    "lessons/glove",
    "lessons/painter",
    "models/device_map",
    "models/dtype",
    "models/long",
    "models/model_of_ours",
    "models/opus_mt",
    "vision/pictured_text",
    "vision/pictures",
    "model_files/row_products",
    "models/real",
    "models/smollm2",
    "package",
    "parts",
    "questions/see/lens",
    "questions/why/labels",
    "release",
    "site/folds",
    "site/formulas",
    "site/images",
    "site/live_page",
    "site/moving",
    "site/notebooks",
    "site/pages",
    "site/pictures",
    "trace/attention_file",
    "train/toys",
    "types",
    "wrong_input",
    "web/alignment_view",
    "web/colours",
    "web/compare_view",
    "web/experiments_view",
    "web/picture_view",
    "web/find",
    "web/firefox",
    "server/generated_requests",
    "server/live_corpora",
    "server/live_page",
    "server/live_pictures",
    "server/pictures",
    "web/heads_view",
    "web/kept_address",
    "web/map_view",
    "web/movement_view",
    "web/long_view",
    "web/overview_view",
    "web/notebook_hosts",
    "web/panels_view",
    "web/paper",
    "web/parts",
    "web/picture_first",
    "web/region",
    "web/saved_pictures",
    "web/selection",
    "web/steps_view",
    "web/store_pages_view",
    "web/tokens_view",
    "web/workers",
    "web/writing_view",
}


def modules() -> set[str]:
    """Every module of the package by its path, without the ones that only introduce a package."""
    source = ROOT / "src" / "regard"
    names = {file.relative_to(source).with_suffix("").as_posix() for file in source.rglob("*.py")}
    return {name for name in names if name.rpartition("/")[2] not in ("__init__", "__main__")}


def subjects() -> set[str]:
    """What each test file is about, by the same kind of path."""
    folder = ROOT / "tests"
    files = {file.relative_to(folder).with_suffix("").as_posix() for file in folder.rglob("test_*.py")}
    said = {name for name in files if name.startswith("said/")}  # sentences against numbers, whatever room makes them
    return {name.replace("test_", "", 1) for name in files - said}


def test_every_module_has_a_test_file_or_is_listed() -> None:
    missing = {name for name in modules() - subjects() if not name.endswith("/sentences")}  # tests/said has these
    assert missing == THROUGH_OTHERS, (
        f"new: {sorted(missing - THROUGH_OTHERS)}, gone: {sorted(THROUGH_OTHERS - missing)}"
    )


def test_every_test_file_is_about_a_module_or_is_listed() -> None:
    others = subjects() - modules()
    new, gone = sorted(others - ABOUT_SEVERAL), sorted(ABOUT_SEVERAL - others)
    assert new == gone == [], f"about no module: {new}; no longer there: {gone}"


BUDGET = {"src": 51_600, "tests": 53_380}  # lines of Python: only lowered, with room for a question


@pytest.mark.parametrize("folder", BUDGET)
def test_the_number_of_lines_only_falls(folder: str) -> None:
    lines = sum(len(file.read_text(encoding="utf-8").splitlines()) for file in (ROOT / folder).rglob("*.py"))
    assert lines <= BUDGET[folder], "delete what is no longer needed: the budget is not raised"
    assert lines >= 0.98 * BUDGET[folder], f"lower the budget to {lines:,}, so that what was saved stays saved"
