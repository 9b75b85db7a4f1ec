"""What a stranger's bytes may do: be read, or be refused in one line. Each target reads one kind of file or request.

A target's first byte says what the others are. Digests that a stranger could compute are made to fit, so that what lies
behind them is reached.
"""

import asyncio
import copy
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import peft
import pytest
import safetensors.numpy
from PIL import Image

import gguf
import regard
from regard.errors import RegardError
from regard.gguf.file import read_gguf_header
from regard.images import read_picture_bytes
from regard.model_files.folder import ADAPTER
from regard.model_files.limits import files_in_weight_index, read_sizes
from regard.models.load import model_under_adapter
from regard.models.read_checkpoint import WEIGHTS, merge_adapter
from regard.server.app import make_app
from regard.server.requests import ExperimentRequest
from regard.server.tasks import Limits
from tests.support.own_models import TEXTS, opened
from tests.support.web_pages import build_nothing

Target = Callable[[bytes], None]


class Safetensors:
    """Headers of weights, and the index of several files."""

    def __init__(self, folder: Path) -> None:
        self.file, self.index = folder / "model.safetensors", folder / "model.safetensors.index.json"

    def seeds(self) -> list[bytes]:
        """A file as it is, its header alone, an index."""
        tensors = {"a": np.ones((2, 3), np.float32), "b.c": np.ones(1, np.float16)}
        whole = safetensors.numpy.save(tensors, {"format": "pt"})
        length = int.from_bytes(whole[:8], "little")
        index = b'{"metadata":{"total_size":26},"weight_map":{"a":"model-1.safetensors","b.c":"model-2.safetensors"}}'
        return [b"\0" + whole, b"\1\x1a\0" + whole[8 : 8 + length], b"\2" + index]

    def __call__(self, data: bytes) -> None:
        """0: a file; 1: how many bytes of tensors, and a header whose length is made to fit; 2: an index."""
        kind, rest = data[0] % 3, data[1:]
        if kind == 2:
            self.index.write_bytes(rest)
            refused_in_a_line(lambda: files_in_weight_index(self.index))
            return
        if kind == 1:
            rest = len(rest[2:]).to_bytes(8, "little") + rest[2:] + bytes(int.from_bytes(rest[:2], "little"))
        self.file.write_bytes(rest)
        refused_in_a_line(lambda: read_sizes([self.file]))


class Gguf:
    """A GGUF file's header, and what the library makes of a file whose header was accepted."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "model.gguf"
        self.sizes = {int(kind): size for kind, size in gguf.GGML_QUANT_SIZES.items()}

    def seeds(self) -> list[bytes]:
        """A file with entries of every kind, and two tensors."""
        writer = gguf.GGUFWriter(self.file, "llama")
        writer.add_block_count(1)
        writer.add_context_length(7)
        writer.add_float32("llama.attention.layer_norm_rms_epsilon", 1e-5)
        writer.add_bool("general.flag", True)
        writer.add_token_list(["a", "b", "</s>"])
        writer.add_token_scores([0.0, -1.0, -2.0])
        writer.add_tensor("token_embd.weight", np.ones((3, 5), np.float32))
        writer.add_tensor("blk.0.attn_q.weight", np.ones((5, 5), np.float16))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return [b"\0" + self.file.read_bytes()]

    def __call__(self, data: bytes) -> None:
        """A file."""
        self.file.write_bytes(data[1:])
        refused_in_a_line(lambda: read_gguf_header(self.file, self.sizes))


class Traces:
    """Files of saved traces."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "trace.safetensors"
        regard.save(opened("llama").trace(TEXTS[1]), self.file)
        self.whole = self.file.read_bytes()

    def seeds(self) -> list[bytes]:
        """A file whose checksum is compared, and the same where it is not."""
        return [b"\0" + self.whole, b"\1" + self.whole]

    def __call__(self, data: bytes) -> None:
        """0: a file as it is opened; 1: without its checksum, so that what lies behind it is reached."""
        self.file.write_bytes(data[1:])
        refused_in_a_line(lambda: regard.open(self.file, verify=data[0] % 2 == 0))


class Adapters:
    """Folders of LoRA adapters: the config and the weights, for a model that is there."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.model = folder / "adapter", opened("gpt").model
        config = peft.LoraConfig(r=2, target_modules=["query", "embedding"])
        peft.get_peft_model(copy.deepcopy(self.model), config).save_pretrained(self.folder)
        self.files = [self.folder / ADAPTER, self.folder / WEIGHTS]
        self.whole = [file.read_bytes() for file in self.files]
        self.whole[0] = self.whole[0].replace(b'path": null', b'path": "someone/base"')

    def seeds(self) -> list[bytes]:
        """The config and the weights as they are."""
        return [bytes([n]) + whole for n, whole in enumerate(self.whole)]

    def __call__(self, data: bytes) -> None:
        """0: the config; 1: the weights."""
        for n, file in enumerate(self.files):
            file.write_bytes(data[1:] if n == data[0] % 2 else self.whole[n])
        refused_in_a_line(lambda: model_under_adapter(self.folder))
        refused_in_a_line(lambda: merge_adapter(regard.load(copy.deepcopy(self.model)), self.folder))


class Images:
    """Files of images, as a browser sends them."""

    def __init__(self, folder: Path) -> None:
        """It writes no files."""

    def seeds(self) -> list[bytes]:
        """One of each format, some with two frames, turned, transparent, compressed or of 16 bits."""
        exif = Image.Exif()
        exif[0x0112] = 6
        image = Image.fromarray(np.arange(105, dtype=np.uint8).reshape(7, 5, 3))
        deep = Image.fromarray(np.arange(35, dtype=np.uint16).reshape(7, 5))
        several = {"save_all": True, "append_images": [image]}
        asked: list[tuple[Image.Image, str, dict[str, Any]]] = [
            (image, "PNG", {"exif": exif}), (image.convert("LA"), "PNG", {}), (deep, "PNG", {}), (image, "BMP", {}),
            (image, "JPEG", {"exif": exif}), (image.convert("CMYK"), "JPEG", {}), (image, "PPM", {}),
            (image.convert("RGBA"), "WEBP", several), (image, "GIF", several), (deep, "TIFF", {}),
            *((image, "TIFF", {"compression": kind, **several}) for kind in ("raw", "tiff_lzw", "jpeg")),
        ]  # fmt: skip
        files = [io.BytesIO() for _ in asked]
        for file, (each, form, options) in zip(files, asked, strict=True):
            each.save(file, form, **options)
        return [b"\0" + file.getvalue() for file in files]

    def __call__(self, data: bytes) -> None:
        """A file."""
        refused_in_a_line(lambda: read_picture_bytes(data[1:], "x.png"))


class Requests:
    """JSON that a server is sent; no model is asked, for none is there."""

    PATHS = ("traces", "generations", "experiments", "corpora")

    def __init__(self, folder: Path) -> None:
        with pytest.MonkeyPatch.context() as patched:
            build_nothing(folder / "built", patched)
            self.app = make_app([], limits=Limits(body=100_000))
        self.loop = asyncio.new_event_loop()

    def seeds(self) -> list[bytes]:
        """One of each kind, with all that can be asked."""
        head = {"kind": "head", "layer": 1, "head": 2, "part": None}
        edge = {"kind": "edge", "query": "bank", "key": 3, "layer": None, "head": None, "part": "cross"}
        patch = {"kind": "patch", "what": "weights", "layer": 1, "source": "a", "at": None, "source_at": 1, "head": 0}
        asked: list[tuple[int, Any]] = [
            (0, {"texts": ["a bank"], "ablations": [head, edge, patch], "window": 31, "word": "bank", "steps": True}),
            (0, {"model": 0, "texts": ["a", "b"], "targets": ["c", "d"], "references": ["river", "money"]}),
            (1, {"prompt": "a", "new_tokens": 7, "temperature": 0.5, "seed": 11, "ablations": [head]}),
            (2, {"experiment": {"kind": "patch", "texts": ["a", "b"], "asked": {"answer": " x", "instead": " y"}}}),
            (2, {"experiment": {"kind": "heads", "texts": ["a"], "asked": {}}}),
            (3, {"about": "senses", "word": "bank", "senses": 3}),
        ]
        return [bytes([n]) + json.dumps(each).encode() for n, each in asked]

    def __call__(self, data: bytes) -> None:
        """Which path, and a request's body."""
        status, body = self.loop.run_until_complete(self.send(self.PATHS[data[0] % 4], data[1:]))
        assert 400 <= status < 500, (status, body)
        said = json.loads(body)["error"]
        assert said, body
        assert "\n" not in said
        try:
            asked = ExperimentRequest.model_validate_json(data[1:])
        except ValueError:
            return
        refused_in_a_line(lambda: asked.experiment.question().check(len(asked.texts)))

    def close(self) -> None:
        """Close the loop that requests are sent in."""
        self.loop.close()

    async def send(self, path: str, content: bytes) -> tuple[int, bytes]:
        """Send it as a server does, without a socket."""
        answered: list[dict[str, Any]] = []
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "scheme": "http",
            "path": f"/api/{path}", "raw_path": f"/api/{path}".encode(), "query_string": b"", "root_path": "",
            "headers": [(b"content-type", b"application/json"), (b"content-length", str(len(content)).encode())],
            "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 2),
        }  # fmt: skip

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": content, "more_body": False}

        async def send(message: Any) -> None:
            answered.append(message)

        await self.app(scope, receive, send)  # type: ignore[arg-type]
        return answered[0]["status"], b"".join(each.get("body", b"") for each in answered[1:])


TARGETS: dict[str, Any] = {
    "safetensors": Safetensors, "gguf": Gguf, "traces": Traces, "adapters": Adapters,
    "requests": Requests, "images": Images,
}  # fmt: skip


def refused_in_a_line(read: Callable[[], object]) -> None:
    """Read; a refusal has to be one line that says something. All else that is raised is a finding."""
    said = "refused"
    try:
        read()
    except RegardError as error:
        said = str(error)
    assert said.strip()
    assert "\n" not in said, said
