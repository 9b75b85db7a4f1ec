"""GGUF files, as llama.cpp writes them: weights, mostly quantised, config and tokenizer in one file. Read as data."""

import copy
import functools
import importlib.util
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from regard.errors import RegardError
from regard.gguf.weights import Header, read_gguf_header, stored_gguf_tensors
from regard.model_files.folder import check_model_files
from regard.models.kinds import ModelKind

PACKAGES = ("gguf", "accelerate")  # transformers asks for both before it reads such a file
OWN_READER = "transformers.integrations.gguf.gguf_tokenizer_mapping"  # reads vocabularies in releases that have it
WHOLE = ("F64", "F32", "F16", "BF16")  # tensor types that are not quantised
CONVERTED = "converted to float32 for each product. Results may differ slightly from the original model's."
_ONE = threading.RLock()  # what is changed for one file while it is read is changed for the process


class File:
    """A checked GGUF file. held: the sizes of its tensors. options: arguments with which transformers reads it.

    kept: whether its large matrices are to stay quantised, as the file has them.
    """

    def __init__(self, path: Path, header: Header, kinds: dict[str, int]) -> None:
        self.folder, self.options, self.held = path.parent, {"gguf_file": path.name}, header.held
        self.kept = False
        self._header, self._kinds = header, Counter(kinds)

    @property
    def has_tokenizer(self) -> bool:
        """Whether it brings a tokenizer along."""
        return "tokenizer.ggml.tokens" in self._header.values

    @property
    def note(self) -> str:
        """Write the note of a status."""
        kinds = self._kinds
        counts = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
        if all(kind in WHOLE for kind in kinds):
            return f"The weights are not quantized (GGUF: {counts})." + f" They are {CONVERTED}" * self.kept
        return f"The weights are quantized (GGUF: {counts}) and " + (
            CONVERTED if self.kept else "converted to float32."
        )


class GGUFKind(ModelKind):
    """A GGUF file, or a folder whose only weights are one."""

    def file(self, path: Path) -> Path | None:
        """Find the GGUF file that a path means. Raises RegardError for a folder with several."""
        if not path.is_dir():
            return path if path.suffix.lower() == ".gguf" else None
        files = sorted(path.glob("*.gguf"))
        if not files or any(path.glob("*.safetensors")):
            return None
        if len(files) > 1:
            names = ", ".join(file.name for file in files)
            raise RegardError(f"{str(path)!r} holds {len(files)} GGUF files ({names}): name the one that is meant")
        return files[0]

    def opened(self, path: Path) -> AbstractContextManager["File"]:
        """Check and open a GGUF file."""
        return opened_gguf_file(path)


GGUF = GGUFKind()


def checked_gguf_header(path: Path) -> Header:
    """Check a GGUF file by its header and by the files beside it, without torch."""
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
def opened_gguf_file(path: Path) -> Iterator[File]:
    """Check and open a GGUF file.

    Inside the block transformers, which opens the file anew for each part that it reads and makes a table of tensor
    names anew for each module, is given the same reader and the same table: each of the two takes seconds. Of the lists
    of a vocabulary it asks how long they are: their items are not read.
    """
    header = checked_gguf_header(path)
    from transformers import modeling_gguf_pytorch_utils as theirs

    import gguf

    package: Any = gguf
    kinds = {package.GGMLQuantizationType(kind).name: count for kind, count in header.kinds.items()}
    with _ONE:
        original, names, bar = package.GGUFReader, package.get_tensor_name_map, theirs.tqdm
        parse, values, read = theirs._gguf_parse_value, dict[int, Any](), theirs.load_gguf_checkpoint
        file = File(path, header, kinds)
        read_by = _reader_class(header.lists if importlib.util.find_spec(OWN_READER) else {})

        def value(part: Any, kind: Any) -> Any:
            if id(part) not in values:  # the reader keeps every part, so that no other gets its number
                values[id(part)] = parse(part, kind)
            return values[id(part)]

        @functools.cache
        def reader() -> Any:
            try:
                return read_by(path, "c")  # a tensor of torch is writable
            except Exception as error:  # it walks the file by the file's own numbers, and raises what those lead it to
                why = str(error).splitlines()[0] if str(error) else type(error).__name__
                raise RegardError(f"model {str(path)!r} is truncated or no GGUF file ({why})") from error

        def known(name: Any, *args: Any, **options: Any) -> Any:
            same = not args and not options and Path(name).resolve() == path.resolve()
            return reader() if same else original(name, *args, **options)

        @functools.cache
        def config() -> Any:
            return read(path, return_tensors=False)

        def checkpoint(name: Any, return_tensors: bool = False, model_to_load: Any = None, **options: Any) -> Any:
            if Path(name).resolve() != path.resolve() or (return_tensors and not file.kept):
                return read(name, return_tensors=return_tensors, model_to_load=model_to_load, **options)
            configuration = copy.deepcopy(config())
            if return_tensors:
                family = header.values["general.architecture"]
                configuration["tensors"] = stored_gguf_tensors(reader(), model_to_load, configuration["config"], family)
            return configuration

        package.GGUFReader, package.get_tensor_name_map = known, functools.cache(names)
        theirs._gguf_parse_value, theirs.load_gguf_checkpoint = value, checkpoint  # type: ignore[assignment]
        theirs.tqdm = lambda items, **_: items  # its progress bar does not obey the library's switch
        try:
            yield file
        finally:
            package.GGUFReader, package.get_tensor_name_map, theirs.tqdm = original, names, bar
            theirs._gguf_parse_value, theirs.load_gguf_checkpoint = parse, read


def _reader_class(lists: Mapping[int, tuple[int, int]]) -> Any:
    """gguf's reader, which passes over lists. lists: by the place where one begins how many items and bytes it has."""
    import numpy

    import gguf

    package: Any = gguf
    nothing = numpy.zeros(1, numpy.uint32)  # stands for each item

    class ArrayReader(package.GGUFReader):
        data: Any
        mapped: Any = None

        def _get(self, offset: int, *args: Any, **options: Any) -> Any:
            if self.mapped is None:  # a mapped array makes a mapped array of each of its parts, slowly
                self.mapped, self.data = self.data, numpy.asarray(self.data)
            return super()._get(offset, *args, **options)

        def _get_field_parts(self, at: int, kind: Any) -> Any:
            if at not in lists:
                return super()._get_field_parts(at, kind)
            count, size = lists[at]
            return size, [nothing], [0] * count, [package.GGUFValueType.UINT32]

    return ArrayReader
