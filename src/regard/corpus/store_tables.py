"""Open an embedding index: read rows, texts and vectors of its shards when needed, and run SQL on its tables.

The bytes of an index depend on texts, settings, the model (by its hash), package versions, kernels and threads.
"""

import hashlib
import json
import os
import platform
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import torch
from jaxtyping import Float, Int

from regard.attention.kernels import matmul
from regard.corpus.schema import ROW_GROUP, Manifest, read_manifest
from regard.corpus.settings import place_among_stored_layers
from regard.corpus.shard_reader import Cells, RowColumns, ShardReader, cells_at, integers, sha256_of_shard_file
from regard.errors import RegardError
from regard.lazy import import_from_corpus_extra
from regard.model_files.folder import DEFAULT_NAME
from regard.models.load import load
from regard.models.model import Model

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa


PACKAGES = ("regard", "torch", "transformers", "tokenizers", "numpy", "pyarrow")


def describe_store_environment() -> dict[str, str]:
    """Return what a shard's bytes depend on: package versions, the matrix product of tiles, and the machine."""
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = "none"
    return versions | {"tiles": matmul.product().__name__, "threads": "1", "machine": platform.machine()}


def check_store_environment(stored: dict[str, str]) -> None:
    """Check that versions and matrix product are those with which an index was made."""
    current = describe_store_environment()
    for name in (*PACKAGES, "machine"):
        if stored.get(name) != current[name]:
            raise RegardError(
                f"the store was made with {name} {stored.get(name)}, here is {current[name]}: shards would differ; "
                "use another --out, or the same versions"
            )
    if stored.get("tiles") != current["tiles"]:
        raise RegardError(
            f"the store was made with the matrix product {stored.get('tiles')}, here is {current['tiles']}: shards "
            f"would differ; {matmul.VARIABLE}={stored.get('tiles')} continues it, or use another --out"
        )


def digest_model(model: Model) -> str:
    """Return the SHA-256 of a model's weights and tokenizer."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.model.state_dict().items()):
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}\0".encode())
        digest.update(tensor.detach().cpu().contiguous().view(torch.uint8).numpy().data)
    backend = getattr(model.tokenizer, "backend_tokenizer", None)
    text = backend.to_str() if backend is not None else repr(sorted(model.tokenizer.get_vocab().items()))
    if backend is not None:  # an earlier call may have set truncation and padding
        data = {name: value for name, value in json.loads(text).items() if name not in ("truncation", "padding")}
        text = json.dumps(data)
    digest.update(text.encode())
    return digest.hexdigest()


FILES = ("rows.parquet", "texts.parquet", "spans.parquet", "vectors.npy")  # heads.parquet is optional
AT_ONCE = 2  # shards read at the same time
T = TypeVar("T", bound="StoreTables")
SHARD_OF = r"regexp_extract(filename, '([^/\\]+)[/\\][^/\\]+$', 1)"
TABLES = ("rows", "texts", "spans", "heads")


class StoreTables:
    """The tables and vectors of an embedding index. notes: sentences to show with every result from it."""

    def __init__(self, path: Path | str, *, model: "str | os.PathLike[str] | Model | None" = None) -> None:
        """Open the folder of an embedding index and check that every shard has its files.

        model: the model that embedded the texts, or its name, for queries that embed new text. You can omit it for the
        default model. regard never loads a model just because the index names it.
        """
        self.path = Path(path)
        self._named = model
        self.manifest: Manifest = read_manifest(self.path)
        folder = self.path / "shards"
        self.shards = {shard.name: ShardReader(folder / shard.name, shard) for shard in self.manifest.shards}
        self._views: duckdb.DuckDBPyConnection | None = None
        self._lock = threading.Lock()
        for name, shard in self.shards.items():
            missing_files = [file for file in FILES if not (shard.folder / file).is_file()]
            if missing_files:
                problem = "is missing" if len(missing_files) == len(FILES) else f"lacks {missing_files[0]}"
                raise RegardError(
                    f"store {str(self.path)!r}: shard {name} of {len(self.shards)} {problem}; the same `regard embed` "
                    "again makes it"
                )
        self.notes: tuple[str, ...] = ()
        if not self.manifest.complete:
            state = f"{len(self.shards):,} shard{'s' * (len(self.shards) != 1)}"
            self.notes = (
                f"The embedding index is not finished ({state} so far). Run the same `regard embed` again to continue.",
            )

    def __enter__(self: T) -> T:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        rows = sum(shard.rows for shard in self.manifest.shards)
        return f"Store({str(self.path)!r}, {rows:,} rows in {len(self.manifest.shards)} shards)"

    def close(self) -> None:
        """Close the connection to DuckDB, if there is one."""
        if self._views is not None:
            self._views.close()
            self._views = None

    @property
    def layer(self) -> int:
        """Return the default layer of queries: the last stored layer."""
        return self.manifest.layers[-1]

    @property
    def of_default(self) -> bool:
        """Return whether the default model made the index, according to the manifest."""
        return self.manifest.model.source in ("", DEFAULT_NAME) and self.manifest.model.name == DEFAULT_NAME

    @property
    def has_model(self) -> bool:
        """Return whether the model is loaded already."""
        return "model" in vars(self)

    def use(self, model: "Model") -> None:
        """Set a loaded model that is known to have made the index."""
        vars(self)["model"] = model

    @cached_property
    def model(self) -> "Model":
        """Load the model that embedded the texts: the model passed to the constructor, or the default model."""
        stored, requested = self.manifest.model, self._named
        if requested is None and not self.of_default:
            raise RegardError(
                f"store {str(self.path)!r} says that {stored.source or stored.name!r} made it: what a store names is "
                "not loaded, name the model yourself (--model; Store(…, model=…)), if you trust it"
            )
        model = requested if isinstance(requested, Model) else load(requested)
        if model.tokenizer is None or digest_model(model) != stored.digest:
            raise RegardError(
                f"store {str(self.path)!r}: model {model.name!r} is not the one that made it, {stored.name!r}"
            )
        return model

    def sql(self, query: str, parameters: Sequence[str | int | float] = ()) -> "pa.Table":
        """Run one SELECT statement on the index's tables through DuckDB, and return an Arrow table.

        There are six views: rows, texts, spans, heads (with statistics), quarantine (if the index is finished), and
        shards (the manifest's list). The first four have two more columns to locate rows and their vectors: the shard's
        name (`shard`) and the row number in its file, from 0 (`row`). A query can't read files outside the index's
        folder or change anything.

        parameters: the values for the question marks in the query.
        """
        with self._lock:
            if self._views is None:
                self._views = connect_duckdb(self.path, self.manifest, self.shards.values())
        return run_select(self._views, query, parameters, self.shards.values())

    def rows_with(self, field: str, value: str, columns: Sequence[str]) -> RowColumns:
        """Read the rows of a word or lemma from all shards. field: "word" or "lemma"."""
        matches, names = RowColumns(columns), list(dict.fromkeys([field, *columns]))

        def read_shard(shard: ShardReader) -> list[tuple[Int[np.ndarray, " n"], Cells]]:
            groups = []
            for first, table in shard.tables("rows", names, word=value if field == "word" else None):
                positions = _positions_of_string(table[field], value)
                if len(positions):
                    groups.append((first + positions, cells_at(table, positions, columns)))
            return groups

        with ThreadPoolExecutor(AT_ONCE) as threads:
            for name, groups in zip(self.shards, threads.map(read_shard, self.shards.values()), strict=True):
                for rows, cells in groups:
                    matches.add(name, rows, cells)
        return matches

    def distinct(self, field: str) -> set[str]:
        """Return all distinct words or lemmas in the index. Raises RegardError if a file is damaged."""
        tables = (table for shard in self.shards.values() for _, table in shard.tables("rows", [field]))
        return {word for table in tables for chunk in table[field].chunks for word in chunk.dictionary.to_pylist()}

    def rows_at(self, query: Mapping[str, Sequence[int]], columns: Sequence[str], table: str = "rows") -> RowColumns:
        """Read rows by shard name and row numbers, in ascending order. Numbers that don't exist are skipped."""
        result = RowColumns(columns)
        for name, numbers in query.items():
            shard, rows = self._shard(name), np.unique(np.asarray(numbers, dtype=np.int64))
            rows = rows[rows >= 0]
            for first, group in shard.tables(table, columns, np.unique(rows // ROW_GROUP).tolist()):
                present = rows[(rows >= first) & (rows < first + len(group))]
                result.add(name, present, cells_at(group, present - first, columns))
        return result

    def vectors(self, shard: str, rows: Int[np.ndarray, " n"], layer: int | None = None) -> Float[np.ndarray, "n M"]:
        """Read the embeddings of some rows of a shard from a layer. None: the last stored layer."""
        return self._shard(shard).vectors(rows, self.layer_index(layer))

    def all_vectors(self, layer: int | None = None) -> Iterator[tuple[str, int, Float[np.ndarray, "n M"]]]:
        """Yield the embeddings of all rows in blocks, each with its shard and its first row's number."""
        index = self.layer_index(layer)
        for name, shard in self.shards.items():
            for first, block in shard.all_vectors(index):
                yield name, first, block

    def layer_index(self, layer: int | None) -> int:
        """Return a layer's index among the stored layers, None for the last. Raises RegardError if it isn't stored."""
        return place_among_stored_layers(self.manifest.layers, layer)

    def _shard(self, name: str) -> ShardReader:
        if name not in self.shards:
            raise RegardError(f"the store has no shard {name!r}")
        return self.shards[name]


def _positions_of_string(column: "pa.ChunkedArray", value: str) -> Int[np.ndarray, " n"]:
    """Return the rows in which a dictionary-encoded string column equals a value."""
    positions, start = [np.empty(0, np.int64)], 0
    for chunk in column.chunks:
        codes = [code for code, string in enumerate(chunk.dictionary.to_pylist()) if string == value]
        positions.append(start + np.flatnonzero(np.isin(integers(chunk.indices), codes)))
        start += len(chunk)
    return np.concatenate(positions)


def connect_duckdb(store: Path, manifest: Manifest, shards: Collection[ShardReader]) -> "duckdb.DuckDBPyConnection":
    """Open an in-memory DuckDB with views of the index's tables, locked to the index's folder."""
    duckdb = import_from_corpus_extra("duckdb")
    settings = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    connection = duckdb.connect(":memory:", config=settings)
    connection.execute("SET temp_directory = ''")
    try:
        for name in TABLES:  # no view without a shard, and no view of heads without statistics
            files = [shard.folder / f"{name}.parquet" for shard in shards]
            files = [file for file in files if name != "heads" or file.is_file()]
            if files:
                paths = ", ".join(_quoted_for_sql(str(file)) for file in files)
                columns = f"* EXCLUDE (filename, file_row_number), {SHARD_OF} AS shard, file_row_number AS row"
                source = f"read_parquet([{paths}], filename = true, file_row_number = true)"
                connection.execute(f"CREATE VIEW {name} AS SELECT {columns} FROM {source}")
        if manifest.quarantine:
            quarantine = store / "quarantine.parquet"
            if sha256_of_shard_file(quarantine) != manifest.quarantine:
                raise RegardError(f"{str(quarantine)!r} is damaged: it is not what was written")
            connection.execute(
                f"CREATE VIEW quarantine AS SELECT * FROM read_parquet({_quoted_for_sql(str(quarantine))})"
            )
    except duckdb.Error as error:
        raise RegardError(f"store {str(store)!r}: {str(error).splitlines()[0]}") from error
    connection.execute("CREATE TABLE shards (number BIGINT, name VARCHAR, parts BIGINT, rows BIGINT, tokens BIGINT)")
    rows = [[n, s.name, s.parts, s.rows, s.tokens] for n, s in enumerate(shard.summary for shard in shards)]
    if rows:
        connection.executemany("INSERT INTO shards VALUES (?, ?, ?, ?, ?)", rows)
    connection.execute(f"SET allowed_directories = [{_quoted_for_sql(str(store))}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def run_select(
    connection: "duckdb.DuckDBPyConnection",
    query: str,
    parameters: Sequence[str | int | float],
    shards: Collection[ShardReader],
) -> "pa.Table":
    """Run one SELECT statement on a connection and return an Arrow table."""
    duckdb = import_from_corpus_extra("duckdb")
    cursor = connection.cursor()
    try:
        statements = cursor.extract_statements(query)
        kinds = {duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN}
        if len(statements) != 1 or statements[0].type not in kinds:
            raise RegardError("sql: needs one statement that selects: a query can't change a store")
        for name in TABLES:
            for shard in shards if name in query.lower() else ():
                if name != "heads" or (shard.folder / "heads.parquet").is_file():
                    shard.check(name)
        return cursor.sql(statements[0], params=list(parameters)).to_arrow_table()
    except duckdb.Error as error:
        raise RegardError(f"sql: {str(error).splitlines()[0]}") from error
    finally:
        cursor.close()


def _quoted_for_sql(text: str) -> str:
    """Return a string as a quoted SQL literal."""
    return "'" + text.replace("'", "''") + "'"
