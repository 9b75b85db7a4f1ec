"""Every lesson runs from nothing, asserts its own figures, and leaves files in its output folder alone."""

import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from regard.models.model import Model
from tests.support import ROOT, SHARED

RANKS = SHARED / "tokenizers"
FOLDER = ROOT / "docs" / "lessons"
PICTURES = {
    "1_text_to_vectors": ["cl100k_base.svg", "minilm_tokens.svg", "overview.svg"],
    "2_words_before_context": ["partners.svg", "skip_gram_and_cbow.svg"],
    "3_position": ["copying.svg", "hands.svg", "learned_positions.png", "positions.svg", "turning.svg"],
    "4_self_attention": ["matrix.svg", "three_steps.svg", "without_projections.svg"],
    "5_queries_keys_values": ["asking.svg", "projections.svg", "river_and_finance.svg", "single_head.svg"],
    "6_heads": [
        "ablated.svg", "ate.svg", "kernels.svg", "multi_head.svg", "ranges.png", "untrained_heads.svg",
    ],
    "7_a_transformer_that_writes": [
        "attention_forms.svg", "causal_mask.svg", "decoder_block.svg", "temperatures.svg", "written.svg",
    ],
    "8_across": ["alignment.svg", "cross_attention.svg", "encoder_decoder.svg", "image_and_words.png", "unet.svg"],
    "9_contextual_embeddings": ["bank_cosines.svg", "encoder_block.svg"],
    "10_words_that_paint": ["heat.png", "heat_or_cause.png", "noise.png", "painted.png"],
    "11_since_2017": ["flash_memory.svg", "grouped.svg", "kv_cache.svg", "rotary.svg", "sinks.svg", "window.svg"],
    "12_an_induction_head": ["both_heads.svg", "forms.svg"],
}  # fmt: skip
ORDER = list(PICTURES)


def run(file: Path, folder: Path, **extra: str) -> "subprocess.CompletedProcess[str]":
    """Run a lesson, or a changed copy, in an empty folder, without the models that are not of the package."""
    without = dict.fromkeys(("REGARD_OPUS_MT", "REGARD_LESSON_MODEL", "REGARD_GLOVE", "REGARD_SMOLLM2"), "")
    environment = {**os.environ, **without, "REGARD_OUT": "here/out", **extra}
    if file.parent not in (FOLDER, FOLDER.parent):  # its drawings lie beside the lesson
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(FOLDER), environment.get("PYTHONPATH")]))
    return subprocess.run(
        [sys.executable, str(file)],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip


def test_all_are_listed_and_lead_on_to_the_next() -> None:
    assert sorted(path.stem for path in FOLDER.glob("[0-9]*_*.py")) == sorted(ORDER)
    for name, following in pairwise(ORDER):
        assert f"({following}.py)" in (FOLDER / f"{name}.py").read_text("utf-8")


@pytest.mark.nightly  # make docs runs every lesson, too
@pytest.mark.parametrize("name", ORDER)
def test_runs_and_stays_in_its_folder(name: str, tmp_path: Path) -> None:
    cache = os.environ.get("TIKTOKEN_CACHE_DIR", str(tmp_path / "none"))
    done = run(FOLDER / f"{name}.py", tmp_path, TIKTOKEN_CACHE_DIR=cache)
    assert done.returncode == 0, done.stderr
    left = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file())
    assert left == [Path("here/out") / picture for picture in PICTURES[name]]
    assert all((tmp_path / path).stat().st_size > 5000 for path in left)
    assert done.stdout.strip()
    if name == ORDER[0] and "NOT CHECKED HERE" in done.stdout:
        pytest.skip(
            "everything ran but cl100k_base, whose ranks are not available here (network, or TIKTOKEN_CACHE_DIR)"
        )


@pytest.mark.long
def test_five_lines_of_python(tmp_path: Path) -> None:
    done = run(ROOT / "docs" / "five_lines.py", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "head 2 has the largest weight, 0.999 (mean of the heads: 0.252)" in done.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
@pytest.mark.shared
@pytest.mark.skipif(not RANKS.is_dir(), reason=f"no folder {RANKS} (REGARD_SHARED names another place)")
def test_cl100k_base_where_its_ranks_are(tmp_path: Path) -> None:
    pytest.importorskip("tiktoken")
    done = run(FOLDER / f"{ORDER[0]}.py", tmp_path, TIKTOKEN_CACHE_DIR=str(RANKS))
    assert done.returncode == 0, done.stderr
    assert "NOT CHECKED HERE" not in done.stdout
    assert "3923 374 279 6864 315 9822 30" in done.stdout


@pytest.mark.nightly  # where make docs has it, it runs with it too
@pytest.mark.real
@pytest.mark.skipif("REGARD_OPUS_MT" not in os.environ, reason="REGARD_OPUS_MT names no folder with opus-mt-en-fr")
def test_a_real_translator_where_there_is_one(tmp_path: Path) -> None:
    done = run(FOLDER / "8_across.py", tmp_path, REGARD_OPUS_MT=os.environ["REGARD_OPUS_MT"])
    assert done.returncode == 0, done.stderr
    assert "rive" in done.stdout
    assert (tmp_path / "here/out/opus_mt.svg").stat().st_size > 5000


def analogies(folder: Path, file: Path) -> "subprocess.CompletedProcess[str]":
    """Run what the analogies of lesson 2 need, the imports and their own cell, on a file of word vectors."""
    cells = (FOLDER / "2_words_before_context.py").read_text("utf-8").split("# %%")
    short = folder / "short.py"
    short.write_text(
        "\n".join("#" + cell for cell in cells if "\nimport re" in cell or 'find("glove")' in cell), "utf-8"
    )
    return run(short, folder, REGARD_GLOVE=str(file))


@pytest.mark.long
def test_other_vectors_do_not_pass_for_gloves(tmp_path: Path) -> None:
    (tmp_path / "glove.bin").write_text("king 1 2\nqueen 3 4\n", "utf-8")
    done = analogies(tmp_path, tmp_path / "glove.bin")
    assert done.returncode == 1
    assert "is not the file that regard fetch makes of GloVe 6B: its SHA-256 is" in done.stderr


@pytest.mark.long
@pytest.mark.real
@pytest.mark.skipif("REGARD_GLOVE" not in os.environ, reason="REGARD_GLOVE names no file of GloVe 6B's vectors")
def test_analogies_of_real_vectors(tmp_path: Path) -> None:
    done = analogies(tmp_path, Path(os.environ["REGARD_GLOVE"]))
    assert done.returncode == 0, done.stderr
    assert "king − man + woman: nearest king (0.886); without the three\n    queen 0.861, daughter 0.768" in done.stdout
    assert "paris − france + italy: nearest rome (0.838)" in done.stdout
    assert "bank and river    0.414, place 2,296 of 49,999 others" in done.stdout


@pytest.mark.long
def test_another_model_does_not_pass_for_the_published_one(tmp_path: Path, minilm: Model) -> None:
    folder = minilm.model.config._name_or_path
    done = run(FOLDER.parent / "articles/contextual_embeddings.py", tmp_path, REGARD_LESSON_MODEL=str(folder))
    assert done.returncode == 1
    assert "Mismatched elements: 5 / 5" in done.stderr
