"""The file that shows every head of a text: BertViz's HTML and regard's, by their sizes."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

import regard
from benchmarks.compare.models import tokens
from benchmarks.compare.process import OFFLINE, ROOT

BERTVIZ = """
import importlib.util, json, os, sys, warnings
if importlib.util.find_spec("bertviz") is None:
    print(json.dumps({"failed": "not installed"})); sys.exit()
warnings.simplefilter("ignore")
import importlib.metadata, torch
from bertviz import model_view
from transformers import AutoModel, AutoTokenizer
folder, ids = sys.argv[1], json.loads(sys.argv[2])
model = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
with torch.inference_mode():
    weights = model(torch.tensor([ids]), output_attentions=True).attentions
names = AutoTokenizer.from_pretrained(folder).convert_ids_to_tokens(ids)
html = model_view(weights, names, html_action="return").data
print(json.dumps({"bytes": len(html.encode()), "version": importlib.metadata.version("bertviz")}))
"""


def sizes(python: str, folder: str, lengths: list[int]) -> dict[str, Any]:
    """Bytes of both files for each length, of all heads of all layers of the encoder."""

    model, found = regard.load(folder, device="cpu"), {}
    for length in lengths:
        ids = tokens(model.tokenizer, length)
        done = subprocess.run(
            [python, "-c", BERTVIZ, folder, json.dumps(ids)], env={**os.environ, **OFFLINE}, cwd=ROOT,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        theirs = json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else {"failed": done.stderr[-300:]}
        with tempfile.TemporaryDirectory() as out, torch.inference_mode():
            file = Path(out, "page.html")
            regard.save_page(model.trace(ids=ids), file)
            ours = file.stat().st_size
        found[str(length)] = {"BertViz": theirs, "regard": ours}
        print(f"{length} tokens, files: {found[str(length)]}", file=sys.stderr, flush=True)
    return found
