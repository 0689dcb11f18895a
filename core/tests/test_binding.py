"""Settings and plugins brought together: every name is looked up before anything is written."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from casebound.binding import bind, build_provider
from casebound.errors import CaseboundError, PluginError, SettingsError
from casebound.host import Host, build_host
from casebound.protocol_choice import list_protocols
from casebound.protocols.registry import built_in_protocols
from casebound.research.catalog import open_database
from casebound.settings import load_settings
from casebound.specs import CORE_ROLES, RuleRef
from casebound.testing.distributions import plugins_in, write_distribution

PLUGIN = """
from casebound.hookspecs import hookimpl
from casebound.specs import *

@hookimpl
def casebound_catalogs():
    host = Catalog("inv.host", "host", "hosts", "id", "fqdn", ("id", "fqdn", "os"), preset=True)
    rule = EnrichmentRule("inv.host", "host", "hosts", "id", ("id", "fqdn"), name_column="fqdn", preset=True)
    pattern = ReferencePattern("inv.ticket", "host", r"host=(?P<id>[0-9]+)")
    return [CatalogOffer((host,), (pattern,), (rule,), ("owner", "affected_subject"), {"What happens": "observation"})]

@hookimpl
def casebound_providers():
    return [
        ProviderSpec("echo", settings="casebound_inv_echo:Settings", factory="casebound_inv_echo:Echo"),
        ProviderSpec("rules", "casebound_inv_echo:Settings", "casebound_inv_echo:Rules", resolver="rules"),
        ProviderSpec("named", "casebound_inv_echo:Settings", "casebound_inv_echo:Echo", needs_model=True),
        ProviderSpec("lost", settings="casebound_inv_lost:Settings", factory="casebound_inv_lost:Lost"),
    ]

@hookimpl
def casebound_rules():
    return [RuleSet("plan", "casebound_inv_echo:answer")]

@hookimpl
def casebound_protocols():
    def one(stage, version, **more):
        return PromptProtocol(stage, version, "p", None, None, None, (), None, **more)
    return [one("plan", 1000), one("assessment", 1000), one("triage", 1), one("triage", 2, draft=True)]
"""
PROVIDER = """
from pydantic import BaseModel, ConfigDict
class Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    base_url: str = "http://127.0.0.1"
    api_key_env: str | None = None
    api_key_cmd: tuple[str, ...] | None = None
    names: list[str] = []
    temperature: float = 0.0
class Echo:
    def __init__(self, settings):
        from casebound.settings import read_secret
        self.settings = settings
        if settings.api_key_env:
            read_secret(env=settings.api_key_env, cmd=None, key="llm.echo.api_key_env")
class Rules:
    def __init__(self, settings, rules):
        self.rules = rules
def answer(message):
    return {}
"""
SETTINGS = """
[project]
name = "inventory"
[database]
url = "sqlite:///hosts.db"
snapshot_id = "s"
tables = ["hosts", "services"]
[intake.headings]
"WHAT  happens" = "expectation"
[entity_resolution]
catalogs = ["inv.host"]
[[entity_resolution.catalog]]
name = "own.service"
entity_type = "service"
table = "services"
id_column = "id"
name_column = "name"
columns = ["id", "name"]
locale_column = "lang"
[enrichment]
rules = ["inv.host"]
[[enrichment.entity]]
entity_type = "service"
table = "services"
column = "id"
columns = ["id", "name"]
name_column = "name"
[protocols]
[llm]
provider = "echo"
model = "big"
fallback = ["spare"]
[llm.echo]
base_url = "http://127.0.0.1:1"
[llm.stage.plan]
max_output_tokens = 100
[llm.stage.plan.echo]
temperature = 0.5
[llm.stage.interpretation]
provider = "rules"
[llm.profile.spare]
provider = "rules"
timeout_s = 7
"""


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    write_distribution(tmp_path, "casebound-inv", PLUGIN, version="3.1")
    (tmp_path / "casebound_inv_echo.py").write_text(PROVIDER)
    yield build_host(entry_points=plugins_in(tmp_path))
    for name in [name for name in sys.modules if name.startswith("casebound_inv")]:
        del sys.modules[name]


@pytest.fixture
def bound(host: Host, tmp_path: Path):
    def bound(old: str = "", new: str = "", text: str = SETTINGS):
        assert old in text
        path = tmp_path / "casebound.toml"
        path.write_text(text.replace(old, new, 1) if old else text)
        return bind(load_settings(path), host)

    return bound


def test_names_become_the_things_they_name(bound):
    result = bound()
    assert [catalog.name for catalog in result.catalogs] == ["inv.host", "own.service"]
    assert result.catalogs[0].preset
    assert not result.catalogs[1].preset
    assert result.catalogs[1].columns == ("id", "name", "lang")
    assert [rule.name for rule in result.enrichments] == ["inv.host", "enrichment.entity[0]"]
    assert result.roles == (*CORE_ROLES, "owner")
    assert [pattern.name for pattern in result.references] == ["inv.ticket"]
    # The operator's own heading wins, however it is spaced and cased.
    assert result.headings["what happens"] == "expectation"


def test_a_stage_overlays_the_llm_table(bound):
    stages = bound().stages
    assert set(stages) == {"plan", "assessment", "interpretation"}
    plan, assessment, interpretation = stages["plan"], stages["assessment"], stages["interpretation"]
    assert (plan.model, plan.max_output_tokens, assessment.max_output_tokens) == ("big", 100, 4096)
    assert plan.settings.model_dump()["base_url"] == "http://127.0.0.1:1"
    assert (plan.settings.model_dump()["temperature"], assessment.settings.model_dump()["temperature"]) == (0.5, 0.0)
    # Another provider has its own models: the name of [llm]'s model means nothing to it.
    assert (interpretation.provider, interpretation.model) == ("rules", None)
    for stage in (plan, assessment, interpretation):
        assert [(one.provider, one.model, one.timeout_s) for one in stage.answerers[1:]] == [("rules", None, 7)]
        assert stage.answerers[0] is stage


def test_a_profile_with_a_table_of_its_own_names_its_own_key(bound):
    """Else the key of one server would go to another."""
    keyed = SETTINGS.replace("[llm.echo]", '[llm.echo]\napi_key_env = "T_KEY"\ntemperature = 0.25').replace(
        '[llm.profile.spare]\nprovider = "rules"', "[llm.profile.spare]"
    )
    (same,) = bound(text=keyed).stages["plan"].fallback
    assert (same.model, same.settings.api_key_env) == ("big", "T_KEY")
    own = keyed + '[llm.profile.spare.echo]\nbase_url = "http://127.0.0.1:2"\n'
    (other,) = bound(text=own).stages["plan"].fallback
    assert (other.settings.base_url, other.settings.temperature) == ("http://127.0.0.1:2", 0.25)
    assert other.settings.api_key_env is None
    (keyed_too,) = bound(text=own + 'api_key_cmd = ["pass"]\n').stages["plan"].fallback
    assert (keyed_too.settings.api_key_env, keyed_too.settings.api_key_cmd) == (None, ("pass",))


@pytest.mark.parametrize(
    ("key", "value", "found"),
    [
        ("provider", '"rules"', "rules"),
        ("model", '"small"', "small"),
        ("response_format", '"text"', "text"),
        ("timeout_s", "3", 3),
        ("max_output_tokens", "9", 9),
        ("incomplete_cap_factor", "4", 4),
        ("unknown_calls", '"hold"', "hold"),
    ],
)
def test_each_key_of_a_stage_holds_for_that_stage_alone(bound, key, value, found):
    stages = bound("[llm.stage.plan]\nmax_output_tokens = 100", f"[llm.stage.plan]\n{key} = {value}").stages
    assert getattr(stages["plan"], key) == found
    assert getattr(stages["assessment"], key) != found


def test_the_retries_of_a_stage_hold_for_that_stage_alone(bound):
    stages = bound("[llm.stage.plan.echo]", "[llm.stage.plan.retry]\nmax_retries = 7\n[llm.stage.plan.echo]").stages
    assert [stages[stage].max_retries for stage in ("plan", "assessment")] == [7, 2]


def test_codes_of_a_fallback_mean_nothing_where_there_is_none(bound):
    assert bound().stages["plan"].fallback_codes == (
        "LLM_RATE_LIMITED",
        "LLM_TIMEOUT",
        "LLM_UNAVAILABLE",
        "LLM_QUOTA",
    )
    alone = bound('fallback = ["spare"]', "").stages["plan"]
    assert (alone.answerers, alone.fallback_codes) == ((alone,), ())


def test_providers_are_built_with_their_settings_and_rules(bound, host):
    stages = bound().stages
    assert build_provider(stages["plan"], host, Path("f.toml")).provider.settings.temperature == 0.5
    assert set(build_provider(stages["interpretation"], host, Path("f.toml")).provider.rules) == {"plan"}


def test_a_key_that_a_provider_lacks_is_told_with_file_and_key(bound, host):
    stage = bound("[llm.echo]", '[llm.echo]\napi_key_env = "T_UNSET"').stages["plan"]
    with pytest.raises(SettingsError) as caught:
        build_provider(stage, host, Path("f.toml"))
    assert (caught.value.path, caught.value.pointer) == ("f.toml", "llm.echo.api_key_env")
    assert "f.toml at llm.echo.api_key_env" in str(caught.value)


def test_a_database_that_cannot_be_opened_is_told_with_the_key_that_names_it(bound, monkeypatch):
    monkeypatch.setenv("T_DB", "oracle://h/d")
    settings = bound('url = "sqlite:///hosts.db"', 'url_env = "T_DB"').settings
    with pytest.raises(SettingsError) as caught:
        open_database(settings)
    assert (caught.value.path, caught.value.pointer) == (str(settings.path), "database.url_env")


def test_a_providers_arrays_fit_lists_and_tuples(bound):
    result = bound("[llm.echo]", '[llm.echo]\nnames = ["a"]\napi_key_cmd = ["pass", "x"]')
    values = result.stages["plan"].settings.model_dump()
    assert (values["names"], values["api_key_cmd"]) == (["a"], ("pass", "x"))


@pytest.mark.spec("A-056")
@pytest.mark.parametrize(
    ("old", "pointer"),
    [('["hosts", "services"]', "entity_resolution.catalogs[0]"), ('"services"]', "entity_resolution.catalog[0].table")],
)
def test_a_table_outside_the_allowlist_is_refused_before_any_connection(bound, old, pointer):
    with pytest.raises(SettingsError) as caught:
        bound(old, '["other"]' if old.startswith("[") else '"other"]')
    assert (caught.value.code, caught.value.pointer) == ("SETTINGS_TABLE", pointer)
    assert "other" in caught.value.allowed


@pytest.mark.parametrize(
    ("old", "new", "code", "pointer"),
    [
        ('catalogs = ["inv.host"]', 'catalogs = ["inv.hots"]', "SETTINGS_NAME", "entity_resolution.catalogs[0]"),
        (
            'catalogs = ["inv.host"]',
            'catalogs = ["inv.host", "inv.host"]',
            "SETTINGS_VALUE",
            "entity_resolution.catalogs[1]",
        ),
        ('name = "own.service"', 'name = "inv.host"', "SETTINGS_VALUE", "entity_resolution.catalog[0].name"),
        ('id_column = "id"', 'id_column = "ID"', "SETTINGS_VALUE", "entity_resolution.catalog[0].id_column"),
        ('rules = ["inv.host"]', 'rules = ["inv.x"]', "SETTINGS_NAME", "enrichment.rules[0]"),
        ('\ncolumn = "id"', '\ncolumn = "key"', "SETTINGS_VALUE", "enrichment.entity[0].column"),
        ('provider = "echo"', 'provider = "ecko"', "SETTINGS_NAME", "llm.provider"),
        ('fallback = ["spare"]', 'fallback = ["spair"]', "SETTINGS_NAME", "llm.fallback[0]"),
        ('fallback = ["spare"]', 'fallback = ["spare", "spare"]', "SETTINGS_VALUE", "llm.fallback[1]"),
        ("timeout_s = 7", "timeout_s = 7\nfallback = []", "SETTINGS_KEY", "llm.profile.spare.fallback"),
        ("timeout_s = 7", 'unknown_calls = "hold"', "SETTINGS_KEY", "llm.profile.spare.unknown_calls"),
        ("timeout_s = 7", "retry = { max_retries = 1 }", "SETTINGS_KEY", "llm.profile.spare.retry"),
        ("[llm.echo]", "[llm.ecko]", "SETTINGS_NAME", "llm.ecko"),
        ("[llm.stage.plan]\n", "[llm.stage.plann]\n", "SETTINGS_KEY", "llm.stage.plann"),
        ("base_url", "base_uri", "SETTINGS_KEY", "llm.echo.base_uri"),
        ("temperature = 0.5", 'temperature = "hot"', "SETTINGS_VALUE", "llm.stage.plan.echo.temperature"),
        ("[protocols]", "[protocols]\nresolution = 999", "SETTINGS_NAME", "protocols.resolution"),
        ("[protocols]", "[protocols]\ninterpretation = 999", "SETTINGS_NAME", "protocols.interpretation"),
    ],
)
def test_a_name_that_does_not_hold_is_refused_by_its_key(bound, old, new, code, pointer):
    with pytest.raises(SettingsError) as caught:
        bound(old, new)
    assert (caught.value.code, caught.value.pointer, caught.value.exit_status) == (code, pointer, 2)
    assert code != "SETTINGS_NAME" or caught.value.allowed


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({'provider = "echo"\nmodel = "big"': 'provider = "named"', "[llm.echo]": "[llm.named]"}, "llm.model"),
        ({"[llm.stage.plan]": '[llm.stage.plan]\nprovider = "named"'}, "llm.stage.plan.model"),
        (
            {"timeout_s = 7": "", '[llm.profile.spare]\nprovider = "rules"': '[llm.profile.spare]\nprovider = "named"'},
            "llm.profile.spare.model",
        ),
    ],
)
def test_a_provider_that_needs_a_model_is_refused_without_one(bound, changes, pointer):
    text = SETTINGS
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    with pytest.raises(SettingsError) as caught:
        bound(text=text)
    assert (caught.value.code, caught.value.pointer, caught.value.exit_status) == ("SETTINGS_VALUE", pointer, 2)
    assert "the provider named needs one" in str(caught.value)
    table = pointer.removesuffix(".model")
    assert bound(text=text.replace(f"[{table}]\n", f'[{table}]\nmodel = "m"\n')).stages["plan"]


def test_a_providers_code_is_not_imported_for_stages_that_do_not_use_it(bound):
    bound("[llm.stage.interpretation]", '[llm.profile.unused]\nprovider = "lost"\n[llm.stage.interpretation]')
    assert "casebound_inv_lost" not in sys.modules
    with pytest.raises(PluginError) as caught:
        bound('provider = "rules"', 'provider = "lost"')
    assert caught.value.code == "PLUGIN_BROKEN"
    assert "casebound-inv 3.1" in str(caught.value)


def test_without_resolution_only_the_plain_interpretation_is_bound(bound):
    head, _, rest = SETTINGS.partition("[entity_resolution]")
    result = bound(text=head + "[enrichment]" + rest.partition("[enrichment]")[2])
    assert result.catalogs == ()
    assert list(result.stages) == ["interpretation"]
    assert result.protocols["interpretation"].prompt_id == "case_interpretation_v1"
    pinned = (
        head
        + "[enrichment]"
        + rest.partition("[enrichment]")[2].replace("[protocols]", "[protocols]\ninterpretation=6")
    )
    assert bound(text=pinned).protocols["interpretation"].prompt_id == "case_interpretation_v1"


def test_foreign_versions_are_used_only_where_they_are_named(bound, host):
    newest = {protocol.stage: protocol.version for protocol in built_in_protocols()}  # by stage and number
    chosen = bound().protocols
    assert {stage: protocol.version for stage, protocol in chosen.items()} == newest
    chosen = bound("[protocols]", "[protocols]\nresolution = 1000").protocols
    assert (chosen["plan"].version, chosen["assessment"].version) == (1000, 1000)
    rows = {(row["stage"], row["version"]): row for row in list_protocols(host)}
    assert rows["plan", 1000]["default"] is False
    assert rows["plan", newest["plan"]] == {
        "stage": "plan",
        "version": newest["plan"],
        "distribution": "casebound",
        "draft": False,
        "default": True,
    }
    # A stage that a plugin brings itself has defaults of its own, never a draft.
    assert (rows["triage", 1]["default"], rows["triage", 2]["default"]) == (True, False)


def test_the_plain_prompt_cannot_be_selected_by_a_number(bound):
    with pytest.raises(CaseboundError):
        bound("[protocols]", "[protocols]\ninterpretation = 0")


def test_validators_are_those_that_are_named(bound):
    result = bound()
    refs = result.rules("plan")
    assert [rule.code for rule in result.validators("plan", refs)] == [ref.code for ref in refs]
    with pytest.raises(PluginError):
        result.validators("plan", [RuleRef("NONE", 1)])
