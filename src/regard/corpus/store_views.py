"""Answer SQL over a store's tables, through DuckDB.

Queries see six views: rows, texts, spans, heads (with statistics), quarantine (of a finished store), and shards (the
manifest's list). The first four have two columns more, by which rows and their vectors are found: shard, its name, and
row, counted from 0 in that shard's file.
A query may read the store's folder and nothing else, and change nothing: one statement that selects.
"""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from regard.corpus.checksums import sha256_of_shard_file
from regard.corpus.extra import import_from_corpus_extra
from regard.corpus.manifest import Manifest
from regard.corpus.shard_reader import ShardReader
from regard.errors import RegardError

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

SHARD_OF = r"regexp_extract(filename, '([^/\\]+)[/\\][^/\\]+$', 1)"
TABLES = ("rows", "texts", "spans", "heads")


def connect(store: Path, manifest: Manifest, shards: Collection[ShardReader]) -> "duckdb.DuckDBPyConnection":
    """Connect to DuckDB, in memory, with the views, and lock it: the store's folder is all that it may read."""
    duckdb = import_from_corpus_extra("duckdb")
    settings = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    connection = duckdb.connect(":memory:", config=settings)
    connection.execute("SET temp_directory = ''")
    try:
        for name in TABLES:
            _view(connection, name, shards)
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
    listed = [[n, s.name, s.parts, s.rows, s.tokens] for n, s in enumerate(each.summary for each in shards)]
    if listed:
        connection.executemany("INSERT INTO shards VALUES (?, ?, ?, ?, ?)", listed)
    connection.execute(f"SET allowed_directories = [{_quoted_for_sql(str(store))}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def select(
    connection: "duckdb.DuckDBPyConnection",
    query: str,
    parameters: Sequence[str | int | float],
    shards: Collection[ShardReader],
) -> "pa.Table":
    """Answer one query that selects."""
    duckdb = import_from_corpus_extra("duckdb")
    cursor = connection.cursor()
    try:
        statements = cursor.extract_statements(query)
        kinds = {duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN}
        if len(statements) != 1 or statements[0].type not in kinds:
            raise RegardError("sql: needs one statement that selects: a store is not changed by asking")
        for name in TABLES:
            for shard in shards if name in query.lower() else ():
                if name != "heads" or (shard.folder / "heads.parquet").is_file():
                    shard.check(name)
        return cursor.sql(statements[0], params=list(parameters)).to_arrow_table()
    except duckdb.Error as error:
        raise RegardError(f"sql: {str(error).splitlines()[0]}") from error
    finally:
        cursor.close()


def _view(connection: "duckdb.DuckDBPyConnection", name: str, shards: Collection[ShardReader]) -> None:
    """Make the view of one table over all shards: none without a shard, and no heads without statistics."""
    files = [each.folder / f"{name}.parquet" for each in shards]
    files = [file for file in files if name != "heads" or file.is_file()]
    if files:
        listed = ", ".join(_quoted_for_sql(str(file)) for file in files)
        columns = f"* EXCLUDE (filename, file_row_number), {SHARD_OF} AS shard, file_row_number AS row"
        source = f"read_parquet([{listed}], filename = true, file_row_number = true)"
        connection.execute(f"CREATE VIEW {name} AS SELECT {columns} FROM {source}")


def _quoted_for_sql(text: str) -> str:
    """A string as SQL spells it."""
    return "'" + text.replace("'", "''") + "'"
