"""`catalogs`: which catalogs there are, and the look-up by hand that a plan would get."""

from __future__ import annotations

from pathlib import Path

import click

from casebound.cli.common import debug_option, format_option, print_json, print_note, print_table, settings_options


@click.group(help="List catalogs, and search names in them.")
def catalogs() -> None:
    """Look at catalogs."""


@catalogs.command("list", help="List the presets of plugins and the catalogs of the settings.")
@settings_options
@format_option
@debug_option
def list_(project_config: Path | None, llm_config: Path | None, as_json: bool) -> None:
    """List catalogs; `active` are those that the settings name."""
    from casebound.inspect_catalogs import list_catalogs

    found = list_catalogs(project_config, llm_config=llm_config)
    if as_json:
        print_json({"catalogs": found})
        return
    rows = [
        [
            str(row["name"]),
            str(row["entity_type"]),
            str(row["table"]),
            str(row["offered_by"]),
            "active" if row["active"] else "",
        ]
        for row in found
    ]
    print_table(("name", "entity type", "table", "offered by", ""), rows)


@catalogs.command("search", help="Look TEXT up in the catalog NAME, literally, as a plan's search is.")
@click.argument("name")
@click.argument("text")
@settings_options
@format_option
@debug_option
def search(name: str, text: str, project_config: Path | None, llm_config: Path | None, as_json: bool) -> None:
    """Run one look-up and print its rows."""
    from casebound.inspect_catalogs import search_catalog

    found = search_catalog(name, text, project_config, llm_config=llm_config)
    if as_json:
        print_json(found.to_json())
        return
    print_table(found.columns, found.texts())
    cut = ", cut off: more may match" if found.truncated else ""
    print_note(f"{found.matched} matched{cut}")
