"""The text that `casebound init` writes; `config/project.example.toml` of the repository is the same."""

from __future__ import annotations

SETTINGS_TEXT = """\
# casebound: settings of one project. `casebound doctor` checks them.
# What starts with "#" is an alternative or a default.

[project]
name = "my-realm"
# plugins = ["catalog-vcore", "llm-offline"]   # only these plugins may load; built-ins always do

[database]
# The world database, read only: give casebound an account that may only SELECT. A URL with a password belongs into a
# variable, never into this file:
#   export CASEBOUND_DB_URL='mysql+pymysql://reader:…@127.0.0.1:3306/world?charset=utf8mb4'
url_env = "CASEBOUND_DB_URL"
# url = "sqlite:///world.db"                   # instead of url_env: a file beside this one
snapshot_id = "world-2026-11-01"               # your name for this state of the data; change it with the data
# Nothing but these tables is ever read.
tables = [
  "creature_template",
  "creature_template_locale",
  "quest_template",
]
# statement_timeout_s = 10
# scan_rows = 1000000                          # most rows that one look-up may read
# max_bytes = 67108864                         # most bytes that one look-up may read

# [intake]
# max_bytes = 8388608                          # largest report
# [intake.headings]                            # your template's headings, beside the built-in ones (en de fr es ru zh)
# "Actual result" = "observation"

# Which names are looked up, and where. Without this table no name is resolved.
[entity_resolution]
max_searches = 4                               # a report
max_candidates = 8                             # rows a search
max_invalid_responses = 3                      # a stage
# There are also vcore.quest, vcore.quest_locale, vcore.gameobject, vcore.gameobject_locale, vcore.item and
# vcore.item_locale; a table that they read must be in [database] tables.
catalogs = ["vcore.creature", "vcore.creature_locale"]

# A catalog of your own:
# [[entity_resolution.catalog]]
# name = "realm.vendor"
# entity_type = "creature"
# table = "my_vendors"
# id_column = "entry"
# name_column = "name"
# columns = ["entry", "name"]
# locale_column = "locale"

[interpretation]
max_invalid_responses = 3

# What is fetched for an id that a report cites itself (a link, `quest 11431`, `.npc add 23487`): creature names and
# quest titles are bound to their ids, quest texts become readable. Items get no name until you add vcore.item.
[enrichment]
rules = ["vcore.creature", "vcore.quest"]

# A rule of your own:
# [[enrichment.entity]]
# entity_type = "gameobject"
# table = "gameobject_template"
# column = "entry"
# columns = ["entry", "name"]
# name_column = "name"

# Who answers. `offline` follows deterministic rules: no key, no network, no cost.
[llm]
provider = "offline"

# A model behind OpenAI's interface, or any server that speaks it; replace the [llm] table above:
# [llm]
# provider = "openai"                          # or "gemini", with a table [llm.gemini]
# model = "…"
# response_format = "json_schema"              # json_schema | json_object | text
# timeout_s = 300
# max_output_tokens = 4096
# fallback = ["rules"]                         # who is asked, in turn, where the first one fails
# [llm.openai]
# base_url = "http://127.0.0.1:8080/v1"
# api_key_env = "OPENAI_API_KEY"               # or api_key_cmd = ["pass", "show", "openai"]
# [llm.retry]
# max_retries = 2                              # shared with the fallbacks
# [llm.profile.rules]
# provider = "offline"
# [limits]
# in_flight = 8
"""
"""Complete settings: creature catalogs, creature and quest name bindings, no item binding, the offline provider."""
