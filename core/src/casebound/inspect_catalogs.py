"""The catalogs of a project, listed, and one look-up by hand: the same query that a plan's search gets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import cast

from casebound.binding import bind_catalogs, check_table
from casebound.contracts.capture import Capture, Cell, TypedCell
from casebound.errors import CaseboundError, SettingsError
from casebound.host import Host, build_host
from casebound.research.catalog import open_database
from casebound.settings import EntityResolution, Settings, load_settings
from casebound.specs import Catalog


@dataclass(frozen=True, slots=True)
class CatalogSearch:
    """What a look-up by hand found: `capture` is the look-up as a case would keep it."""

    capture: Capture

    @property
    def columns(self) -> tuple[str, ...]:
        """The keys of a row, and the headings of `texts()`: `id`, `name`, then the columns that are neither."""
        catalog = self.capture.catalog
        return ("id", "name", *(c for c in self.capture.columns if c not in (catalog.id_column, catalog.name_column)))

    @property
    def matched(self) -> int:
        """How many rows matched among those that were read."""
        return self.capture.matched

    @property
    def truncated(self) -> bool:
        """Whether more rows may match than were kept."""
        return self.capture.truncated

    def _rows(self) -> list[list[Cell]]:
        catalog, columns = self.capture.catalog, self.capture.columns
        order = [columns.index(catalog.id_column), columns.index(catalog.name_column)]
        order += [index for index in range(len(columns)) if index not in order]
        return [[row[index] for index in order] for row in self.capture.rows]

    def texts(self) -> list[list[str]]:
        """Return the rows as a person reads them; null is an empty text."""
        return [[cell.v if isinstance(cell, TypedCell) else cell or "" for cell in row] for row in self._rows()]

    def to_json(self) -> dict[str, object]:
        """Return rows, matched, truncated and statement as JSON data; ids and names are strings."""
        rows = []
        for cells, texts in zip(self._rows(), self.texts(), strict=True):
            further = {
                key: c.to_json() if isinstance(c, TypedCell) else c for key, c in zip(self.columns, cells, strict=True)
            }
            rows.append({**further, "id": texts[0], "name": texts[1]})
        capture = self.capture
        return {
            "rows": rows,
            "matched": capture.matched,
            "truncated": capture.truncated,
            "statement": capture.statement,
        }


def list_catalogs(project_config: Path | None = None, *, llm_config: Path | None = None) -> list[dict[str, object]]:
    """Return every preset and every catalog of the settings; `active` are those that the settings name.

    Args:
        project_config: the settings file; None: the nearest one, and presets alone where there is none.
        llm_config: a file whose `[llm]` table replaces that of the settings, for which there must be some then.

    Raises:
        SettingsError, PluginError: as `bind`.
    """
    try:
        settings = load_settings(project_config, llm_config=llm_config)
    except CaseboundError as exc:
        if exc.code != "SETTINGS_FILE" or project_config or llm_config:
            raise
        return _rows(build_host(), ())
    host = build_host(settings.project.plugins)
    return _rows(host, bind_catalogs(settings, host))


def _rows(host: Host, active: tuple[Catalog, ...]) -> list[dict[str, object]]:
    names = {catalog.name for catalog in active}
    own = {catalog.name: catalog for catalog in active if host.catalogs.get(catalog.name) != catalog}
    return [
        {
            "name": name,
            "entity_type": catalog.entity_type,
            "table": catalog.table,
            "offered_by": "settings" if name in own else str(host.distribution_of("catalogs", name)),
            "active": name in names,
        }
        for name, catalog in sorted({**host.catalogs, **own}.items())
    ]


def search_catalog(
    name: str, text: str, project_config: Path | None = None, *, llm_config: Path | None = None
) -> CatalogSearch:
    """Look `text` up in one catalog: of the settings, or any preset whose table is in the allowlist.

    Raises:
        SettingsError: no such catalog, its table is not allowed, or a text that cannot be looked up.
        ResearchError: the database does not answer.
    """
    settings = load_settings(project_config, llm_config=llm_config)
    host = build_host(settings.project.plugins)
    catalog = _find_catalog(settings, host, name)
    limit = (settings.entity_resolution or EntityResolution.model_construct()).max_candidates
    source = open_database(settings)
    try:
        return CatalogSearch(source.look_up_all([(source.freeze_catalog(catalog), text)], limit)[0])
    except SettingsError as exc:
        raise exc.placed(str(settings.path)) from None
    finally:
        source.close()


def _find_catalog(settings: Settings, host: Host, name: str) -> Catalog:
    active = {catalog.name: catalog for catalog in bind_catalogs(settings, host)}
    if name in active:
        return active[name]
    if name not in host.catalogs:
        allowed = sorted({*active, *host.catalogs})
        raise SettingsError("SETTINGS_NAME", path=str(settings.path), found=f"the catalog {name!r}", allowed=allowed)
    preset = cast("Catalog", host.need("catalogs", name))
    check_table(settings, preset.table, "database.tables")
    return preset
