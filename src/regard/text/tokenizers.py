"""Make tokenizers: a dictionary of words as in textbooks, single characters, byte-level BPE, or WordPiece.

Each function reads texts and returns a fast transformers tokenizer for `regard.load(model, tokenizer=...)`.
Sources: Sennrich et al. 2016, "Neural Machine Translation of Rare Words with Subword Units" (BPE); Radford et al. 2019
(BPE of bytes); Wu et al. 2016, "Google's Neural Machine Translation System" (WordPiece).

For a BERT folder, regard uses only the library `tokenizers`, because importing transformers takes seconds. It builds
the BertTokenizer that transformers would build from the folder's vocabulary and settings. If tokenizer.json defines
another tokenizer, or the folder has other settings, transformers reads it instead.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import tokenizers
import torch
from jaxtyping import Bool, Int
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from regard.errors import RegardError
from regard.files import read_json, read_regular
from regard.text.tokens import check_texts, tokenizer_errors

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


PAD, UNK, BOS, EOS, CLS, SEP, MASK = "[PAD]", "[UNK]", "[BOS]", "[EOS]", "[CLS]", "[SEP]", "[MASK]"
ROLES = {
    "pad_token": PAD,
    "unk_token": UNK,
    "bos_token": BOS,
    "eos_token": EOS,
    "cls_token": CLS,
    "sep_token": SEP,
    "mask_token": MASK,
}
# Special tokens around a text: none, an end (as in translation), both a beginning and an end, or BERT's. The vocabulary
# also has [PAD] and [UNK].
Frame = Literal["none", "end", "both", "bert"]
FRAMES: dict[str, tuple[str, ...]] = {"none": (), "end": (BOS, EOS), "both": (BOS, EOS), "bert": (CLS, SEP, MASK)}
BYTES = 256
LARGEST = 1 << 26  # maximum bytes of a tokenizer.json: twice the largest published file
RUNS = r"\s+|\w+|[^\w\s]+"  # blanks, words or punctuation; together they match the whole text


def words(
    texts: str | Iterable[str], *, lower: bool = False, most: int | None = None, frame: Frame = "none"
) -> "PreTrainedTokenizerFast":
    """Make a tokenizer of the texts' words and punctuation marks. Special tokens follow them in the vocabulary.

    Words are sorted and numbered from 0. lower: whether to convert capitals to lower case. most: the maximum number of
    words. The most frequent ones are kept, and of equally frequent ones the first in alphabetical order. frame: the
    special tokens around a text, a key of `FRAMES`. Unknown words are read as [UNK].
    """
    backend = tokenizers.Tokenizer(models.WordLevel({}, unk_token=UNK))
    if lower:
        backend.normalizer = normalizers.Lowercase()
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    counts: Counter[str] = Counter()
    for text in _texts_to_tokenize(texts):
        normalized = backend.normalizer.normalize_str(text) if lower else text
        counts.update(piece for piece, _ in backend.pre_tokenizer.pre_tokenize_str(normalized))
    entries = sorted(counts)
    if most is not None:
        _check_tokenizer_size("most", most, 1)
        entries = sorted(sorted(counts, key=lambda word: (-counts[word], word))[:most])
    vocabulary = {word: n for n, word in enumerate((*entries, PAD, UNK, *_frame_of_special_tokens(frame)))}
    backend.model = models.WordLevel(vocabulary, unk_token=UNK)
    return _add_special_tokens(backend, frame)


def characters(texts: str | Iterable[str], *, frame: Frame = "none") -> "PreTrainedTokenizerFast":
    """Make a tokenizer of the texts' characters, sorted and numbered from 0. Other characters are read as [UNK]."""
    entries = sorted({character for text in _texts_to_tokenize(texts) for character in text})
    vocabulary = {token: n for n, token in enumerate((*entries, PAD, UNK, *_frame_of_special_tokens(frame)))}
    backend = tokenizers.Tokenizer(models.BPE(vocabulary, [], unk_token=UNK))  # no merges: each token is one character
    backend.pre_tokenizer = pre_tokenizers.Split(tokenizers.Regex(RUNS), "isolated")
    backend.decoder = decoders.Fuse()
    return _add_special_tokens(backend, frame)


def byte_pairs(texts: str | Iterable[str], *, size: int = 8192, frame: Frame = "none") -> "PreTrainedTokenizerFast":
    """Train byte-level BPE on the texts. It can read and write any text, without unknown tokens.

    size: the maximum number of tokens, including the 256 bytes and the special tokens.
    """
    special = [PAD, *_frame_of_special_tokens(frame)]
    _check_tokenizer_size("size", size, BYTES + len(special), f"the {BYTES} bytes and {len(special)} special tokens")
    backend = tokenizers.Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    backend.train_from_iterator(list(_texts_to_tokenize(texts)), trainer)
    return _add_special_tokens(backend, frame, processors.ByteLevel(trim_offsets=True))


def word_pieces(
    texts: str | Iterable[str], *, size: int = 8192, lower: bool = True, frame: Frame = "bert"
) -> "PreTrainedTokenizerFast":
    """Train WordPiece on the texts. "##" marks a piece that continues a word. Words with unknown characters are [UNK].

    size: the maximum number of tokens, including special tokens and the texts' characters. lower: whether to remove
    capitals and accents (BERT's uncased models). frame: as in `words`.
    """
    special = [PAD, UNK, *_frame_of_special_tokens(frame)]
    _check_tokenizer_size("size", size, len(special) + 1, f"{len(special)} special tokens and more")
    backend = tokenizers.Tokenizer(models.WordPiece(unk_token=UNK))
    backend.normalizer = normalizers.BertNormalizer(lowercase=lower)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece()
    inputs = list(_texts_to_tokenize(texts))
    # The library numbers single characters in a varying order, which breaks ties between pieces. Passing them sorted,
    # as special tokens, makes the vocabulary reproducible.
    alphabet: set[str] = set()
    for text in inputs:
        for word, _ in backend.pre_tokenizer.pre_tokenize_str(backend.normalizer.normalize_str(text)):
            alphabet.add(word[0])
            alphabet.update(f"##{character}" for character in word[1:])
    if len(alphabet) > (room := size - len(special)):
        raise RegardError(f"size: there is room for {room} pieces, but the texts have {len(alphabet)} characters")
    tokens = [*special, *sorted(alphabet)]
    trainer = trainers.WordPieceTrainer(vocab_size=size, special_tokens=tokens, show_progress=False)
    trained = tokenizers.Tokenizer(models.WordPiece(unk_token=UNK))
    trained.normalizer, trained.pre_tokenizer = backend.normalizer, backend.pre_tokenizer
    trained.train_from_iterator(inputs, trainer)
    backend.model = models.WordPiece(trained.get_vocab(), unk_token=UNK)
    return _add_special_tokens(backend, frame)


@dataclass(frozen=True, eq=False)
class PaddedBatch:
    """Texts as a batch for a model. mask: True for real tokens, False for padding on the right."""

    ids: Int[Tensor, "B L"]
    mask: Bool[Tensor, "B L"]


def batch(tokenizer: Any, texts: Sequence[str]) -> PaddedBatch:
    """Encode texts as a padded batch of ids. Raises RegardError if there is no text, or a text has no tokens."""
    texts = list(check_texts(texts))
    if not texts:
        raise RegardError("texts: got none, expected a list of them")
    rows = tokenizer(texts, padding=False, truncation=False, verbose=False)["input_ids"]
    lengths, pad = torch.tensor([len(row) for row in rows]), tokenizer.pad_token_id
    if int(lengths.min()) == 0:
        raise RegardError(f"text {int(lengths.argmin()) + 1}: it has no tokens left")
    if pad is None and int(lengths.min()) < int(lengths.max()):
        raise RegardError("the tokenizer has no padding token, so texts of different lengths can't be batched")
    ids = pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=pad or 0)
    return PaddedBatch(ids, torch.arange(ids.shape[1]) < lengths[:, None])


def tokenizer_files(tokenizer: Any) -> dict[str, str]:
    """Return the files of a tokenizer by name: tokenizer.json, and tokenizer_config.json with its special tokens.

    Raises:
        RegardError: it isn't a fast tokenizer, so it has no tokenizer.json.
    """
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise RegardError(f"tokenizer: got a {type(tokenizer).__name__}, expected a fast tokenizer to save")
    roles = {role: getattr(tokenizer, role) for role in ROLES if getattr(tokenizer, role) is not None}
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "model_input_names": tokenizer.model_input_names, **roles}
    return {
        "tokenizer.json": backend.to_str(pretty=False),
        "tokenizer_config.json": json.dumps(settings, ensure_ascii=False, indent=2) + "\n",
    }


def read_tokenizer(folder: Path) -> "PreTrainedTokenizerFast":
    """Read the tokenizer that `tokenizer_files` wrote to a folder.

    Raises:
        RegardError: a file is incomplete.
    """
    file, config_file = folder / "tokenizer.json", folder / "tokenizer_config.json"
    with tokenizer_errors(f"{str(file)!r} cannot be read"):
        backend = tokenizers.Tokenizer.from_str(read_regular(file, most=LARGEST).decode("utf-8"))
    with tokenizer_errors(f"{str(config_file)!r} cannot be read"):
        roles = {role: token for role, token in ROLES.items() if backend.token_to_id(token) is not None}
        inputs = None
        if config_file.is_file():
            settings = read_json(config_file)
            roles = {role: settings[role] for role in ROLES if role in settings}
            inputs = settings.get("model_input_names")
        return _to_transformers(backend, roles, inputs)


def _add_special_tokens(backend: tokenizers.Tokenizer, frame: str, *before: Any) -> "PreTrainedTokenizerFast":
    """Add special tokens and the frame around a text to a tokenizer. before: post-processing steps before the frame."""
    added = [token for token in (PAD, UNK, *_frame_of_special_tokens(frame)) if backend.token_to_id(token) is not None]
    backend.add_special_tokens(added)
    ends: dict[str, tuple[str, str | None]] = {
        "end": (f"$A {EOS}", None),
        "both": (f"{BOS} $A {EOS}", None),
        "bert": (f"{CLS} $A {SEP}", f"{CLS} $A {SEP} $B:1 {SEP}:1"),
    }
    steps = list(before)
    if frame in ends:
        single, pair = ends[frame]
        ids = [(token, backend.token_to_id(token)) for token in _frame_of_special_tokens(frame)]
        steps.append(processors.TemplateProcessing(single=single, pair=pair, special_tokens=ids))
    if steps:
        backend.post_processor = steps[0] if len(steps) == 1 else processors.Sequence(steps)
    inputs = ["input_ids", "token_type_ids", "attention_mask"] if frame == "bert" else ["input_ids", "attention_mask"]
    return _to_transformers(backend, {role: token for role, token in ROLES.items() if token in added}, inputs)


def _to_transformers(
    backend: tokenizers.Tokenizer, roles: dict[str, str], inputs: Sequence[str] | None = None
) -> "PreTrainedTokenizerFast":
    """Wrap a tokenizer as a transformers tokenizer. The import takes seconds, so it is inside the function."""
    from transformers import PreTrainedTokenizerFast

    names = list(inputs or ("input_ids", "attention_mask"))
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, model_input_names=names, clean_up_tokenization_spaces=False, **roles
    )


def _frame_of_special_tokens(frame: str) -> tuple[str, ...]:
    if frame not in FRAMES:
        raise RegardError(f"frame: got {frame!r}, expected {' or '.join(map(repr, FRAMES))}")
    return FRAMES[frame]


def _texts_to_tokenize(texts: str | Iterable[str]) -> Iterator[str]:
    """Check and yield the texts one by one.

    Raises:
        RegardError: a text isn't a string, or all texts are blank.
    """
    has_words = False
    for number, text in enumerate(check_texts(texts), 1):
        if not isinstance(text, str):
            raise RegardError(f"text {number}: got {type(text).__name__}, expected a string")
        has_words = has_words or bool(text.strip())
        yield text
    if not has_words:
        raise RegardError("texts: got only blanks, expected at least one word for the vocabulary")


def _check_tokenizer_size(name: str, size: Any, minimum: int, use: str = "") -> None:
    if isinstance(size, bool) or not isinstance(size, int) or size < minimum:
        raise RegardError(f"{name}: got {size!r}, expected an integer of {minimum} or more{use and ', for ' + use}")


BERT_ROLES = {"unk_token": UNK, "sep_token": SEP, "pad_token": PAD, "cls_token": CLS, "mask_token": MASK}
FILE, SETTINGS, ROLES_FILE = "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"
OTHERS = ("added_tokens.json", "chat_template.jinja")  # files with additional tokenizer settings
USED = ("do_lower_case", "tokenize_chinese_chars", "strip_accents")
# Settings without effect if there is no padding and truncation.
UNUSED = """
    backend clean_up_tokenization_spaces do_basic_tokenize is_local local_files_only max_length model_max_length
    name_or_path pad_to_multiple_of pad_token_type_id padding_side special_tokens_map_file stride tokenizer_file
    truncation_side truncation_strategy
"""


class Encodings(dict[str, Any]):
    """The result of a `BertTokenizer` for several texts, with the entries that transformers returns."""

    def __init__(self, rows: Sequence[tokenizers.Encoding]) -> None:
        self._rows, fields = rows, {"input_ids": "ids", "token_type_ids": "type_ids", "offset_mapping": "offsets"}
        super().__init__({name: [getattr(row, field) for row in rows] for name, field in fields.items()})

    def word_ids(self, n: int) -> list[int | None]:
        """Return the word number of each token in text n."""
        return self._rows[n].word_ids

    def sequence_ids(self, n: int) -> list[int | None]:
        """Return whether each token of pair n belongs to the first text (0), the second (1) or neither (None)."""
        return self._rows[n].sequence_ids


class BertTokenizer:
    """Reads texts like the BertTokenizer of transformers, with the methods that regard uses."""

    is_fast = True
    bos_token_id = eos_token_id = None

    def __init__(self, backend: tokenizers.Tokenizer) -> None:
        self.backend_tokenizer = backend
        self.unk_token = UNK
        ids = [backend.token_to_id(token) for token in BERT_ROLES.values()]
        self.unk_token_id, self.sep_token_id, self.pad_token_id, self.cls_token_id, self.mask_token_id = ids
        self.all_special_ids = ids

    def __len__(self) -> int:
        return self.backend_tokenizer.get_vocab_size()

    def __call__(
        self, text: Any = None, text_pair: Any = None, text_target: Any = None, *, add_special_tokens: bool = True,
        is_split_into_words: bool = False, **_: Any,
    ) -> dict[str, Any]:  # fmt: skip
        """Encode one text or several, without truncation or padding."""
        if isinstance(text, str):
            return {name: rows[0] for name, rows in self([text], add_special_tokens=add_special_tokens).items()}
        texts = text_target if text is None else text
        if text_pair is not None:
            texts = [*zip(texts, text_pair, strict=True)]
        options = {"is_pretokenized": is_split_into_words, "add_special_tokens": add_special_tokens}
        return Encodings(self.backend_tokenizer.encode_batch(texts, **options))

    def decode(self, ids: Sequence[int], **_: Any) -> str:
        """Decode token ids to a text, including special tokens."""
        return self.backend_tokenizer.decode(ids, skip_special_tokens=False)

    def convert_ids_to_tokens(self, ids: int | Iterable[int]) -> str | list[str | None] | None:
        """Return the vocabulary's spelling of an id, or of each id."""
        spell = self.backend_tokenizer.id_to_token
        return spell(ids) if isinstance(ids, int) else [spell(number) for number in ids]

    def num_special_tokens_to_add(self, pair: bool = False) -> int:
        """Return the number of special tokens that are added to a text or a pair."""
        return self.backend_tokenizer.num_special_tokens_to_add(pair)


def read_bert_tokenizer(folder: Path) -> BertTokenizer | None:
    """Read a folder's BERT tokenizer without transformers. Return None if only transformers can read it."""
    if any((folder / name).exists() for name in OTHERS):
        return None
    try:
        settings = read_json(folder / SETTINGS)
        roles = read_json(folder / ROLES_FILE) if (folder / ROLES_FILE).exists() else {}
        others = {name: value for name, value in settings.items() if name not in {*UNUSED.split(), *USED}}
        is_bert = others.pop("tokenizer_class") in ("BertTokenizer", "BertTokenizerFast")
        usual = (BERT_ROLES | {"never_split": None}).items()
        if not is_bert or not others.items() <= usual or not roles.items() <= BERT_ROLES.items():
            return None
        with tokenizer_errors(str(folder)):
            backend = tokenizers.Tokenizer.from_str(read_regular(folder / FILE).decode("utf-8"))
            backend.no_truncation()
            backend.no_padding()
            # transformers' BertTokenizer for these settings, here with only special tokens as its vocabulary
            special: dict[str, Any] = {token: backend.token_to_id(token) for token in BERT_ROLES.values()}
            twin = tokenizers.Tokenizer(models.WordPiece(special, unk_token=UNK))
            lower, chinese = settings.get("do_lower_case", True), settings.get("tokenize_chinese_chars", True)
            twin.normalizer = normalizers.BertNormalizer(True, chinese, settings.get("strip_accents"), lower)
            twin.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
            twin.decoder = decoders.WordPiece(prefix="##")
            twin.add_special_tokens(sorted(special, key=special.__getitem__))
            single, ends = f"{CLS}:0 $A:0 {SEP}:0", [(token, special[token]) for token in (CLS, SEP)]
            twin.post_processor = processors.TemplateProcessing(single, f"{single} $B:1 {SEP}:1", ends)
            left, right = (item.to_str().partition('"vocab":')[0] for item in (backend, twin))  # vocabulary is last
            if left != right:
                return None
    except Exception:  # the library raises bare Exception; transformers reports the fault
        return None
    return BertTokenizer(backend)
