"""The tables of an index, for SQLite and PostgreSQL alike."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection

VERSION = "1"
APPLICATION_ID = 0x63736264  # marks an SQLite file as ours: `csbd`

# Every comparison is that of code points, whatever a server's locale is.
_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

METADATA = sa.MetaData()

META = sa.Table(
    "casebound_meta", METADATA, sa.Column("key", _TEXT, primary_key=True), sa.Column("value", _TEXT, nullable=False)
)

CASES = sa.Table(
    "casebound_case",
    METADATA,
    sa.Column("position", _NUMBER, sa.Identity(), primary_key=True),  # the order of admission
    sa.Column("package_id", _TEXT, nullable=False, unique=True),
    sa.Column("case_id", _TEXT, index=True),
    sa.Column("state", _TEXT, nullable=False),
    sa.Column("code", _TEXT),
    sa.Column("stage", _TEXT),
    sa.Column("retry_at", _TEXT),
    sa.Column("finished", sa.Boolean, nullable=False),
    sa.Column("calls", _NUMBER, nullable=False),
    sa.Column("input_tokens", _NUMBER, nullable=False),
    sa.Column("output_tokens", _NUMBER, nullable=False),
    sa.Column("unreported_calls", _NUMBER, nullable=False),
    sa.Column("unknown_calls", _NUMBER, nullable=False),
    sa.Column("last_call_at", _TEXT),
    sa.Column("lease_owner", _TEXT),
    sa.Column("lease_until", _TEXT),
    sa.Column("last_run", _TEXT),
    sa.Column("stopped", _TEXT),
    sa.Column("changes", _NUMBER, nullable=False),
)

# What a claim looks through is not what is finished, nor what nobody works on. For PostgreSQL `index_server` says the
# same: to name a dialect here is to import all of it.
sa.Index("casebound_case_open", CASES.c.position, sqlite_where=CASES.c.finished.is_(sa.false()))
sa.Index("casebound_case_leased", CASES.c.lease_owner, sqlite_where=CASES.c.lease_owner.is_not(None))


def fill(connection: Connection, belongs_to: str | None) -> None:
    """Make the tables of an index without rows, for the workspace `belongs_to`; None: its place says which."""
    METADATA.create_all(connection)
    meta = {"version": VERSION} | ({} if belongs_to is None else {"workspace": belongs_to})
    connection.execute(sa.insert(META), [{"key": key, "value": value} for key, value in meta.items()])
