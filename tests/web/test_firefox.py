"""The page in a second browser, Firefox as Debian has it: a page of every kind is no blank sheet and shows its text."""

import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import matplotlib.image
import pytest

from regard.views.save_page import save_page
from tests.questions.patch.test_answer import made as sweep
from tests.questions.test_heads import answer_of
from tests.questions.test_heads import mean_scores_of as head_scores
from tests.support import own_models
from tests.support.browser import BUILT

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not BUILT.exists(), reason="the page is not built: make page"),
    pytest.mark.skipif(shutil.which("firefox-esr") is None, reason="no firefox-esr: apt-get install firefox-esr"),
]
WIDE, HIGH, ACROSS = 1000, 700, 2
SILENT = 'user_pref("javascript.enabled", false);\n'


class Late(BaseHTTPRequestHandler):
    """Answers late: Firefox takes its picture when all of a page is there, and this has to wait for its numbers."""

    def do_GET(self) -> None:
        """Give nothing, after a while."""
        time.sleep(4)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def late() -> Iterator[str]:
    """The address of what answers late."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Late)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


def pictures(names: list[str], folder: Path, late: str, settings: str) -> dict[str, Any]:
    """What Firefox shows of each of some pages, (rows, columns, 3); all side by side in one picture, for one start."""
    frame = f'style="position:absolute;border:0;width:{WIDE}px;height:{HIGH}px;left:{{}}px;top:{{}}px"'
    places = [(n // ACROSS * HIGH, n % ACROSS * WIDE) for n in range(len(names))]
    each = zip(names, places, strict=True)
    frames = [f'<iframe src="{name}.html" {frame.format(x, y)}></iframe>' for name, (y, x) in each]
    (folder / "all.html").write_text(f'<body>{"".join(frames)}<img src="{late}" width=1>', "utf-8")
    profile, file = folder / f"profile{len(settings)}", folder / f"all{len(settings)}.png"
    profile.mkdir()
    (profile / "user.js").write_text(settings)
    size = f"--window-size={ACROSS * WIDE},{-(-len(names) // ACROSS) * HIGH}"
    shot = ["firefox-esr", "--headless", "--no-remote", "--profile", profile, size, "--screenshot", file]
    subprocess.run([*shot, (folder / "all.html").as_uri()], check=True, capture_output=True, timeout=120)
    seen = matplotlib.image.imread(file)[..., :3]
    return {name: seen[y : y + HIGH, x : x + WIDE] for name, (y, x) in zip(names, places, strict=True)}


def lines(picture: Any) -> int:
    """How many rows of pixels are not blank."""
    return int((picture != picture[:, :1]).any((1, 2)).sum())


def coloured(picture: Any, more: int, less: int) -> int:
    """How many pixels have much more of one of red, green and blue (0, 1, 2) than of another."""
    return int((picture[..., more] - picture[..., less] > 0.4).sum())


def test_a_page_of_every_kind_is_shown(bank: Any, cloud_store: Any, tmp_path: Path, late: str) -> None:
    every: dict[str, Any] = {
        "see": bank, "translate": own_models.pair().trace(own_models.TEXTS[0], target=own_models.TARGETS[0]),
        "generate": own_models.opened("gpt").generate("A man is fishing", max_new_tokens=6),
        "heads": answer_of(head_scores()), "patch": sweep(), "senses": cloud_store.senses("bank", 2, checked=0),
    }  # fmt: skip
    for name, each in every.items():
        save_page(each, tmp_path / f"{name}.html")
    silent = pictures([*every], tmp_path, late, SILENT)
    for name, picture in pictures([*every], tmp_path, late, "").items():
        assert lines(silent[name]) > 50, f"{name}: without its program a page says so"
        assert coloured(silent[name], 0, 2) == 0 or name == "senses", name  # which is drawn without a program too
        assert lines(picture) > 200, f"{name} is all but blank"
        if name != "heads":  # a table
            assert coloured(picture, 2, 0) > 300, f"{name} shows no number as a colour"
