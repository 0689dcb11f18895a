"""`plugins` and `protocols`: what is installed, and what it offers."""

from __future__ import annotations

import click

from casebound.cli.common import debug_option, format_option, print_json, print_table, print_text
from casebound.host import PluginInfo, build_host


@click.command(help="List the plugins, what they offer, and what went wrong with them.")
@format_option
@debug_option
def plugins(as_json: bool) -> None:
    """List every plugin of the environment; one that fails is listed with its traceback."""
    found = build_host().plugins
    if as_json:
        print_json({"plugins": [_plugin_json(plugin) for plugin in found]})
        return
    for plugin in found:
        print_text(f"{plugin.name}  ({plugin.distribution} {plugin.version})")
        for kind, names in plugin.offers.items():
            print_text(f"  {kind}: {', '.join(names)}")
        for text in (plugin.error, plugin.traceback):
            if text:
                print_text("\n".join(f"  ! {line}" for line in text.splitlines()))


def _plugin_json(plugin: PluginInfo) -> dict[str, object]:
    error = "\n".join(text for text in (plugin.error, plugin.traceback) if text) or None
    return {
        "name": plugin.name,
        "distribution": plugin.distribution,
        "version": plugin.version,
        "offers": {kind: list(names) for kind, names in plugin.offers.items()},
        "error": error,
    }


@click.command(help="List the versions of the prompt protocols, and which a fresh case uses.")
@format_option
@debug_option
def protocols(as_json: bool) -> None:
    """List the prompt protocols of every stage."""
    from casebound.protocol_choice import list_protocols

    found = list_protocols(build_host())
    if as_json:
        print_json({"protocols": found})
        return
    marks = {(False, True): "default", (True, False): "draft"}
    rows = [
        [
            str(row["stage"]),
            str(row["version"]),
            str(row["distribution"]),
            marks.get((bool(row["draft"]), bool(row["default"])), ""),
        ]
        for row in found
    ]
    print_table(("stage", "version", "distribution", ""), rows)
