"""`regard run`: a program of the user's runs as it is, and the attention that it computed is shown below its output.

ONE_SENTENCE and RIVER_AND_FINANCE hold the computation of two articles. Their text is copyrighted, so these lines were
written for the tests: the same calls and names of variables, without the article's comments and prints.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from drawings.printed import printed
from regard.attention.recording import Calls
from regard.cli.main import main
from tests.support.web_pages import Read, build_nothing

ONE_SENTENCE = """
import torch
import torch.nn.functional as F

sentence_int = torch.tensor([0, 4, 5, 2, 1, 3])
torch.manual_seed(123)
embed = torch.nn.Embedding(6, 16)
embedded_sentence = embed(sentence_int).detach()

torch.manual_seed(123)
d = embedded_sentence.shape[1]
d_q, d_k, d_v = 24, 24, 28
W_query = torch.nn.Parameter(torch.rand(d_q, d))
W_key = torch.nn.Parameter(torch.rand(d_k, d))
W_value = torch.nn.Parameter(torch.rand(d_v, d))

x_2 = embedded_sentence[1]
query_2 = W_query.matmul(x_2)
keys = W_key.matmul(embedded_sentence.T).T
values = W_value.matmul(embedded_sentence.T).T
omega_2 = query_2.matmul(keys.T)
attention_weights_2 = F.softmax(omega_2 / d_k**0.5, dim=0)
print(attention_weights_2.tolist())
context_vector_2 = attention_weights_2.matmul(values)
"""
RIVER_AND_FINANCE = """
import json, pathlib, sys
import torch
import torch.nn.functional as F

article = json.loads(pathlib.Path(sys.argv[1]).read_text())
river, finance = (torch.tensor([article["embeddings"][w] for w in article[name]]) for name in ("river", "finance"))

river_weights = F.softmax(river @ river.T, dim=-1)
river_contextual = river_weights @ river
finance_weights = F.softmax(finance @ finance.T, dim=-1)
finance_contextual = finance_weights @ finance


def self_attention(x, W_query, W_key, W_value):
    Q, K, V = x @ W_query, x @ W_key, x @ W_value
    weights = F.softmax(Q @ K.transpose(-2, -1) / K.shape[-1] ** 0.5, dim=-1)
    return weights @ V


W = [torch.tensor(article["projected_attention"][f"W_{name}"]).float() for name in ("query", "key", "value")]
river_output = self_attention(river, *W)
finance_output = self_attention(finance, *W)


class SelfAttention(torch.nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = torch.nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = torch.nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = torch.nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x):
        return self_attention(x, self.W_query, self.W_key, self.W_value)


torch.manual_seed(0)
layer = SelfAttention(4, 3)
layer(river)
layer(finance)
"""
ENCODER = """
import torch
layer = torch.nn.TransformerEncoderLayer(32, 14 // 7 * 16, batch_first=True)
torch.nn.functional.scaled_dot_product_attention(*torch.randn(3, 2, 14, 100, 4))
for step in range(2):
    layer(torch.randn(1, 5, 32))
torch.randn(3).softmax(0)
"""
FAILS = "import sys, torch\ntorch.nn.MultiheadAttention(4, 2)(*torch.ones(3, 1, 4))\n"


@pytest.fixture
def told(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run a program's text in a folder of its own: (exit code, output, errors)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")

    def tell(code: str, *arguments: str, options: tuple[str, ...] = (), script: str = "own.py") -> Any:
        Path("own.py").write_text(code, "utf-8")
        before = list(sys.argv), list(sys.path)
        with pytest.raises(SystemExit) as left:
            main(["run", *options, script, *arguments])
        assert (sys.argv, sys.path) == before
        return left.value.code, *capsys.readouterr()

    return tell


def calls(file: str = "seen.json") -> list[dict[str, Any]]:
    return json.loads(Path(file).read_text("utf-8"))["calls"]


def test_the_code_of_the_article_on_one_sentence(told) -> None:
    code, out, err = told(ONE_SENTENCE, options=("--json", "seen.json"))
    (call,) = calls()
    assert (code, err, call["path"]) == (0, "", "attention_weights_2")
    assert [round(weight, 4) for weight in call["weights"][0]] == printed("one sentence")["weights"]
    own, *lines = out.splitlines()
    assert own == str(call["weights"][0])  # the program's output comes first, and its weights are these to the bit
    line = ONE_SENTENCE[: ONE_SENTENCE.index("attention_weights_2")].count("\n") + 1
    assert " ".join(lines[2].split()) == f"attention_weights_2 by hand, softmax of q·k (1, 6) own.py:{line}"


def test_the_code_of_the_article_on_river_and_finance(told) -> None:
    article = printed("river and finance")
    Path("article.json").write_text(json.dumps(article), "utf-8")
    code, out, _ = told(RIVER_AND_FINANCE, "article.json", options=("--json", "seen.json"))
    assert (code, out.splitlines()[0]) == (0, "Seen: 6 attention calls")
    names = ["river_weights", "finance_weights", "self_attention", "self_attention", "layer", "layer"]
    assert [call["path"] for call in calls()] == names
    torch.manual_seed(0)
    drawn = [torch.rand(4, 3) for _ in range(3)]  # W_query, W_key, W_value of the layer
    of_value = [torch.eye(4), torch.tensor(article["projected_attention"]["W_value"]).float(), drawn[2]]
    parts = ("parameter_free_attention", "projected_attention", "self_attention_layer")
    texts = ("river", "finance")
    for call, (part, text, matrix) in zip(
        calls(), ((p, t, m) for p, m in zip(parts, of_value, strict=True) for t in texts), strict=True
    ):
        rows = torch.tensor([article["embeddings"][word] for word in article[text]])
        found = torch.tensor(call["weights"]) @ rows @ matrix
        torch.testing.assert_close(found, torch.tensor(article[part][text]), rtol=0, atol=5.01e-4)


def test_long_programs_keep_the_last_calls(told) -> None:
    call = "torch.nn.functional.scaled_dot_product_attention(*torch.randn(3, 1, 2, 5, 4))"
    _, out, _ = told(f"import torch\nfor _ in range(9):\n    {call}\n", options=("--json", "seen.json"))
    assert [call["nth"] for call in calls()] == [5, 6, 7, 8]
    assert "Only the last 4 calls of each path are kept." in out


def test_calls_of_modules_figures_and_large_maps(told) -> None:
    code, out, err = told(ENCODER, options=("--figure", "first.png", "--json", "seen.json"))
    assert (code, err) == (0, "")
    assert [(call["path"], call["nth"]) for call in calls()][1:] == [("layer.self_attn", 0), ("layer.self_attn", 1)]
    assert calls()[0]["weights"] is None  # 2 × 14 × 100 × 100
    assert "Softmax of line 7 (own.py:7) passed over: it is no factor of a sum of vectors\n" in out
    assert Path("first.png").stat().st_size > 10_000


def test_an_attention_file_is_shown_as_a_program_is(
    told, bank: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    build_nothing(tmp_path / "built", monkeypatch)
    recorded, weights = Calls(None, ()), torch.rand(26, 2, 3).softmax(-1)
    recorded.add("blocks.0.attn", "softmax(learned)", regard.AttentionMap.of_weights(weights), where="a/net.py:3")
    recorded.save("own.safetensors", key_tokens=["the", "river", "bank"])
    options = ("--figure", "a.png", "--html", "a.html", "--json", "a.json")
    code, out, err = told("", options=options, script="own.safetensors")
    assert (code, err, out.splitlines()[0]) == (0, "", "Seen: 1 attention call")
    assert "blocks.0.attn  by hand, softmax of learned scores  (26, 2, 3)  net.py:3" in out
    assert "Plot: the first 24 heads, 2 more are not drawn" in out
    torch.testing.assert_close(torch.tensor(calls("a.json")[0]["weights"]), weights)
    page = Read(Path("a.html"))
    assert page.data["texts"][1]["tokens"]["text"] == ["the", "river", "bank"]
    torch.testing.assert_close(torch.tensor(page.weights(page.data["calls"][0])).float(), weights, atol=1e-6, rtol=0)
    code, out, err = told("", "--html", "b.html", script="own.safetensors")
    assert (code, out, Path("b.html").exists()) == (2, "", False)
    assert "put options before an attention file: regard run --html b.html own.safetensors" in err
    recorded.add("a\x1b[31m\nb", "softmax", regard.AttentionMap.of_weights(weights))
    recorded.save("own.safetensors")
    assert "\na\\x1b[31m↵b" in told("", script="own.safetensors")[1]
    regard.save(bank, "own.safetensors")
    code, out, err = told("", script="own.safetensors")
    assert (code, out) == (2, "")
    assert "'own.safetensors' has traces: show them with regard see --open own.safetensors" in err
    recorded.save("own.safetensors")
    for read in (["see", "--open"], ["map", "--open"], ["serve", "--open"]):
        with pytest.raises(SystemExit):
            main([*read, "own.safetensors"])
        assert "has attention without a trace: show it with regard run own.safetensors" in capsys.readouterr().err


def test_json_alone_on_standard_output(told) -> None:
    code, out, err = told(ONE_SENTENCE, options=("--json", "-"))
    assert (code, json.loads(out)["format"], err.startswith("[0.29")) == (0, "regard run", True)


@pytest.mark.parametrize(
    ("end", "code", "error"),
    [
        ("1 / 0", 1, 'File "{path}", line 3, in <module>'),
        ("sys.exit()", 0, ""),
        ("sys.exit(7)", 7, ""),
        ("sys.exit('a reason')", 1, "a reason\n"),
        ("raise KeyboardInterrupt", 130, "KeyboardInterrupt"),
    ],
)
def test_how_a_program_ends(told, tmp_path: Path, end: str, code: int, error: str) -> None:
    left, out, err = told(FAILS + end)
    assert left == code
    assert error.format(path=tmp_path / "own.py") in err
    assert "regard" not in err.replace(str(tmp_path), "")  # its own frames are left out
    assert out.startswith("Seen: 1 attention call\n")


def test_no_attention(told) -> None:
    code, out, err = told("import torch\nprint(1)\ntorch.ones(2).softmax(0)")
    assert (code, out, err.count("\n")) == (2, "1\n", 1)
    assert "run: own.py computed no attention. softmax of line 3 (own.py:3) passed over: it is no factor" in err
    code, out, err = told("def broken(:")
    assert (code, out) == (1, "Seen: 0 attention calls\n")
    assert err.endswith("SyntaxError: invalid syntax\n")


def test_what_is_no_script(told, tmp_path: Path) -> None:
    for name, says in (("none.py", "cannot be read: No such file"), ("a.ipynb", "is a notebook")):
        (tmp_path / "a.ipynb").touch()
        done = subprocess.run([sys.executable, "-m", "regard", "run", name], capture_output=True, text=True)
        assert (done.returncode, says in done.stderr, done.stderr.count("\n")) == (2, True, 1)


def test_a_process_is_the_programs_own(tmp_path: Path) -> None:
    """Files that it leaves open are written at the end, and transformers sees scipy. Arguments after it are its own."""
    Path(tmp_path, "beside.py").write_text("value = 3")
    Path(tmp_path, "own.py").write_text(
        FAILS + "import beside, gc\nprint(sys.argv[1:], beside.value, gc.get_threshold())\n"
        "import transformers.loss.loss_utils as u\nprint(u.__name__)\nkept = [open('log.txt', 'w')]\nkept += [kept]\n"
        "kept[0].write('all of it')\nimport matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()\n"
    )
    call = [sys.executable, "-m", "regard", "run", "own.py", "--json", "x", "-h", "--", "-1"]
    done = subprocess.run(call, capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    plain = "import gc; print(gc.get_threshold())"
    threshold = subprocess.run([sys.executable, "-c", plain], capture_output=True, text=True).stdout
    assert done.stdout.startswith(f"['--json', 'x', '-h', '--', '-1'] 3 {threshold}")
    assert Path(tmp_path, "log.txt").read_text() == "all of it"
