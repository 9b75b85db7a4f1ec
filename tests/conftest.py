"""Real models for the tests, loaded once a session; and the same examples drawn every time.

`--hypothesis-profile=default` draws others.
"""

import importlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jaxtyping
import pytest
from hypothesis import settings

from tests.support import MONEY, RIVER, annotations, default_model, durations, real_models, run_in_process
from tests.support.annotations import no_checks_of_annotations
from tests.support.browser import BUILT, chromium
from tests.support.real_models import opus_mt, smollm2, stories

# one browser for all tests: a process can drive one
__all__ = ["chromium", "no_checks_of_annotations", "opus_mt", "smollm2", "stories"]

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # no test may wait for a hub
jaxtyping.jaxtyped = annotations.cheaper(jaxtyping.jaxtyped)

# jaxtyping looks for the bytecode of all that a module of regard is the first to import under a name of its own: it is
# compiled anew, 12 seconds in a worker that collects every file. So what is large is imported before.
if "PYTEST_XDIST_WORKER" in os.environ:
    for name in (
        "numba",
        "matplotlib.pyplot",
        "scipy",
        "transformers.modeling_utils",
        "accelerate",
        "safetensors.torch",
    ):
        importlib.import_module(name)

settings.register_profile("steady", derandomize=True, deadline=None)
settings.load_profile("steady")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--record-durations", choices=durations.TIERS, help="write this tier's part of durations.json anew"
    )


def pytest_configure(config: pytest.Config) -> None:
    tier = config.getoption("--record-durations")
    if tier and "PYTEST_XDIST_WORKER" not in os.environ:  # the process that hears of all tests
        config.pluginmanager.register(durations.Recorder(tier))


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    slow = durations.slow_tests()
    for item in items:
        if item.nodeid in slow:
            item.add_marker("slow")
        for fixture in real_models.MARKS.keys() & set(getattr(item, "fixturenames", ())):
            item.add_marker(real_models.MARKS[fixture])


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A page's program that shows nothing, so that no test waits for Node."""
    from tests.support.web_pages import build_nothing  # it imports regard, which annotations.cheaper has to precede

    with pytest.MonkeyPatch.context() as patch:
        build_nothing(tmp_path_factory.mktemp("page") / "built", patch)
        yield


@pytest.fixture(scope="session")
def minilm() -> Any:
    """The embedded default model."""
    return default_model()


@pytest.fixture(scope="session")
def bank(minilm: Any) -> Any:
    """Traces of the two bank sentences, made in one batch."""
    return minilm.trace([RIVER, MONEY])


@pytest.fixture(scope="session")
def tiny_pair(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A tiny random encoder-decoder with a tokenizer of whole words."""
    import regard
    from tests.support.pairs import make_pair

    make_pair(folder := tmp_path_factory.mktemp("models") / "pair")
    return regard.load(folder, device="cpu")


@pytest.fixture(scope="session")
def bank_folder(tmp_path_factory: pytest.TempPathFactory, minilm: Any) -> Path:
    """A store of sentences with "bank" in two senses."""
    from tests.support.stores import write_bank_store

    return write_bank_store(tmp_path_factory.mktemp("stores") / "bank", minilm)


@pytest.fixture
def bank_store(bank_folder: Path, minilm: Any) -> Any:
    """That store, opened, with the model that is loaded already."""
    from regard.corpus.store import Store

    with Store(bank_folder) as opened:
        vars(opened)["model"] = minilm
        yield opened


@pytest.fixture(scope="session")
def cloud_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of made vectors in which "bank" has 30 occurrences whose senses cannot be told apart."""
    from tests.support.stores import write_cloud_store

    return write_cloud_store(tmp_path_factory.mktemp("stores") / "cloud")


@pytest.fixture
def cloud_store(cloud_folder: Path) -> Any:
    """That store, opened."""
    from regard.corpus.store import Store

    with Store(cloud_folder) as opened:
        yield opened


@pytest.fixture
def regard_command(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the command in a folder of its own, in the test's own process."""

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return run_in_process(tmp_path, arguments, **environment)

    return run


@pytest.fixture
def regard_process(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the command as a person would, in a folder and a process of its own."""

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "regard", *arguments],
            cwd=tmp_path,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=300,
            check=False,
        )

    return run


@pytest.fixture
def some_page(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a page that shows nothing stand in where the real one is not built: --html is one of many files here."""
    from tests.support.web_pages import build_nothing  # what it imports of regard has to wait for the lines above

    if not BUILT.exists():
        build_nothing(tmp_path_factory.mktemp("page") / "built", monkeypatch)
