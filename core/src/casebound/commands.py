"""The names of core's own commands, each with the line that `--help` shows: data that imports nothing.

The command line shows help from this table without importing a command; the host keeps plugins from claiming the names.
"""

from __future__ import annotations

CORE_COMMANDS: dict[str, str] = {
    "init": "Write a settings file to start from.",
    "doctor": "Check plugins, settings, database and models.",
    "plugins": "List the plugins and what they offer.",
    "protocols": "List the versions of the prompt protocols.",
    "catalogs": "List catalogs, and search names in them.",
    "resolve": "Resolve the entities of reports: the whole job.",
    "import": "Admit many reports; nobody is asked.",
    "run": "Take all cases of the workspace further, many at once.",
    "status": "Tell how all cases of the workspace stand.",
    "show": "Show a case: plan, candidates, assessment, interpretation.",
    "resume": "Let a blocked case go on, or all that are due.",
    "revise": "Interpret a case anew under the settings at hand.",
    "explain": "Explain each claim down to the text and the row.",
    "verify": "Check that finished packages still hold.",
    "reindex": "Make the index of the workspace again from its cases.",
    "record": "Write the recorded replies of a package into one file.",
    "rehearse": "Judge recorded replies by the rules of another version.",
    "bench": "Prepare and check frozen benchmarks of a prompt.",
    "demo": "Resolve the embedded sample report.",
}
