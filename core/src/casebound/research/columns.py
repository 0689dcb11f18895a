"""Which columns a table really has, and of what kind; asked with what an account that may only SELECT can see."""

from __future__ import annotations

from sqlalchemy import Connection, text

from casebound.research.query import ColumnKind

_MYSQL = text(
    "SELECT table_name, column_name, data_type FROM information_schema.columns"
    " WHERE table_schema = database() AND table_name = :table ORDER BY ordinal_position"
)
# Not information_schema: the search path decides which of several tables of one name is meant.
_POSTGRESQL = text(
    "SELECT :table, attname::text, format_type(atttypid, NULL) FROM pg_catalog.pg_attribute"
    " WHERE attrelid = to_regclass(quote_ident(:table)) AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
)
_INTEGERS = ("tinyint", "smallint", "mediumint", "int", "integer", "bigint")
_TEXTS = ("char", "character", "varchar", "character varying", "text", "tinytext", "mediumtext", "longtext", "citext")


def read_columns(connection: Connection, dialect: str, table: str) -> dict[str, ColumnKind]:
    """Return the columns of `table` in their order, real name → kind; empty where there is no such table."""
    if dialect == "sqlite":
        quoted = connection.dialect.identifier_preparer.quote_identifier(table)
        described = connection.exec_driver_sql(f"PRAGMA table_xinfo({quoted})").all()
        return {row.name: _sqlite_kind(row.type) for row in described if row.hidden != 1}
    rows = connection.execute(_MYSQL if dialect == "mysql" else _POSTGRESQL, {"table": table}).all()
    # MariaDB may compare names of tables without case: two tables can answer, the exact one counts.
    exact = [row for row in rows if row[0] == table] or rows
    return {row[1]: _kind(row[2]) for row in exact}


def _kind(data_type: str) -> ColumnKind:
    if data_type in _INTEGERS:
        return "integer"
    return "text" if data_type in _TEXTS else "other"


def _sqlite_kind(declared: str) -> ColumnKind:
    """Follow SQLite's own rule of affinity: INT anywhere, then CHAR, CLOB or TEXT."""
    upper = declared.upper()
    if "INT" in upper:
        return "integer"
    return "text" if any(part in upper for part in ("CHAR", "CLOB", "TEXT")) else "other"
