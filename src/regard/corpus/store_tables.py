"""Read a store: its tables through DuckDB, its vectors from memory-mapped files, and nothing before it is asked for.

Queries see six views: rows, texts, spans, heads, quarantine, and shards (the manifest's list). The first four have two
columns more, by which rows and their vectors are found: shard, its name, and row, counted from 0 in that shard's file.
A query may read the store's folder and nothing else, and change nothing: one statement that selects.
"""

import os
import threading
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from jaxtyping import Float, Int

from regard.corpus import schema
from regard.corpus.extra import needed
from regard.corpus.manifest import Manifest, read_manifest
from regard.corpus.settings import kept_place
from regard.errors import RegardError
from regard.model_files.folder import DEFAULT_NAME

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from regard.models.model import Model

SHARD_OF = r"regexp_extract(filename, '([^/\\]+)[/\\][^/\\]+$', 1)"
TABLES = ("rows", "texts", "spans", "heads")
FILES = ("rows.parquet", "texts.parquet", "spans.parquet", "vectors.npy")  # heads.parquet with statistics only
T = TypeVar("T", bound="StoreTables")


class StoreTables:
    """A store's tables and vectors. path: its folder. manifest: what it says of itself. notes: what to know of it."""

    def __init__(self, path: Path | str, *, model: "str | os.PathLike[str] | Model | None" = None) -> None:
        """Open a store's folder.

        model: what read the texts, named as `regard.load` takes it, or loaded; it is needed for some questions alone,
        and for none where it was the default model. What the store itself names is never loaded.

        Raises:
            RegardError: it is no store, of another format, or shards are missing or not whole.
        """
        self.path = Path(path)
        self._named = model
        self.manifest: Manifest = read_manifest(self.path)
        self._mapped: dict[str, np.ndarray] = {}
        self._lock = threading.Lock()
        self._check_shards()
        unfinished = "the store is not finished: the same `regard embed` again goes on where it stopped"
        self.notes: tuple[str, ...] = () if self.manifest.complete else (unfinished,)

    def __enter__(self: T) -> T:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        rows = sum(each.rows for each in self.manifest.shards)
        return f"Store({str(self.path)!r}, {rows:,} rows in {len(self.manifest.shards)} shards)"

    def close(self) -> None:
        """Give back the connection and the memory-mapped files."""
        self._mapped.clear()
        if "connection" in vars(self):
            self.connection.close()
            del self.connection

    @property
    def layer(self) -> int:
        """Return the layer that is asked by default: the last one whose embeddings are kept."""
        return self.manifest.layers[-1]

    @property
    def of_default(self) -> bool:
        """Whether the store says that the default model made it."""
        return not self.manifest.model.source and self.manifest.model.name == DEFAULT_NAME

    @property
    def has_model(self) -> bool:
        """Whether the model is there that `model` would load."""
        return "model" in vars(self)

    def use(self, model: "Model") -> None:
        """Take a model that is known to be the one that made the store."""
        vars(self)["model"] = model

    @cached_property
    def model(self) -> "Model":
        """Load the model that read the texts: the one that was named, or the default model.

        Raises:
            RegardError: it is not there, another one made the store, or none was named and it was not the default one.
        """
        kept, named = self.manifest.model, self._named
        if named is None and not self.of_default:
            raise RegardError(
                f"store {str(self.path)!r} says that {kept.source or kept.name!r} made it: what a store names is not "
                "loaded, name the model yourself (--model; Store(…, model=…)), if you trust it"
            )
        from regard.corpus.environment import digest_model
        from regard.models.load import load
        from regard.models.model import Model

        model = named if isinstance(named, Model) else load(named)
        if kept.digest:
            same = model.tokenizer is not None and digest_model(model) == kept.digest
        else:
            same = model.name in (kept.name, kept.source)
        if not same:
            raise RegardError(
                f"store {str(self.path)!r}: model {model.name!r} is not the one that made it, {kept.name!r}"
            )
        return model

    def sql(self, query: str, parameters: Sequence[str | int | float] = ()) -> "pa.Table":
        """Answer one query that selects, through DuckDB. parameters: for its ? signs.

        Raises:
            RegardError: it is no such query, names what is not there, or reaches beyond the store.
        """
        duckdb = needed("duckdb")
        cursor = self.connection.cursor()
        try:
            statements = cursor.extract_statements(query)
            kinds = {duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN}
            if len(statements) != 1 or statements[0].type not in kinds:
                raise RegardError("sql: needs one statement that selects: a store is not changed by asking")
            return cursor.sql(statements[0], params=list(parameters)).to_arrow_table()
        except duckdb.Error as error:
            raise RegardError(f"sql: {str(error).splitlines()[0]}") from error
        finally:
            cursor.close()

    def vectors(self, shard: str, rows: Int[np.ndarray, " n"], layer: int | None = None) -> Float[np.ndarray, "n M"]:
        """Read the embeddings of some rows of a shard, from one layer; None for the last that is kept.

        Raises:
            RegardError: the store has no such shard, row or layer.
        """
        whole, count = self._map(shard), self._counts[shard]
        if rows.size and not (rows.min() >= 0 and rows.max() < count):
            raise RegardError(f"vectors: shard {shard} has rows 0 to {count - 1}, given {rows.min()} to {rows.max()}")
        return np.ascontiguousarray(whole[rows, self.layer_index(layer)])

    def shard_vectors(self, layer: int | None = None) -> Iterator[tuple[str, Float[np.ndarray, "n M"]]]:
        """Yield each shard's name and the embeddings of all its rows, read from the file where they are used."""
        index = self.layer_index(layer)
        for shard in self.manifest.shards:
            yield shard.name, self._map(shard.name)[:, index]

    def layer_index(self, layer: int | None) -> int:
        """Tell which of the kept layers a layer is, None for the last. Raises RegardError where it is not kept."""
        return kept_place(self.manifest.layers, layer)

    @cached_property
    def connection(self) -> "duckdb.DuckDBPyConnection":
        """Connect to DuckDB, in memory, with the views, and lock it: the store's folder is all that it may read."""
        duckdb = needed("duckdb")
        settings = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
        connection = duckdb.connect(":memory:", config=settings)
        connection.execute("SET temp_directory = ''")
        for name in TABLES:
            self._view(connection, name)
        quarantine = self.path / "quarantine.parquet"
        if quarantine.is_file():
            connection.execute(f"CREATE VIEW quarantine AS SELECT * FROM read_parquet({_quoted(str(quarantine))})")
        else:
            _empty(connection, "quarantine", schema.quarantine())
        connection.execute(
            "CREATE TABLE shards (number BIGINT, name VARCHAR, parts BIGINT, rows BIGINT, tokens BIGINT)"
        )
        listed = [[n, each.name, each.parts, each.rows, each.tokens] for n, each in enumerate(self.manifest.shards)]
        if listed:
            connection.executemany("INSERT INTO shards VALUES (?, ?, ?, ?, ?)", listed)
        connection.execute(f"SET allowed_directories = [{_quoted(str(self.path))}]")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        return connection

    def _view(self, connection: "duckdb.DuckDBPyConnection", name: str) -> None:
        """Make the view of one table over all shards; heads only where statistics were asked for."""
        files = [self._folder(each.name) / f"{name}.parquet" for each in self.manifest.shards]
        files = [file for file in files if name != "heads" or file.is_file()]
        if files:
            listed = ", ".join(_quoted(str(file)) for file in files)
            columns = f"* EXCLUDE (filename, file_row_number), {SHARD_OF} AS shard, file_row_number AS row"
            source = f"read_parquet([{listed}], filename = true, file_row_number = true)"
            connection.execute(f"CREATE VIEW {name} AS SELECT {columns} FROM {source}")
        elif name != "heads":
            pa = needed("pyarrow")
            made = {"rows": schema.rows(1, statistics=False, sources=False), "texts": schema.texts()}
            fields = made.get(name, schema.spans())
            _empty(connection, name, fields.append(pa.field("shard", pa.string())).append(pa.field("row", pa.int64())))

    def _folder(self, shard: str) -> Path:
        return self.path / "shards" / shard

    def _check_shards(self) -> None:
        """Refuse a store whose shards are not there or lack a file."""
        wanted = list(FILES)
        for shard in self.manifest.shards:
            if not shard.name or Path(shard.name).name != shard.name:
                raise RegardError(
                    f"store {str(self.path)!r}: its manifest names a shard {shard.name!r}, no folder's name"
                )
            lacking = [name for name in wanted if not (self._folder(shard.name) / name).is_file()]
            if lacking:
                what = "is missing" if len(lacking) == len(wanted) else f"lacks {lacking[0]}"
                count = len(self.manifest.shards)
                again = "the same `regard embed` again makes it"
                raise RegardError(f"store {str(self.path)!r}: shard {shard.name} of {count} {what}; {again}")

    @cached_property
    def _counts(self) -> dict[str, int]:
        return {each.name: each.rows for each in self.manifest.shards}

    def _map(self, shard: str) -> np.ndarray:
        """A shard's vectors, memory-mapped, checked against the manifest when they are first read."""
        with self._lock:
            if shard not in self._mapped:
                if shard not in self._counts:
                    raise RegardError(f"vectors: the store has no shard {shard!r}")
                file = self._folder(shard) / "vectors.npy"
                try:
                    found: Any = np.load(file, mmap_mode="c", allow_pickle=False)  # torch warns of "r"
                except (OSError, ValueError) as error:
                    raise RegardError(f"{str(file)!r} cannot be read: {str(error).splitlines()[0]}") from error
                wanted = (self._counts[shard], len(self.manifest.layers), self.manifest.model.width)
                if found.shape != wanted:
                    raise RegardError(f"{str(file)!r} has shape {found.shape}, the manifest says {wanted}")
                self._mapped[shard] = found
            return self._mapped[shard]


def _quoted(text: str) -> str:
    """A string as SQL spells it."""
    return "'" + text.replace("'", "''") + "'"


def _empty(connection: "duckdb.DuckDBPyConnection", name: str, fields: "pa.Schema") -> None:
    """Make a table of no rows."""
    connection.register(f"_{name}", fields.empty_table())
    connection.execute(f"CREATE TABLE {name} AS SELECT * FROM _{name}")
    connection.unregister(f"_{name}")
