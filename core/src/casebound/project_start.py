"""The settings file that a new project starts from: a plugin's own text where one has it, else a neutral one."""

from __future__ import annotations

from pathlib import Path

from casebound.errors import SettingsError
from casebound.host import build_host
from casebound.settings import FILE_NAME
from casebound.store.write import create_new_file

NEUTRAL_TEXT = """\
# Settings of casebound. docs/reference/settings.md describes every key; what is left out has its default.

[project]
name = "my-project"

[llm]
provider = "offline"              # deterministic rules: no key, no cost; a plugin offers it (plugins/llm_offline)

# To look names up in a database of your own, take the marks away and put your names in.
#
# [database]
# url = "sqlite:///names.db"      # beside this file; or url_env = "CASEBOUND_DB_URL": no password stands here
# snapshot_id = "names-1"         # your name for this state of the database
# tables = ["hosts"]              # no other table is read
#
# [entity_resolution]             # without this table nothing is resolved
# max_searches = 4
# max_candidates = 8
# max_invalid_responses = 3
#
# [[entity_resolution.catalog]]
# name = "my.host"
# entity_type = "host"
# table = "hosts"
# id_column = "id"
# name_column = "name"
# columns = ["id", "name"]
"""


def settings_text(plugin: str | None = None) -> str:
    """Return the text to start from.

    Args:
        plugin: whose text; `none`: the neutral one; None: that of the only plugin that has one, else the neutral one.

    Raises:
        SettingsError: no such text, or several to choose from.
    """
    texts = build_host().settings_texts
    if plugin == "none" or (plugin is None and not texts):
        return NEUTRAL_TEXT
    if plugin is None and len(texts) == 1:
        return next(iter(texts.values()))
    if plugin is None or plugin not in texts:
        found = (
            "several plugins have a text" if plugin is None else f"the plugin {plugin!r}, which has no settings text"
        )
        raise SettingsError(
            "USAGE", pointer="--from", found=found, allowed=(*texts, "none"), hint="name one with --from"
        )
    return texts[plugin]


def write_settings(folder: Path, *, plugin: str | None = None) -> Path:
    """Write `casebound.toml` into `folder`, which is made if need be; return its path.

    Raises:
        SettingsError: there is one already (it stays as it is), or the folder cannot be written.
    """
    text = settings_text(plugin)
    path = folder / FILE_NAME
    try:
        folder.mkdir(parents=True, exist_ok=True)
        create_new_file(path, text.encode())
    except FileExistsError:
        hint = "remove it first, or name another folder"
        raise SettingsError("SETTINGS_FILE", path=str(path), found="a file that is already there", hint=hint) from None
    except OSError as exc:
        hint = "check the folder's permissions and space"
        raise SettingsError("SETTINGS_FILE", path=str(path), found=exc.strerror or str(exc), hint=hint) from exc
    return path
