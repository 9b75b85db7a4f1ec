"""What prints as a few lines, however much it holds."""

import torch

import regard


def test_nothing_prints_whole_tensors_or_texts(minilm) -> None:
    trace = minilm.trace(40 * "A man sat on the river bank. ")
    assert repr(trace).startswith("Trace('A man sat")
    assert repr(trace).endswith("…', 322 tokens, 6 layers, all-MiniLM-L6-v2)")
    assert repr(trace.attention) == "Layers('attention', 6 × LabelledMap)"
    with regard.record() as calls:
        for _ in range(12):
            found = regard.attend(*torch.randn(3, 1, 2, 5, 4))
    kept = "output=Tensor(1, 2, 5, 4), logsumexp=Tensor(1, 2, 5), weights=AttentionMap(1, 2, 5, 5)"
    assert repr(found) == f"Attention({kept}, kernel={found.kernel!r})"
    assert repr(calls).splitlines()[0] == "Calls: 12"
    summary = regard.see("A bank by a river.", word="bank", model=minilm).summary
    for each in (trace, trace.values, trace.attention_outputs[0], calls, calls["", 0], summary, *summary.occurrences):
        lines = [part for line in repr(each).splitlines() for part in range(0, len(line), 120)]
        assert len(lines) <= 10, repr(each)
