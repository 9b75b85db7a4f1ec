"""What the front pages say of their two sentences is what the default model gives, by cosines alone."""

import re

from torch.nn.functional import cosine_similarity

from regard.text.neutral_sentences import neutral_sentences
from tests.support import ROOT

RIVER, MONEY = "We sat on the grassy bank of the stream.", "I deposited my savings in the bank."
SAID = re.compile(
    r'towards "(?P<word>\w+)" \((?:cosine )?(?P<cosine>[\d.]+)(?:[^()]*?39 sentences[^()]*?|; )'
    r"(?P<low>0\.\d+) to (?P<high>0\.\d+)"
)


def test_cosines_and_their_ranges_in_neutral_sentences(minilm) -> None:
    texts = [RIVER, MONEY, *neutral_sentences("bank"), "river", "deposit"]
    traces = minilm.trace(texts, logits=False, attention_outputs=False)
    *banks, river, deposit = (trace["bank" if "bank" in trace.text else trace.text] for trace in traces)
    for page in ("README.md", "docs/index.md"):
        text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
        told = [match.groupdict() for match in SAID.finditer(text)]
        assert [each["word"] for each in told] == ["river", "deposit"], page
        for own, each, reference in zip(banks[:2], told, (river, deposit), strict=True):
            assert f"{float(cosine_similarity(own, reference, dim=0)):.2f}" == each["cosine"]
            neutral = [float(cosine_similarity(bank, reference, dim=0)) for bank in banks[2:]]
            assert len(neutral) == 39
            assert (f"{min(neutral):.2f}", f"{max(neutral):.2f}") == (each["low"], each["high"])
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert f'"{RIVER}"' in readme
    assert f'"{MONEY}"' in readme


def test_sizes_and_ratios_are_those_that_were_measured() -> None:
    readme, measured = (
        " ".join((ROOT / page).read_text(encoding="utf-8").split()) for page in ("README.md", "docs/performance.md")
    )
    for said, row in (
        ("72 heads at 510 tokens take 7 MB", "| one file, MiniLM, 6 × 12 heads, 510 tokens | 6.95 MB |"),
        ("a layer of 604 million weights 17.7 MB", "8192 tokens: 604 million weights | 17.7 MB |"),
        ("a sixth of the time", "`output_attentions`, GPT-2's size, 4096 tokens: time | 6.2 × faster |"),
        ("a ninth of the memory", "peak memory above the model | 1101 and 10,277 MiB: 9.3 × less"),
        ("the same weights within 3e-7", "the same: weights | within 3.0e-7 |"),
    ):
        assert said in readme
        assert row in measured


def test_two_of_twenty_pairs_are_told_right() -> None:
    assert "Two of twenty are." in (ROOT / "docs/movement.md").read_text(encoding="utf-8")
    for page in ("README.md", "docs/index.md"):
        told = " ".join((ROOT / page).read_text(encoding="utf-8").split())
        assert re.search(r"of \[twenty pairs\]\((docs/)?movement\.md\) two do\.", told)
