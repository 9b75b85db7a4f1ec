"""torch.compile over attend: the same results, with the graph broken there and nothing of it traced."""

import subprocess
import sys

import pytest

PROGRAM = """
import torch, regard
from torch._dynamo.utils import counters

def layer(x, length):
    seen = regard.attend(x * 2, x, x, causal=True)
    return seen.output + 1, seen

x = torch.randn(1, 2, 37, 8)
compiled = torch.compile(layer, backend="eager")
for size in (37, 37, 23, 11):
    y = x[:, :, :size].clone().requires_grad_()
    z = y.detach().clone().requires_grad_()
    (output, seen), (right, plain) = compiled(y, size), layer(z, size)
    assert torch.equal(output, right) and torch.equal(seen.weights.dense(), plain.weights.dense())
    output.sum().backward()
    right.sum().backward()
    assert torch.equal(y.grad, z.grad)
with regard.record() as calls:
    compiled(x, 37)
assert list(calls) == [("", 0)]
reasons = " ".join(counters["graph_break"])
assert "attend runs its kernels as they are" in reasons, reasons
try:
    torch.compile(lambda x: layer(x, 1)[0], backend="eager", fullgraph=True)(x)
except Exception as error:
    assert "attend runs its kernels as they are" in str(error), error
else:
    raise AssertionError("fullgraph went through")
"""


@pytest.mark.long
def test_in_a_process_without_checks_of_annotations() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
