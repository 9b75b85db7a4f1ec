"""The tokenizer of a BERT folder, run by the library `tokenizers` alone: importing transformers takes seconds.

transformers makes a BertTokenizer of a folder's vocabulary and settings. The same is made here, where the folder's
tokenizer.json holds the very same, and its settings hold nothing else. Any other folder is left to transformers.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

from regard.files import read_json, read_regular
from regard.text.tokenizers import CLS, MASK, PAD, SEP, UNK
from regard.text.tokens import tokenizer_errors

ROLES = {"unk_token": UNK, "sep_token": SEP, "pad_token": PAD, "cls_token": CLS, "mask_token": MASK}
FILE, SETTINGS, ROLES_FILE = "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"
OTHERS = ("added_tokens.json", "chat_template.jinja")  # files that add to it
USED = ("do_lower_case", "tokenize_chinese_chars", "strip_accents")
# Settings that change nothing of how a text is read without padding and truncation.
UNUSED = """
    backend clean_up_tokenization_spaces do_basic_tokenize is_local local_files_only max_length model_max_length
    name_or_path pad_to_multiple_of pad_token_type_id padding_side special_tokens_map_file stride tokenizer_file
    truncation_side truncation_strategy
"""


class Encodings(dict[str, Any]):
    """What a `BertTokenizer` gives for texts, as transformers names it."""

    def __init__(self, rows: Sequence[tokenizers.Encoding]) -> None:
        self._rows, fields = rows, {"input_ids": "ids", "token_type_ids": "type_ids", "offset_mapping": "offsets"}
        super().__init__({name: [getattr(row, field) for row in rows] for name, field in fields.items()})

    def word_ids(self, n: int) -> list[int | None]:
        """Number the words of text n's tokens."""
        return self._rows[n].word_ids

    def sequence_ids(self, n: int) -> list[int | None]:
        """Say of which text of pair n each token is."""
        return self._rows[n].sequence_ids


class BertTokenizer:
    """Reads texts as the BertTokenizer of transformers does, by the names that regard asks for."""

    is_fast = True
    bos_token_id = eos_token_id = None

    def __init__(self, backend: tokenizers.Tokenizer) -> None:
        self.backend_tokenizer = backend
        self.unk_token = UNK
        ids = [backend.token_to_id(token) for token in ROLES.values()]
        self.unk_token_id, self.sep_token_id, self.pad_token_id, self.cls_token_id, self.mask_token_id = ids
        self.all_special_ids = ids

    def __len__(self) -> int:
        return self.backend_tokenizer.get_vocab_size()

    def __call__(
        self, text: Any = None, text_pair: Any = None, text_target: Any = None, *, add_special_tokens: bool = True,
        is_split_into_words: bool = False, **_: Any,
    ) -> dict[str, Any]:  # fmt: skip
        """Encode a text or several, none of them cut or padded."""
        if isinstance(text, str):
            return {name: rows[0] for name, rows in self([text], add_special_tokens=add_special_tokens).items()}
        texts = text_target if text is None else text
        if text_pair is not None:
            texts = [*zip(texts, text_pair, strict=True)]
        options = {"is_pretokenized": is_split_into_words, "add_special_tokens": add_special_tokens}
        return Encodings(self.backend_tokenizer.encode_batch(texts, **options))

    def decode(self, ids: Sequence[int], **_: Any) -> str:
        """Spell ids as a text."""
        return self.backend_tokenizer.decode(ids, skip_special_tokens=False)

    def convert_ids_to_tokens(self, ids: int | Iterable[int]) -> Any:
        """Spell ids as the vocabulary does."""
        spell = self.backend_tokenizer.id_to_token
        return spell(ids) if isinstance(ids, int) else [spell(number) for number in ids]

    def num_special_tokens_to_add(self, pair: bool = False) -> int:
        """Count the special tokens that are put around a text, or a pair."""
        return self.backend_tokenizer.num_special_tokens_to_add(pair)


def read_bert_tokenizer(folder: Path) -> BertTokenizer | None:
    """Read a folder's tokenizer; None for one that transformers has to read."""
    if any((folder / name).exists() for name in OTHERS):
        return None
    try:
        settings = read_json(folder / SETTINGS)
        roles = read_json(folder / ROLES_FILE) if (folder / ROLES_FILE).exists() else {}
        said = {name: value for name, value in settings.items() if name not in {*UNUSED.split(), *USED}}
        known = said.pop("tokenizer_class") in ("BertTokenizer", "BertTokenizerFast")
        usual = (ROLES | {"never_split": None}).items()
        if not known or not said.items() <= usual or not roles.items() <= ROLES.items():
            return None
        with tokenizer_errors(str(folder)):
            whole = tokenizers.Tokenizer.from_str(read_regular(folder / FILE).decode("utf-8"))
            whole.no_truncation()
            whole.no_padding()
            both = whole, _as_transformers_makes_it(whole, settings)
            theirs, ours = (made.to_str().partition('"vocab":')[0] for made in both)  # which is last
            if theirs != ours:
                return None
    except Exception:  # the library raises bare Exception: transformers finds the same fault, and it is reported there
        return None
    return BertTokenizer(whole)


def _as_transformers_makes_it(whole: tokenizers.Tokenizer, settings: dict[str, Any]) -> tokenizers.Tokenizer:
    """Make what the BertTokenizer of transformers makes of settings, but with special tokens for all vocabulary."""
    special: dict[str, Any] = {token: whole.token_to_id(token) for token in ROLES.values()}
    made = tokenizers.Tokenizer(models.WordPiece(special, unk_token=UNK))
    lower, chinese = settings.get("do_lower_case", True), settings.get("tokenize_chinese_chars", True)
    made.normalizer = normalizers.BertNormalizer(True, chinese, settings.get("strip_accents"), lower)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece(prefix="##")
    made.add_special_tokens(sorted(special, key=special.__getitem__))
    one, ends = f"{CLS}:0 $A:0 {SEP}:0", [(token, special[token]) for token in (CLS, SEP)]
    made.post_processor = processors.TemplateProcessing(one, f"{one} $B:1 {SEP}:1", ends)
    return made
