"""A BERT folder's texts are read without transformers as transformers reads them."""

from typing import Any

from regard.models.load import load_tokenizer
from regard.text.bert_tokenizer import BertTokenizer
from regard.text.tokens import encode_all, encode_parts

ODD = ["Zürich, ﬁne İstanbul ΑΣ", "e\u0301cole 銀行\t\u200b x 3.14", "A [MASK] b [SEP] c", "x" * 150, "🙂 ☃ \ufffd"]


def test_texts_are_read_as_transformers_reads_them(minilm: Any) -> None:
    ours, theirs = load_tokenizer(), minilm.tokenizer
    assert isinstance(ours, BertTokenizer)
    assert encode_all(ours, ODD) == encode_all(theirs, ODD)
    for pair in (True, False):
        assert encode_parts(ours, ODD[:2], pair=pair) == encode_parts(theirs, ODD[:2], pair=pair)
    assert ours.num_special_tokens_to_add(pair=True) == theirs.num_special_tokens_to_add(pair=True) == 3
