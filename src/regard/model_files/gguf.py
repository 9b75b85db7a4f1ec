"""GGUF files, as llama.cpp writes them: weights, mostly quantised, config and tokenizer in one file. Read as data."""

import functools
import importlib.util
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from regard.errors import RegardError
from regard.model_files.folder import check_model_files
from regard.model_files.gguf_header import Header, read_gguf_header

PACKAGES = ("gguf", "accelerate")  # transformers asks for both before it reads such a file
WHOLE = ("F64", "F32", "F16", "BF16")  # tensor types that are not quantised
_ONE = threading.RLock()  # what is changed for one file while it is read is changed for the process


class File:
    """A checked GGUF file. held: the sizes of its tensors. options: arguments with which transformers reads it."""

    def __init__(self, path: Path, header: Header, kinds: dict[str, int]) -> None:
        self.folder, self.options, self.held = path.parent, {"gguf_file": path.name}, header.held
        self._header, self._kinds = header, Counter(kinds)

    @property
    def has_tokenizer(self) -> bool:
        """Whether it brings a tokenizer along."""
        return "tokenizer.ggml.tokens" in self._header.values

    @property
    def note(self) -> str:
        """What a trace's status says about such weights."""
        kinds = self._kinds
        counts = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
        if all(kind in WHOLE for kind in kinds):
            return f"weights are of a GGUF file that is not quantised (tensors: {counts})"
        return (
            f"weights are of a quantised GGUF file (tensors: {counts}): the model is the quantised one, run in float32"
        )


def only_gguf_file(folder: Path) -> Path | None:
    """Find the GGUF file of a folder that has no other weights; None where it has safetensors, or no GGUF file.

    Raises:
        RegardError: there are several, so that it is open which is meant.
    """
    files = sorted(folder.glob("*.gguf"))
    if not files or any(folder.glob("*.safetensors")):
        return None
    if len(files) > 1:
        names = ", ".join(file.name for file in files)
        raise RegardError(f"{str(folder)!r} holds {len(files)} GGUF files ({names}): name the one that is meant")
    return files[0]


def checked_gguf_header(path: Path) -> Header:
    """Check a GGUF file by its header and by the files beside it, without torch.

    Raises:
        RegardError: a package that reads such files is missing, the file is not whole, or none.
    """
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        needed = " and ".join(missing)
        raise RegardError(f"model {str(path)!r} is a GGUF file, reading it needs {needed}: pip install 'regard[gguf]'")
    import gguf

    package: Any = gguf
    header = read_gguf_header(path, {int(kind): size for kind, size in package.GGML_QUANT_SIZES.items()})
    check_model_files(path.parent, every=False)
    return header


@contextmanager
def opened_gguf_file(path: Path | str) -> Iterator[File | None]:
    """Check and open a GGUF file; give None for a folder or a hub name.

    Inside the block transformers, which opens the file anew for each part that it reads and makes a table of tensor
    names anew for each module, is given the same reader and the same table: each of the two takes seconds.

    Raises:
        RegardError: a package that reads such files is missing, or the file is not whole.
    """
    if not isinstance(path, Path) or not path.is_file():
        yield None
        return
    header = checked_gguf_header(path)
    import gguf
    import numpy
    from transformers import modeling_gguf_pytorch_utils as theirs

    package: Any = gguf
    kinds = {package.GGMLQuantizationType(kind).name: count for kind, count in header.kinds.items()}
    with _ONE:
        original, names, bar = package.GGUFReader, package.get_tensor_name_map, theirs.tqdm
        parse, values = theirs._gguf_parse_value, dict[int, Any]()

        class Reader(original):  # type: ignore[misc, valid-type]
            data: Any

            def _get(self, offset: int, *args: Any, **options: Any) -> Any:
                self.data = numpy.asarray(self.data)  # a mapped array makes a mapped array of each of its parts, slowly
                return super()._get(offset, *args, **options)

        def value(part: Any, kind: Any) -> Any:
            if id(part) not in values:  # the reader keeps every part, so that no other gets its number
                values[id(part)] = parse(part, kind)
            return values[id(part)]

        @functools.cache
        def reader() -> Any:
            try:
                return Reader(path)
            except Exception as error:  # it walks the file by the file's own numbers, and raises what those lead it to
                why = str(error).splitlines()[0] if str(error) else type(error).__name__
                raise RegardError(f"model {str(path)!r} is truncated or no GGUF file ({why})") from error

        def known(name: Any, *args: Any, **options: Any) -> Any:
            same = not args and not options and Path(name).resolve() == path.resolve()
            return reader() if same else original(name, *args, **options)

        package.GGUFReader, package.get_tensor_name_map = known, functools.cache(names)
        theirs._gguf_parse_value = value
        theirs.tqdm = lambda items, **_: items  # its progress bar does not obey the library's switch
        try:
            yield File(path, header, kinds)
        finally:
            package.GGUFReader, package.get_tensor_name_map, theirs.tqdm = original, names, bar
            theirs._gguf_parse_value = parse
