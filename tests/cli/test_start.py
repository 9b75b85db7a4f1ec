"""The command's own process: what it imports, that it ends whole, and that other processes stay as they are."""

import gc
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from regard.cli import start
from regard.cli.main import NAMES, VERBS, load_verbs, main
from tests.support import pipelines, run_in_process
from tests.support.served import served

TEXT = "A man fishing on a river bank."
NEVER = {"numba", "llvmlite", "scipy", "sklearn", "pandas", "torchvision", "tensorboard", "torch.utils.tensorboard"}
PICTURES = {"matplotlib", "regard.display.canvas"}
PAGES = {"regard.web"}
OTHERS = {"transformers", "huggingface_hub", "torch._dynamo", "sympy"}  # for other models than a bare BERT


COMMAND = """
import json, sys
from regard.cli.main import command
try:
    command()
finally:
    print(json.dumps([name for name, module in sys.modules.items() if module]), file=sys.stderr)
"""


def imported(*call: str) -> set[str]:
    """The modules that a call of the command imports, in a process of its own."""
    done = subprocess.run([sys.executable, "-c", COMMAND, *call], capture_output=True, text=True, check=True)
    return set(json.loads(done.stderr.splitlines()[-1]))


@pytest.mark.long  # 10 s: two interpreters
def test_a_short_text_imports_what_it_needs_and_no_more(minilm, tmp_path: Path) -> None:
    plain = imported("see", TEXT)
    assert "torch" in plain
    assert not plain & (NEVER | PICTURES | PAGES | OTHERS)
    pictured = imported("see", TEXT, "--figure", str(tmp_path / "a.png"))
    assert pictured >= PICTURES
    assert not pictured & (NEVER | PAGES | {"matplotlib.pyplot"})


def test_help_and_bad_options_import_no_library_that_computes() -> None:
    for call in (["--help"], ["--version"], ["see", "--help"]):
        assert not imported(*call) & (NEVER | PICTURES | PAGES | {"torch", "transformers", "numpy"})


BOOK = "Once a man went to a sunny bank to fish in the old river. " * 25
SMALL = [
    f"--set={size}" for size in ("layers=1", "d_model=16", "heads=2", "batch=64", "held_out=0.2", "vocabulary=300")
]
LESSON = "# %%\nimport sklearn.cluster\n"  # needs scipy
CASES = {  # of commands whose first example needs other files, or does less
    "see": ["see", TEXT, "--word", "bank", "--figure", "s.png"],
    "heads": ["heads", TEXT, "--tests"],
    "map": ["map", "book.txt"],
    "run": ["run", "one.py"],
    "train": ["train", "book.txt", "--out", "run", "--steps", "1", *SMALL],
    "paint": ["paint", "pipeline", "a cat on the mat", "--steps", "2"],
    "generate": ["generate", "Once", "--model", "writer", "--max-new-tokens", "3"],
    "translate": ["translate", "a cat", "--model", "translator"],
    "evolve": ["evolve", "writer"],
    "embed": ["embed", "book.txt", "--out", "new.store"],
    "find": ["find", "bank", "--store", "bank.store", "--like", "Money in the bank."],
    "senses": ["senses", "bank", "--store", "bank.store", "--k", "2"],
    "shift": ["shift", "bank", "--store", "bank.store", "--column", "kind"],
    "check": ["check", "--text", "A man."],
    "lesson": ["lesson", "1"],
    "article": ["article"],
    "fetch": ["fetch", "smollm2"],
}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory, bank_folder: Path) -> Path:
    """What the verbs read."""
    folder = tmp_path_factory.mktemp("inputs")
    (folder / "book.txt").write_text(BOOK, "utf-8")
    (folder / "pairs.tsv").write_text("".join(f"a cat {n}\tun chat {n}\n" for n in range(40)), "utf-8")
    (folder / "bank.store").symlink_to(bank_folder)
    (folder / "one.py").write_text("import torch\ntorch.nn.MultiheadAttention(4, 2)(*torch.ones(3, 1, 4))\n", "utf-8")
    (folder / "lessons").mkdir()
    (folder / "cache" / "smollm2").mkdir(parents=True)  # already there
    (folder / "lessons" / "1_digits.py").write_text(LESSON, "utf-8")
    for texts, run in (["book.txt", "--watch", "a man"], "writer"), (["--pairs", "pairs.tsv"], "translator"):
        done = run_in_process(folder, ["train", *texts, "--out", run, "--steps", "1", *SMALL])
        assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.long  # 3 s each: an interpreter for a verb
@pytest.mark.filterwarnings("ignore")  # of diffusers
@pytest.mark.parametrize("verb", NAMES)
def test_each_verb_runs_in_a_process_of_its_own(verb: str, inputs: Path) -> None:
    """Nothing that the command does at its start takes away what the verb imports later."""
    if verb == "serve":
        with served(TEXT) as (process, _, _):
            process.send_signal(signal.SIGINT)
            assert process.wait(20) in (0, 130)
        return
    if verb == "paint":
        pytest.importorskip("diffusers", reason="the extra diffusion is not installed")
        pipelines.stable_diffusion().save_pretrained(inputs / "pipeline")
    lessons = f"from regard.course import lesson; lesson.FOLDERS = [lesson.Path({str(inputs / 'lessons')!r})]"
    code = f"import sys; from regard.cli.main import command; {lessons if verb == 'lesson' else 'pass'}; command()"
    environment = {**os.environ, "REGARD_CACHE": "cache"}
    load_verbs([verb])
    call = [sys.executable, "-c", code, *(CASES.get(verb) or shlex.split(VERBS[verb].examples[0]))]
    done = subprocess.run(call, cwd=inputs, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def left_as_it_was() -> Iterator[None]:
    """What a process of the command changes for itself, put back."""
    yield
    start.settle()
    start._exit_code.clear()
    start.atexit.unregister(start._exit_at_once)
    sys.meta_path[:] = [each for each in sys.meta_path if each is not start.LossesWithoutScipy]
    gc.unfreeze()


@pytest.mark.usefixtures("left_as_it_was")
def test_what_is_changed_at_the_start_is_changed_back() -> None:
    before = gc.get_threshold()
    start.begin_process()
    assert gc.get_threshold() == (start.IMPORTED, *before[1:])
    start.settle()
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() > 0
    start.settle()  # nothing is left to change back
    assert gc.get_threshold() == before


def test_a_process_that_calls_the_command_stays_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    before = gc.get_threshold()
    with pytest.raises(SystemExit):
        main(["--version"])
    assert gc.get_threshold() == before
    assert not start._thresholds


CALLER = """
import gc, runpy, sys
from regard.cli.main import main
before = gc.get_threshold()
sys.argv = ["regard", "--version"]
for call in (main, lambda: runpy.run_module("regard", run_name="__main__")):
    try:
        call()
    except SystemExit as left:
        assert left.code == 0
    assert gc.get_threshold() == before and "scipy" not in sys.modules
sys.exit(3)
"""


def test_the_code_of_a_program_that_calls_the_command_counts() -> None:
    """It looked at sys.argv, as the console script does, and went on: what it ends with is its own."""
    done = subprocess.run([sys.executable, "-c", CALLER], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (3, "")
    assert done.stdout.count("regard ") == 2


@pytest.mark.usefixtures("left_as_it_was")
def test_the_commands_own_process_ends_with_its_code() -> None:
    for code in (0, 2):
        with pytest.raises(SystemExit) as left:
            start.own_process(lambda code=code: sys.exit(code))  # type: ignore[misc]
        assert (left.value.code, start._exit_code) == (code, [code])
        start._exit_code.clear()
    with pytest.raises(ValueError, match="a fault"):
        start.own_process(fault)
    assert not start._exit_code  # Python says what happened, and ends with 1


def fault() -> None:
    raise ValueError("a fault")


END = """
import atexit, sys, threading, time
from regard.cli import start
start.begin_process()
atexit.register(print, "for the end", flush=False)
def later():
    time.sleep(0.3)
    print("from a thread")
threading.Thread(target=later).start()
print("said")
{end}
"""


@pytest.mark.parametrize(
    ("end", "code"),
    [("sys.exit(start.record_exit(3))", 3), ("start.record_exit(0)", 0), ("sys.exit(2)", 2), ("raise ValueError", 1)],
)
def test_all_is_said_and_done_before_the_end(end: str, code: int) -> None:
    done = subprocess.run([sys.executable, "-c", END.format(end=end)], capture_output=True, text=True)
    assert done.returncode == code
    assert done.stdout.split("\n") == ["said", "from a thread", "for the end", ""]
    assert ("ValueError" in done.stderr) == (code == 1)


def test_output_that_cannot_be_written_is_no_success() -> None:
    code = END.format(end="sys.exit(start.record_exit(0))")
    out, back = os.pipe()
    os.close(out)
    try:
        done = subprocess.run([sys.executable, "-c", code], stdout=back, stderr=subprocess.PIPE, check=False)
    finally:
        os.close(back)
    assert done.returncode != 0
    assert b"BrokenPipeError" in done.stderr
