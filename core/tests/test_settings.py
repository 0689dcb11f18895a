"""casebound.toml: what is accepted, and the one clear error for everything else."""

from __future__ import annotations

import copy
import pickle
import sys
from decimal import Decimal
from pathlib import Path

import pytest
from casebound.errors import SettingsError
from casebound.secret import Secret, holds_password, redact
from casebound.settings import database_url, load_settings, read_secret, redact_environment
from hypothesis import given
from hypothesis import strategies as st

FULL = """
[project]
name = "inventory"
plugins = ["catalog-inventory"]
[database]
url = "sqlite:///hosts.db"
snapshot_id = "hosts-2026"
tables = ["hosts", "services"]
[intake.headings]
"Actual result" = "observation"
[entity_resolution]
max_searches = 40
catalogs = ["inv.host"]
[[entity_resolution.catalog]]
name = "own.service"
entity_type = "service"
table = "services"
id_column = "id"
name_column = "name"
columns = ["id", "name"]
[interpretation]
max_invalid_responses = 5
[enrichment]
rules = ["inv.host"]
[[enrichment.entity]]
entity_type = "host"
table = "hosts"
column = "id"
columns = ["id", "fqdn"]
name_column = "fqdn"
[protocols]
resolution = 4
interpretation = 6
[llm]
provider = "echo"
incomplete_cap_factor = 1.5
fallback = ["spare"]
[llm.retry]
max_retries = 0
[llm.echo]
base_url = "http://127.0.0.1:8080/v1"
[llm.stage.plan]
model = "small"
[llm.profile.spare]
provider = "echo"
[llm.profile.spare.echo]
base_url = "http://127.0.0.1:8081/v1"
[llm.price]
input = 0.1
output = 2
[limits]
in_flight = 3
[budget]
run_calls = 10
"""


@pytest.fixture
def write(tmp_path: Path):
    def write(text: str, name: str = "casebound.toml") -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


def refused(path: Path, **options: object) -> SettingsError:
    with pytest.raises(SettingsError) as caught:
        load_settings(path, **options)
    return caught.value


def test_a_full_file_is_read_into_typed_settings(write):
    settings = load_settings(write(FULL))
    assert settings.entity_resolution is not None
    assert settings.entity_resolution.own[0].columns == ("id", "name")
    assert settings.llm.provider_tables == {"echo": {"base_url": "http://127.0.0.1:8080/v1"}}
    assert settings.llm.profile["spare"].provider_tables["echo"] == {"base_url": "http://127.0.0.1:8081/v1"}
    assert settings.llm.stage["plan"].model == "small"
    assert settings.llm.incomplete_cap_factor == Decimal("1.5")
    assert settings.llm.price is not None
    assert (settings.llm.price.input, settings.llm.price.output) == (Decimal("0.1"), Decimal(2))
    assert settings.intake.headings == {"Actual result": "observation"}
    assert settings.path.name == "casebound.toml"


@pytest.mark.spec("A-048", "A-052", "A-053", "A-054")
def test_defaults_are_those_that_are_documented(write):
    minimal = '[project]\nname = "p"\n[database]\nurl = "sqlite:///x.db"\nsnapshot_id = "s"\ntables = ["hosts"]\n'
    settings = load_settings(write(minimal))
    assert settings.entity_resolution is None
    settings = load_settings(write(minimal + '[entity_resolution]\ncatalogs = ["inv.host"]\n'))
    resolution = settings.entity_resolution
    assert resolution is not None
    assert (resolution.max_searches, resolution.max_candidates, resolution.max_invalid_responses) == (4, 8, 3)
    assert settings.interpretation.max_invalid_responses == 3
    assert settings.database is not None
    assert (settings.database.statement_timeout_s, settings.database.scan_rows) == (10, 1_000_000)
    assert (settings.database.max_bytes, settings.intake.max_bytes) == (67_108_864, 8_388_608)
    llm = settings.llm
    assert (llm.response_format, llm.timeout_s, llm.max_output_tokens) == ("json_schema", 300, 4096)
    assert (llm.unknown_calls, llm.retry.max_retries, llm.incomplete_cap_factor) == ("retry", 2, 2)
    assert llm.fallback_codes == ("LLM_RATE_LIMITED", "LLM_TIMEOUT", "LLM_UNAVAILABLE", "LLM_QUOTA")
    assert (settings.limits.in_flight, settings.limits.requests_per_minute) == (8, 0)


@pytest.mark.parametrize(
    ("old", "new", "code", "pointer"),
    [
        ("max_searches", "max_serches", "SETTINGS_KEY", "entity_resolution.max_serches"),
        ("[limits]", "[limit]", "SETTINGS_KEY", "limit"),
        ("snapshot_id", "snapshot", "SETTINGS_KEY", "database.snapshot"),
        ("snapshot_id = ", "# ", "SETTINGS_VALUE", "database.snapshot_id"),
        ("max_searches = 40", "max_searches = 0", "SETTINGS_VALUE", "entity_resolution.max_searches"),
        ("max_searches = 40", 'max_searches = "40"', "SETTINGS_VALUE", "entity_resolution.max_searches"),
        ("max_searches = 40", "max_searches = true", "SETTINGS_VALUE", "entity_resolution.max_searches"),
        ("max_searches = 40", "max_searches = 4.0", "SETTINGS_VALUE", "entity_resolution.max_searches"),
        ("max_searches = 40", "max_searches = 10000000", "SETTINGS_VALUE", "entity_resolution.max_searches"),
        ("incomplete_cap_factor = 1.5", "incomplete_cap_factor = nan", "SETTINGS_VALUE", "llm.incomplete_cap_factor"),
        ("input = 0.1", "input = -1", "SETTINGS_VALUE", "llm.price.input"),
        ('url = "sqlite:///hosts.db"', "", "SETTINGS_VALUE", "database"),
        ('model = "small"', 'modell = "small"', "SETTINGS_KEY", "llm.stage.plan.modell"),
        ("max_retries = 0", "retries = 0", "SETTINGS_KEY", "llm.retry.retries"),
        ("[llm.echo]", "fallbacks = []\n[llm.echo]", "SETTINGS_KEY", "llm.retry.fallbacks"),
        ('provider = "echo"', 'provider_tables = "x"', "SETTINGS_VALUE", "llm"),
        ('"observation"', '"markup"', "SETTINGS_VALUE", "intake.headings.Actual result"),
        ('columns = ["id", "fqdn"]', 'columns = "id"', "SETTINGS_VALUE", "enrichment.entity[0].columns"),
        ('[project]\nname = "inventory"', "[project]", "SETTINGS_VALUE", "project.name"),
    ],
)
def test_a_key_or_value_that_is_not_accepted_is_named(write, old, new, code, pointer):
    assert old in FULL
    error = refused(write(FULL.replace(old, new, 1)))
    assert (error.code, error.pointer, error.exit_status) == (code, pointer, 2)
    assert error.path is not None
    assert error.path.endswith("casebound.toml")


def test_a_misspelt_key_gets_the_right_one_suggested(write):
    error = refused(write(FULL.replace("max_candidates", "x").replace("max_searches", "max_serches")))
    assert "max_searches" in error.hint
    assert "max_searches" in error.allowed


def test_words_of_the_validator_are_told_in_those_of_the_file(write):
    error = refused(write(FULL.replace('tables = ["hosts", "services"]', 'tables = "hosts"')))
    assert (error.pointer, error.expected) == ("database.tables", "an array")
    error = refused(write(FULL.replace("[intake.headings]", "[intake]\nheadings = 3\n[enrichment.x]")))
    assert "dictionary" not in str(error)
    error = refused(write(FULL.replace("input = 0.1", 'input = "cheap"')))
    assert (error.pointer, error.found, error.expected) == ("llm.price.input", "'cheap' (string)", "a number")
    error = refused(write(FULL + "run_money = '0.5'\n"))
    assert (error.pointer, error.expected) == ("budget.run_money", "a number")
    error = refused(write(FULL + "run_money = nan\n"))
    assert error.found == "NaN (float)"


def test_own_catalogs_below_the_name_of_the_presets_get_the_right_table_suggested(write):
    text = FULL.replace('catalogs = ["inv.host"]\n', "").replace(
        "entity_resolution.catalog]", "entity_resolution.catalogs]"
    )
    error = refused(write(text))
    assert error.pointer == "entity_resolution.catalogs[0]"
    assert "did you mean [[entity_resolution.catalog]]?" in error.hint


@pytest.mark.spec("A-055")
@pytest.mark.parametrize("field", ["name", "entity_type", "table", "id_column", "name_column", "columns"])
def test_a_catalog_that_lacks_a_field_is_refused_by_the_fields_name(write, field):
    head, _, rest = FULL.partition("[[entity_resolution.catalog]]")
    catalog, _, tail = rest.partition("[interpretation]")
    lines = [line for line in catalog.splitlines() if not line.startswith(f"{field} =")]
    error = refused(write(head + "[[entity_resolution.catalog]]" + "\n".join(lines) + "\n[interpretation]" + tail))
    assert (error.code, error.pointer) == ("SETTINGS_VALUE", f"entity_resolution.catalog[0].{field}")


def test_resolution_without_a_catalog_or_without_a_database_is_refused(write):
    assert "catalog" in str(refused(write('[project]\nname="p"\n[entity_resolution]\n')))
    error = refused(write('[project]\nname="p"\n[entity_resolution]\ncatalogs=["a.b"]\n'))
    assert "[database]" in str(error)


@pytest.mark.spec("A-058")
@pytest.mark.parametrize("key", ["sql", "query", "where", "join", "pattern", "regex"])
def test_no_table_of_the_settings_takes_sql_or_patterns(write, key):
    text = FULL.replace('entity_type = "service"', f'entity_type = "service"\n{key} = "SELECT 1"')
    assert refused(write(text)).code == "SETTINGS_KEY"


@pytest.mark.parametrize(
    ("text", "line"),
    [("a = 1\na = 2\n", "line 2"), ("[t]\n[t]\n", "line 2"), ("x = \n", "line 1"), ("a = [" * 9000, None)],
)
def test_broken_toml_is_named_with_its_place(write, text, line):
    error = refused(write(text))
    assert error.code == "SETTINGS_SYNTAX"
    assert line is None or line in str(error)


def test_files_that_cannot_be_used_are_named(tmp_path, write):
    assert refused(tmp_path / "none.toml").code == "SETTINGS_FILE"
    assert refused(tmp_path).code == "SETTINGS_FILE"
    with pytest.raises(SettingsError) as caught:
        load_settings(start=tmp_path)
    assert caught.value.code == "SETTINGS_FILE"
    bad = tmp_path / "latin.toml"
    bad.write_bytes(b'[project]\nname = "\xe9"\n')
    assert refused(bad).code == "SETTINGS_SYNTAX"
    assert refused(write("#" * 2_000_000)).code == "SETTINGS_FILE"


def test_the_nearest_file_upwards_is_found(tmp_path, write):
    path = write(FULL)
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    assert load_settings(start=deep).path == path.resolve()


def test_llm_config_replaces_the_whole_llm_table(write):
    path = write(FULL)
    other = write('[llm]\nprovider = "other"\n', "llm.toml")
    settings = load_settings(path, llm_config=other)
    assert settings.llm.provider == "other"
    assert settings.llm.stage == {}
    assert settings.llm_path == other
    wrong = write('[llm]\nprovider = "other"\ntimeout_s = 0\n', "llm.toml")
    error = refused(path, llm_config=wrong)
    assert (error.path, error.pointer) == (str(wrong), "llm.timeout_s")
    assert refused(path, llm_config=write("[project]\n", "p.toml")).pointer == "project"


# --- secrets --------------------------------------------------------------------------------------------------------

CANARY = "cAnArY-5e1f"


@pytest.mark.parametrize(
    "url",
    [
        "mysql+pymysql://user:{}@host/db",
        "mysql://user:p/a?{}@host/db",
        "postgresql://host/db?password={}",
        "postgresql://host/db?user=u&PassWord={}",
        "postgresql://host/db?pass%77ord={}",
        "mysql://host/db?passwd={}",
        "mysql://host/db?ssl_key_password={}",
        "mssql+pyodbc:///?odbc_connect=DRIVER%3Dx%3BUID%3Du%3BPWD%3D{}",
        "postgresql://host/db?a=1;pwd={}",
        "sqlite:///x.db?secret={}",
    ],
)
def test_a_password_in_the_file_is_refused_and_never_shown(write, url):
    error = refused(write(FULL.replace("sqlite:///hosts.db", url.format(CANARY))))
    assert (error.code, error.pointer) == ("SETTINGS_SECRET", "database.url")
    assert CANARY not in str(error)


@pytest.mark.parametrize("url", ["http://u:{}@h/v1", "http://h/v1?api_key={}", "http://h/v1?access-token={}"])
def test_a_password_in_a_providers_table_is_refused_and_never_shown(write, url):
    error = refused(write(FULL.replace("http://127.0.0.1:8080/v1", url.format(CANARY))))
    assert (error.code, error.pointer) == ("SETTINGS_SECRET", "llm.echo.base_url")
    assert CANARY not in str(error)


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:///world.db",
        "mysql+pymysql://root@127.0.0.1:3306/db?charset=utf8mb4",
        "postgresql://u@h/db?passfile=/home/u/.pgpass",
        "postgresql://h/db?sslmode=require",
        "http://127.0.0.1:8080/v1",
    ],
)
def test_urls_without_a_password_are_accepted(url):
    assert not holds_password(url, database=not url.startswith("http"))


@pytest.mark.parametrize("key", ["api_key", "key", "token"])
def test_a_key_in_the_wrong_place_is_refused_without_its_value(write, key):
    error = refused(write(FULL.replace('provider = "echo"', f'{key} = "{CANARY}"', 1)))
    assert error.code == "SETTINGS_KEY"
    assert CANARY not in str(error)


def test_a_relative_database_file_starts_at_the_settings_file(write, tmp_path):
    settings = load_settings(write(FULL))
    assert database_url(settings).reveal() == f"sqlite:///{tmp_path.resolve()}/hosts.db"
    text = FULL.replace("sqlite:///hosts.db", "sqlite:///file:hosts.db?mode=ro&uri=true")
    url = database_url(load_settings(write(text))).reveal()
    assert url == f"sqlite:///file:{tmp_path.resolve()}/hosts.db?mode=ro&uri=true"


def test_the_database_url_comes_from_its_variable(write, monkeypatch):
    settings = load_settings(write(FULL.replace('url = "sqlite:///hosts.db"', 'url_env = "T_DB"')))
    monkeypatch.delenv("T_DB", raising=False)
    with pytest.raises(SettingsError) as caught:
        database_url(settings)
    assert caught.value.code == "SETTINGS_VARIABLE"
    assert "T_DB" in str(caught.value)
    monkeypatch.setenv("T_DB", f"mysql://u:{CANARY}@h/d")
    assert CANARY in database_url(settings).reveal()
    assert CANARY not in repr(database_url(settings))
    monkeypatch.setenv("T_DB", CANARY)
    with pytest.raises(SettingsError) as caught:
        database_url(settings)
    assert CANARY not in str(caught.value)


def test_a_secret_shows_itself_to_nobody():
    secret = Secret(CANARY)
    shown = f"{secret} {secret!r} {[secret]} {secret:>20} {secret!s}"
    assert CANARY not in shown
    assert secret == Secret(CANARY) != Secret("x")
    for write in (pickle.dumps, copy.copy):
        with pytest.raises(TypeError):
            write(secret)


def test_a_secret_is_read_from_a_variable_or_a_command(monkeypatch):
    monkeypatch.setenv("T_KEY", CANARY + "\n")
    assert read_secret(env="T_KEY", cmd=None, key="k").reveal() == CANARY
    assert read_secret(env=None, cmd=["printf", CANARY + "\\r\\n"], key="k").reveal() == CANARY
    # No shell: this is one argument, printed as it stands.
    assert read_secret(env=None, cmd=["echo", "$HOME;x"], key="k").reveal() == "$HOME;x"


@pytest.mark.parametrize(
    ("env", "cmd", "code"),
    [
        ("T_UNSET", None, "SETTINGS_VARIABLE"),
        (None, ["false"], "SETTINGS_COMMAND"),
        (None, ["no-such-program-here"], "SETTINGS_COMMAND"),
        (None, ["true"], "SETTINGS_SECRET"),
        (None, ["printf", "a\\nb"], "SETTINGS_SECRET"),
        (None, ["printf", "cl\\303\\251"], "SETTINGS_SECRET"),
        (None, ["sh", "-c", "sleep 30 & sleep 30"], "SETTINGS_COMMAND"),
        (None, None, "SETTINGS_VALUE"),
        ("T_KEY", ["true"], "SETTINGS_VALUE"),
    ],
)
def test_a_secret_that_cannot_be_had_is_an_error_without_it(monkeypatch, env, cmd, code):
    monkeypatch.setenv("T_KEY", CANARY)
    with pytest.raises(SettingsError) as caught:
        read_secret(env=env, cmd=cmd, key="llm.echo.api_key_env", timeout_s=0.3)
    assert (caught.value.code, caught.value.pointer) == (code, "llm.echo.api_key_env")
    assert CANARY not in str(caught.value)


PASTED = [
    "sk-proj-abcdefghijkl",
    "sk_live_abcdefghijkl",
    "AKIAIOSFODNN7EXAMPLE",
    "gsk_4fT9qLmZ0aWxYcVbNnMm",
    "a3f5c9d2e8b7461f0c5d9e3a7b2f8c64",
    "https://host/path",
    "mysql://host/world",
    "my key",
    "7up",
    "",
]


@pytest.mark.parametrize("text", PASTED)
def test_a_secret_pasted_for_the_name_of_its_variable_is_never_shown(write, text):
    with pytest.raises(SettingsError) as caught:
        read_secret(env=text, cmd=None, key="llm.echo.api_key_env")
    assert (caught.value.code, caught.value.pointer) == ("SETTINGS_SECRET", "llm.echo.api_key_env")
    assert not text or text not in str(caught.value)
    if not text:
        return
    with pytest.raises(SettingsError) as caught:
        database_url(load_settings(write(FULL.replace('url = "sqlite:///hosts.db"', f'url_env = "{text}"'))))
    assert (caught.value.code, caught.value.pointer) == ("SETTINGS_SECRET", "database.url_env")
    assert text not in str(caught.value)


@pytest.mark.parametrize(
    "name", ["OPENAI_API_KEY", "DB_URL_2", "database", "CASEBOUND_TEST_POSTGRESQL_URL", "s3_url", "_x", "World2026_URL"]
)
def test_the_name_of_a_variable_that_is_not_set_is_shown(monkeypatch, name):
    monkeypatch.delenv(name, raising=False)
    with pytest.raises(SettingsError) as caught:
        read_secret(env=name, cmd=None, key="k")
    assert caught.value.code == "SETTINGS_VARIABLE"
    assert name in str(caught.value)


def test_a_variable_that_is_set_may_have_any_name(monkeypatch):
    monkeypatch.setenv("k9x8w7v6u5t4s3r2q1", CANARY)
    assert read_secret(env="k9x8w7v6u5t4s3r2q1", cmd=None, key="k").reveal() == CANARY


def test_a_value_of_the_wrong_kind_is_not_shown_where_a_name_of_a_variable_belongs(write):
    error = refused(write(FULL.replace('url = "sqlite:///hosts.db"', f'url_env = " {CANARY}"')))
    assert error.pointer == "database.url_env"
    assert CANARY not in str(error)


@pytest.mark.parametrize("bad", ["\x00", "\n", "\x7f", "é", "\u200b"])
@pytest.mark.parametrize("origin", ["variable", "command"])
def test_characters_that_no_header_holds_are_refused_without_showing_them(monkeypatch, origin, bad):
    text = CANARY + bad + "x"
    if origin == "variable" and bad != "\x00":  # which no variable can hold
        monkeypatch.setenv("T_KEY", text)
        places = {"env": "T_KEY", "cmd": None}
    else:
        script = f"import sys; sys.stdout.buffer.write({text.encode()!r})"
        places = {"env": None, "cmd": [sys.executable, "-c", script]}
    with pytest.raises(SettingsError) as caught:
        read_secret(**places, key="k")
    assert caught.value.code == "SETTINGS_SECRET"
    assert CANARY not in str(caught.value)


def test_texts_of_others_lose_every_secret_that_is_known(monkeypatch):
    monkeypatch.setenv("T_API_KEY", CANARY)
    text = (
        f"key {CANARY} at mysql://u:hunter2@h/d and postgresql://h/d?password=hunter2&x=1 "
        "Authorization: Bearer hunter2hunter2 and sk-hunter2hunter2"
    )
    shown = redact_environment(text)
    assert CANARY not in shown
    assert "hunter2" not in shown
    assert "mysql://u:" in shown
    assert "x=1" in shown


@given(
    st.text(
        st.characters(exclude_characters="@/?#'\" \t\n\r\x0b\x0c", exclude_categories=("Cs", "Zs", "Zl", "Zp", "Cc")),
        min_size=8,
    )
)
def test_a_password_in_a_url_is_always_taken_out(password):
    assert f":{password}@" not in redact(f"could not connect to mysql://user:{password}@host/db")
    assert holds_password(f"mysql://user:{password}@host/db", database=True)


@pytest.mark.parametrize(
    ("table", "keys"),
    [
        ("llm", {"provider", "fallback", "stage"}),
        ("llm.stage.plan", {"provider", "retry", "unknown_calls"}),
        ("llm.profile.spare", {"provider", "model", "price"}),
    ],
)
def test_where_a_provider_has_its_table_the_accepted_keys_say_so(write, table, keys):
    text = '[project]\nname = "x"\n' + f"[{table}]\ncolour = 1\n"
    error = refused(write(text))
    assert (error.code, error.pointer) == ("SETTINGS_KEY", f"{table}.colour")
    assert keys < set(error.allowed)
    assert error.allowed[-1] == f"the table [{table}.PROVIDER] of an installed provider"
    assert "provider_tables" not in error.allowed


def test_a_table_without_providers_accepts_none(write):
    error = refused(write('[project]\nname = "x"\n[budget]\ncolour = 1\n'))
    assert [key for key in error.allowed if "PROVIDER" in key] == []


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("[project\n", "SETTINGS_SYNTAX"),
        ('[project]\nname = "x"\ncolour = 1\n', "SETTINGS_KEY"),
        ('[project]\nname = "x"\n[database]\nurl = "mysql://u:p@h/d"\n', "SETTINGS_SECRET"),
        (None, "SETTINGS_FILE"),
    ],
)
def test_errors_name_the_file_absolutely_however_it_was_given(write, tmp_path, monkeypatch, text, code):
    monkeypatch.chdir(tmp_path)
    if text is not None:
        write(text)
    error = refused(Path("casebound.toml"))
    assert (error.code, error.path) == (code, str(tmp_path / "casebound.toml"))
    write('[project]\nname = "x"\n', "sound.toml")
    other = refused(Path("sound.toml"), llm_config=Path("casebound.toml"))
    assert other.path == str(tmp_path / "casebound.toml")
