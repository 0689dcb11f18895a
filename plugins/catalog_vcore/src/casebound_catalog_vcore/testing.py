"""For tests with real names: load a folder of CSV tables into a database, and write reports as files.

Rules:
- A table is `NAME.csv.gz` or `NAME.csv`: UTF-8 with a header row; an empty number is NULL. All tables of the folder are
  loaded, and nothing else is read.
- Numbers, keys and indexes are those of a world database; what is not known here is text.
- A table that exists already is an error, and nothing is changed.
- The environment is not read here: a test passes its own to `find_test_data`.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

import sqlalchemy as sa

TEST_DATA_VARIABLE = "CASEBOUND_TEST_DATA"

_NUMBERS = frozenset(
    {"entry", "ID", "id", "quest", "minlevel", "maxlevel", "QuestLevel", "MinLevel", "Quality", "ItemLevel", "type"}
)
_NAMES = ("name", "Name", "LogTitle", "Title")
_BATCH = 2000


def find_test_data(environment: Mapping[str, str], checkout: Path) -> Path | None:
    """Return the folder of real names and reports: what `CASEBOUND_TEST_DATA` says, else `../shared/data` beside it.

    Args:
        environment: the variables of the process.
        checkout: the root of the repository.

    Returns:
        An existing folder that holds `vcore/`, or None.
    """
    named = environment.get(TEST_DATA_VARIABLE)
    folder = Path(named) if named else checkout.parent / "shared" / "data"
    return folder if (folder / "vcore").is_dir() else None


def load_csv_world(csv_dir: Path, url: str) -> dict[str, int]:
    """Load every table of a folder into the database of a SQLAlchemy URL, which must hold none of them.

    Args:
        csv_dir: the folder.
        url: `sqlite:///world.db`, `mysql+pymysql://…/world?charset=utf8mb4` or `postgresql+psycopg://…`.

    Returns:
        The number of rows by table.

    Raises:
        FileNotFoundError: the folder holds no table.
        FileExistsError: the database holds one of the tables already.
    """
    paths = {path.name.split(".")[0]: path for path in sorted(csv_dir.glob("*.csv*"))}
    if not paths:
        raise FileNotFoundError(f"no *.csv.gz in {csv_dir}")
    metadata = sa.MetaData()
    tables = {name: _table(name, next(_records(path)), metadata) for name, path in paths.items()}
    engine = sa.create_engine(url)
    try:
        with engine.begin() as connection:
            if taken := tables.keys() & set(sa.inspect(connection).get_table_names()):
                raise FileExistsError(f"the database holds {', '.join(sorted(taken))} already")
            metadata.create_all(connection, checkfirst=False)
            return {name: _insert(connection, table, paths[name]) for name, table in tables.items()}
    finally:
        engine.dispose()


def reports_as_files(jsonl: Path, folder: Path) -> list[Path]:
    """Write each report of a JSON Lines file (`id`, `title`, `body`) as `<id>.md` with front matter; return the paths.

    Raises:
        FileExistsError: a report of that id is there already.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for line in jsonl.read_text("utf-8").splitlines():
        if not line.strip():
            continue
        report = json.loads(line)
        path = folder / f"{report['id']}.md"
        with path.open("x", encoding="utf-8", newline="") as file:
            file.write(f"---\nid: {report['id']}\ntitle: {report['title']}\n---\n\n{report['body']}\n")
        paths.append(path)
    return paths


def _records(path: Path) -> Iterator[list[str]]:
    with path.open("rb") as raw, gzip.GzipFile(fileobj=raw) if path.suffix == ".gz" else raw as binary:
        yield from csv.reader(io.TextIOWrapper(binary, encoding="utf-8", newline=""))


def _table(name: str, header: Sequence[str], metadata: sa.MetaData) -> sa.Table:
    key = (
        {header[0], "locale"} if name.endswith("_locale") else set(header) if header == ["id", "quest"] else {header[0]}
    )
    columns = [_column(column, column in key) for column in header]
    return sa.Table(name, metadata, *columns, mysql_charset="utf8mb4", mysql_engine="InnoDB")


def _column(name: str, is_key: bool) -> sa.Column[object]:
    kind: sa.types.TypeEngine[object] = sa.Integer() if name in _NUMBERS else sa.String(8 if name == "locale" else 255)  # type: ignore[assignment]  # either kind
    return sa.Column(name, kind, primary_key=is_key, autoincrement=False, index=name in _NAMES)


def _insert(connection: sa.Connection, table: sa.Table, path: Path) -> int:
    records = _records(path)
    header = next(records)
    rows = ({key: _cell(key, text) for key, text in zip(header, record, strict=True)} for record in records)
    count = 0
    while batch := list(islice(rows, _BATCH)):
        connection.execute(sa.insert(table), batch)
        count += len(batch)
    return count


def _cell(column: str, text: str) -> int | str | None:
    if column not in _NUMBERS:
        return text
    return int(text) if text else None
