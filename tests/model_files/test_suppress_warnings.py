"""Loading stays quiet in threads, and leaves logging, warnings and progress bars as they were."""

import json
import logging
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import huggingface_hub.utils as hub
import pytest
import transformers

import regard
from regard.model_files.suppress_warnings import quiet
from tests.support import make_tiny

LOGGERS = ("transformers", "huggingface_hub", None)


def state() -> list[Any]:
    loggers = [logging.getLogger(name) for name in LOGGERS]
    told: list[Any] = [(each.level, each.propagate, [(h, h.level, list(h.filters)) for h in each.handlers])
                       for each in loggers]  # fmt: skip
    told += [list(warnings.filters), warnings.showwarning, logging.root.manager.disable]
    return [*told, transformers.utils.logging.is_progress_bar_enabled(), hub.are_progress_bars_disabled()]


def speak() -> None:
    logging.getLogger("transformers.modeling_utils").warning("said")
    logging.getLogger("huggingface_hub.utils").error("said")
    warnings.warn("said", UserWarning, stacklevel=1)


def test_nothing_stays_changed_in_whatever_order_threads_go() -> None:
    before = state()
    ways: list[threading.Event] = []

    def come_and_go() -> None:
        with quiet():
            ways[0].set()
            assert ways[1].wait(60)

    for last in (False, True):
        ways = [threading.Event(), threading.Event()]
        thread = threading.Thread(target=come_and_go)
        first = quiet()
        first.__enter__()
        thread.start()
        assert ways[0].wait(60)
        if last:
            first.__exit__(None, None, None)
        ways[1].set()
        thread.join()
        if not last:
            first.__exit__(None, None, None)
        assert state() == before
    with quiet(), quiet():
        assert not transformers.utils.logging.is_progress_bar_enabled()
    assert state() == before


def test_what_libraries_say_inside_is_not_heard(capfd) -> None:
    with quiet():
        speak()
    assert capfd.readouterr() == ("", "")


def test_loading_in_threads_is_quiet(minilm, tmp_path: Path, capfd) -> None:
    for n in range(3):
        make_tiny(tmp_path / str(n), minilm)
    capfd.readouterr()
    bars = transformers.utils.logging.is_progress_bar_enabled()
    transformers.utils.logging.enable_progress_bar()
    before = state()
    try:
        with ThreadPoolExecutor(3) as threads:
            opened = list(threads.map(lambda n: regard.load(tmp_path / str(n % 3), device="cpu"), range(6)))
        assert state() == before
    finally:
        if not bars:
            transformers.utils.logging.disable_progress_bar()
    assert capfd.readouterr() == ("", "")
    traces = [each.trace("a bank") for each in opened]
    assert all((each.last_hidden_state == traces[0].last_hidden_state).all() for each in traces)


def test_bars_of_the_hub_alone_stay_off() -> None:
    disabled, bars = hub.are_progress_bars_disabled(), transformers.utils.logging.is_progress_bar_enabled()
    try:
        transformers.utils.logging.enable_progress_bar()
        hub.disable_progress_bars()
        with quiet():
            pass
        assert transformers.utils.logging.is_progress_bar_enabled()
        assert hub.are_progress_bars_disabled()
    finally:
        (hub.disable_progress_bars if disabled else hub.enable_progress_bars)()
        if not bars:
            transformers.utils.logging.disable_progress_bar()


SCAN = """
import json, sys
opened = []
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
import transformers
from transformers.utils import import_utils
del opened[:]
{models}
read = sum("transformers" in name and "models" in name and name.endswith(".py") for name in opened)
import transformers.models as models
from transformers import BertModel
told = [sorted(models._modules), sorted(models._class_to_module.items()), models.bert.__name__, BertModel.__module__]
print(json.dumps([read, told, import_utils.create_import_structure_from_path.__module__]))
"""


def scan(models: str) -> list:
    """How many files were read for the second time, what the package then has, and whose reader there is."""
    code = SCAN.format(models=models)
    return json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)


@pytest.mark.long  # 12 s: two interpreters read all of transformers
def test_the_same_models_without_reading_their_files_again() -> None:
    plain, alone, _ = scan("import transformers.models")
    ours, same, reader = scan("import regard.model_files.suppress_warnings")
    assert plain > 1000
    assert ours < 10
    assert same == alone
    assert len(same[1]) > 1000
    assert reader == "transformers.utils.import_utils"  # which was put back
