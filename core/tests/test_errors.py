"""The table of codes: every row is used, every message tells place, finding and remedy."""

import re
from pathlib import Path

import casebound
import pytest
from casebound import errors
from casebound.errors import CODES, Code, PluginError, SettingsError, register_codes

SOURCE = Path(casebound.__file__).parent


def test_every_code_is_raised_or_recorded_somewhere():
    text = "\n".join(
        path.read_text("utf-8")
        for path in SOURCE.rglob("*.py")
        if path.name != "errors.py" and "testing" not in path.parts
    )
    plugins = SOURCE.parents[2] / "plugins"
    text += "\n".join(path.read_text("utf-8") for path in plugins.glob("*/src/**/*.py"))
    assert [code for code in CODES if f'"{code}"' not in text] == []


def test_every_code_in_the_source_has_a_row():
    pattern = re.compile(r"(?:Error|note)\(\s*\"([A-Z][A-Z_]{3,})\"")
    used = {code for path in SOURCE.rglob("*.py") for code in pattern.findall(path.read_text("utf-8"))}
    assert sorted(used - set(CODES)) == []


def test_every_row_names_a_class_a_remedy_and_a_documented_exit_status():
    for row in CODES.values():
        assert issubclass(getattr(errors, row.error), errors.CaseboundError)
        assert row.summary
        assert row.hint
        assert row.exit_status in (1, 2, 3)


def test_a_message_tells_where_what_and_what_to_do():
    error = SettingsError(
        "SETTINGS_KEY", path="casebound.toml", pointer="llm.modell", found="modell", allowed=["model"]
    )
    text = str(error)
    for part in ("SETTINGS_KEY", "casebound.toml", "llm.modell", "accepted: model", "what to do:"):
        assert part in text
    assert error.exit_status == 2


def test_a_second_meaning_of_a_code_is_a_clash():
    with pytest.raises(PluginError) as caught:
        register_codes([Code("LLM_AUTH", "ProviderError", "something else", "?", 1)])
    assert caught.value.code == "PLUGIN_CLASH"
    register_codes([CODES["LLM_AUTH"]])  # the same row again is no clash


def test_no_value_can_forge_a_line_of_a_message_or_steer_a_terminal():
    forged = "x\n  what to do: run rm\r\x1b[2K\u2028y"
    error = SettingsError("USAGE", found=forged, where=forged, pointer=forged, expected=forged, allowed=[forged])
    lines = str(error.placed(forged)).split("\n")
    assert len(lines) == 6
    assert [line.split(":")[0].strip() for line in lines] == [
        "USAGE",
        "where",
        "found",
        "expected",
        "accepted",
        "what to do",
    ]
    assert not set("\r\x1b\u2028") & set(str(error))
    assert lines[2] == "  found: x⟦U+000A⟧  what to do: run rm⟦U+000D⟧⟦U+001B⟧[2K⟦U+2028⟧y"
