"""The host: real distributions in a folder, loaded one by one; what fails is named and hurts nobody else."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from casebound.errors import PluginError, SettingsError
from casebound.host import Host, build_host
from casebound.installed import Installed, installed_plugins
from casebound.offers import HOOKS
from casebound.specs import RuleRef
from casebound.testing.distributions import plugins_in, write_distribution
from hypothesis import given
from hypothesis import strategies as st

HEAD = "from casebound.hookspecs import hookimpl\nfrom casebound.specs import *\n@hookimpl\n"
CANARY = "cAnArY-5e1f"


def provider(name: str) -> str:
    return HEAD + f"def casebound_providers():\n    return [ProviderSpec({name!r}, settings='m:S', factory='m:F')]\n"


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Write distributions into a folder that is on the path for one test; return them as a host."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)

    def install(sources: dict[str, str], pinned: list[str] | None = None) -> Host:
        for name, source in sources.items():
            write_distribution(tmp_path, name, source)
        return build_host(pinned, entry_points=plugins_in(tmp_path))

    yield install
    for name in set(sys.modules) - before:
        if name.startswith("casebound_"):
            del sys.modules[name]


def plugin(host: Host, name: str):
    return next(info for info in host.plugins if info.name == name)


def test_offers_are_found_and_listed_with_their_distribution(install):
    host = install({"casebound-echo": provider("echo")})
    assert list(host.providers) == ["echo"]
    assert plugin(host, "echo").offers == {"providers": ("echo",)}
    assert plugin(host, "echo").error is None
    owner = host.distribution_of("providers", "echo")
    assert (owner.distribution, owner.version, owner.plugin) == ("casebound-echo", "1.0", "echo")


BROKEN = {
    "raises": ("raise ValueError('boom')", "ValueError: boom"),
    "exits": ("import sys; sys.exit(0)", "SystemExit: 0"),
    "exits-none": ("raise SystemExit", "SystemExit"),
    "needs-more": ("import no_such_module_here", "No module named 'no_such_module_here'"),
    "syntax": ("def (", "SyntaxError"),
    "stops": ("class Stop(BaseException): pass\nraise Stop('stop')", "Stop: stop"),
    "misspelt": (HEAD + "def casebound_providerz():\n    return []\n", "casebound_providerz"),
    "wrong-args": (HEAD + "def casebound_providers(colour):\n    return []\n", "colour"),
    "no-hooks": ("x = 1", "hookimpl"),
    "hook-raises": (HEAD + "def casebound_providers():\n    raise OSError('late')\n", "OSError: late"),
    "hook-exits": (HEAD + "def casebound_providers():\n    raise SystemExit(3)\n", "SystemExit: 3"),
    "hook-string": (HEAD + "def casebound_providers():\n    return 'echo'\n", "a str instead of a list"),
    "hook-type": (HEAD + "def casebound_providers():\n    return [1]\n", "a int instead of a ProviderSpec"),
    "bad-spec": (
        HEAD + "def casebound_providers():\n    return [ProviderSpec('x', settings='m', factory='m:F')]\n",
        "settings",
    ),
    "bad-name": (
        HEAD + "def casebound_providers():\n    return [ProviderSpec('', settings='m:S', factory='m:F')]\n",
        "the name ''",
    ),
    "no-group": (
        HEAD
        + "def casebound_catalogs():\n    return [CatalogOffer(references=(ReferencePattern('a.b', 't', 'x'),))]\n",
        "no group named id",
    ),
    "no-column": (
        HEAD
        + "def casebound_catalogs():\n    return [CatalogOffer(catalogs=(Catalog('a.b','t','t','id','n',('id',)),))]\n",
        "columns lack n",
    ),
    "low-version": (
        HEAD + "def casebound_protocols():\n    return [PromptProtocol('plan', 5, 'p', *[None] * 3, (), None)]\n",
        "numbers from 1000",
    ),
    "low-alias": (
        HEAD + "def casebound_protocols():\n    return [ProtocolAlias('plan', 5, of=4)]\n",
        "numbers from 1000",
    ),
    "late-alias": (
        HEAD + "def casebound_protocols():\n    return [ProtocolAlias('plan', 1000, of=1000)]\n",
        "which is not earlier",
    ),
    "lost-alias": (
        HEAD + "def casebound_protocols():\n    return [ProtocolAlias('plan', 1000, of=999)]\n",
        "plan/1000 as an alias of version 999, which nobody offers",
    ),
    "no-protocol": (HEAD + "def casebound_protocols():\n    return [4]\n", "a PromptProtocol or ProtocolAlias"),
    "self-phase": (HEAD + "def casebound_phases():\n    return [Phase('x', 'x', 'm:f')]\n", "cannot follow 'x'"),
    "none-fields": (HEAD + "def casebound_readers():\n    return [ReportReader('x', None, 'm:f')]\n", "PLUGIN_OFFER"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_plugin_that_fails_is_listed_with_its_owner_and_the_others_work(install, name):
    source, said = BROKEN[name]
    host = install({f"casebound-{name}": source, "casebound-echo": provider("echo")})
    host.index("protocols")  # as `protocols` and `doctor` do
    info = plugin(host, name)
    assert info.error is not None
    assert said in info.error
    assert f"casebound-{name} 1.0" in info.error or "no function marked" in info.error
    assert list(host.providers) == ["echo"]
    assert plugin(host, "echo").error is None


def test_a_pattern_that_does_not_compile_is_refused_when_patterns_are_used(install):
    source = HEAD + "def casebound_catalogs():\n    p = ReferencePattern('a.b', 't', '(?P<id>')\n"
    host = install({"casebound-bad": source + "    return [CatalogOffer(references=(p,))]\n"})
    with pytest.raises(PluginError) as caught:
        host.references  # noqa: B018
    assert caught.value.code == "PLUGIN_OFFER"
    assert "casebound-bad 1.0" in str(caught.value)


def test_a_traceback_shows_where_and_keeps_secrets(install, monkeypatch):
    monkeypatch.setenv("T_API_KEY", CANARY)
    source = "import os\nraise ValueError('mysql://u:hunter2@h/d ' + os.environ['T_API_KEY'])\n"
    info = plugin(install({"casebound-leak": source}), "leak")
    assert info.traceback is not None
    assert "casebound_leak.py" in info.traceback
    assert CANARY not in f"{info.error}{info.traceback}"
    assert "hunter2@" not in f"{info.error}"


def test_ctrl_c_while_a_plugin_loads_is_not_swallowed(install):
    with pytest.raises(KeyboardInterrupt):
        install({"casebound-slow": "raise KeyboardInterrupt"})


def test_what_a_plugin_prints_does_not_reach_standard_output(install, capsys):
    install({"casebound-loud": "print('hello')\n" + provider("loud")}).plugins  # noqa: B018
    assert capsys.readouterr().out == ""


# --- clashes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [1, -1])
def test_two_plugins_of_one_name_are_an_error_that_names_both_whatever_the_order(tmp_path, monkeypatch, install, order):
    install({"casebound-a": provider("same"), "casebound-b": provider("same"), "casebound-c": provider("other")})
    host = build_host(entry_points=plugins_in(tmp_path)[::order])
    assert list(host.providers) == ["other"]
    with pytest.raises(PluginError) as caught:
        host.need("providers", "same")
    assert caught.value.code == "PLUGIN_CLASH"
    assert "casebound-a 1.0" in str(caught.value)
    assert "casebound-b 1.0" in str(caught.value)
    assert host.need("providers", "other").name == "other"
    assert all("PLUGIN_CLASH" in (plugin(host, name).error or "") for name in "ab")
    assert plugin(host, "c").error is None


def test_two_distributions_with_one_plugin_name_are_both_left_out(tmp_path, install):
    write_distribution(tmp_path, "casebound-x", provider("one"), plugin="same")
    write_distribution(tmp_path, "casebound-y", provider("two"), plugin="same")
    host = install({"casebound-echo": provider("echo")})
    assert list(host.providers) == ["echo"]
    errors = [info.error or "" for info in host.plugins if info.name == "same"]
    assert len(errors) == 2
    assert all("casebound-x 1.0" in error and "casebound-y 1.0" in error for error in errors)


def test_a_phase_or_command_of_cores_own_cannot_be_claimed(install):
    host = install(
        {
            "casebound-p": HEAD + "def casebound_phases():\n    return [Phase('research', 'interpretation', 'm:f')]\n",
            "casebound-q": HEAD + "def casebound_commands():\n    return [Command('verify', 'h', 'm:g')]\n",
        }
    )
    for name in "pq":
        assert "casebound-" + name in (plugin(host, name).error or "")
        assert "PLUGIN_CLASH" in (plugin(host, name).error or "")
    with pytest.raises(PluginError):
        host.phases  # noqa: B018


def test_two_readers_of_one_suffix_clash(install):
    reader = HEAD + "def casebound_readers():\n    return [ReportReader({!r}, ('.zzz',), 'm:f')]\n"
    host = install({"casebound-r": reader.format("r"), "casebound-s": reader.format("s")})
    with pytest.raises(PluginError) as caught:
        host.readers  # noqa: B018
    assert "casebound-r 1.0" in str(caught.value)
    assert "casebound-s 1.0" in str(caught.value)
    assert ".zzz" in (plugin(host, "r").error or "")


def test_equal_roles_and_headings_are_shared_and_unequal_headings_clash(install):
    offer = HEAD + "def casebound_catalogs():\n    return [CatalogOffer(roles=('owner',), headings={{'Is': {!r}}})]\n"
    host = install({"casebound-a": offer.format("observation"), "casebound-b": offer.format("observation")})
    assert host.roles == ("owner",)
    assert dict(host.headings) == {"is": "observation"}
    host = install({"casebound-z": offer.format("expectation")})
    with pytest.raises(PluginError):
        host.headings  # noqa: B018


def test_phases_come_in_the_order_in_which_they_follow(install):
    def phases(*pairs: tuple[str, str]) -> str:
        return HEAD + f"def casebound_phases():\n    return [Phase(n, a, 'm:f') for n, a in {pairs!r}]\n"

    host = install(
        {"casebound-a": phases(("a-last", "hypothesis")), "casebound-h": phases(("hypothesis", "interpretation"))}
    )
    assert list(host.phases) == ["hypothesis", "a-last"]
    host = install({"casebound-loop": phases(("x", "y"), ("y", "x"))})
    with pytest.raises(PluginError) as caught:
        host.phases  # noqa: B018
    assert caught.value.code == "PLUGIN_OFFER"


# --- pinning, order, built-ins --------------------------------------------------------------------------------------


def test_pinned_plugins_are_the_only_ones_that_load(install, tmp_path):
    host = install({"casebound-a": provider("a"), "casebound-b": "raise ValueError"}, pinned=["a"])
    assert [info.name for info in host.plugins if info.distribution != "casebound"] == ["a"]
    assert "casebound_b" not in sys.modules
    with pytest.raises(SettingsError) as caught:
        build_host(["c"], entry_points=plugins_in(tmp_path))
    assert caught.value.code == "SETTINGS_NAME"
    assert caught.value.allowed == ("a", "b")
    assert build_host([], entry_points=plugins_in(tmp_path)).providers == {}


def test_an_unknown_name_lists_what_is_offered_and_what_failed(install):
    host = install({"casebound-echo": provider("echo"), "casebound-broken": "raise ValueError"})
    with pytest.raises(SettingsError) as caught:
        host.need("providers", "ecko", path="casebound.toml", pointer="llm.provider")
    assert caught.value.allowed == ("echo",)
    assert "broken" in caught.value.hint


def test_hosts_are_independent_values(tmp_path, install):
    first = install({"casebound-a": provider("a")})
    second = build_host(entry_points=())
    assert list(first.providers) == ["a"]
    assert list(second.providers) == []


def test_built_ins_come_through_the_same_hooks():
    host = build_host(entry_points=())
    assert ("plan", 4) in host.protocols
    assert host.distribution_of("protocols", ("plan", 4)).distribution == "casebound"
    rules = host.protocols["plan", 4].rules
    assert [rule.code for rule in host.validators_of("plan", rules)] == [ref.code for ref in rules]
    with pytest.raises(PluginError) as caught:
        host.validators_of("plan", [RuleRef("NO_SUCH_RULE", 1)])
    assert caught.value.code == "PLUGIN_MISSING"


def test_an_alias_is_the_earlier_version_under_its_own_number_and_owner(install):
    aliases = "ProtocolAlias('plan', 1001, of=1000), ProtocolAlias('plan', 1000, of=4)"
    host = install({"casebound-again": f"{HEAD}def casebound_protocols():\n    return [{aliases}]\n"})
    first = host.protocols["plan", 4]
    assert host.protocols["plan", 1001] == replace(first, version=1001)
    assert host.distribution_of("protocols", ("plan", 1001)).distribution == "casebound-again"


def test_listing_plugins_does_not_ask_for_protocols(install):
    host = install({"casebound-slow": HEAD + "def casebound_protocols():\n    raise OSError('asked')\n"})
    assert plugin(host, "slow").error is None
    host = install({"casebound-slow-too": HEAD + "def casebound_protocols():\n    raise OSError('asked')\n"})
    host.index("protocols")
    assert "OSError: asked" in str(plugin(host, "slow-too").error)


def test_listing_plugins_does_not_load_built_in_protocols():
    host = build_host(entry_points=())
    assert "builtin-protocols" not in {info.name for info in host.plugins}
    host.protocols  # noqa: B018


def test_a_validator_of_a_plugin_takes_part_in_fresh_cases(install):
    source = HEAD + (
        "def casebound_validators():\n"
        "    return [Validator('plan', 'MY_RULE', 1, check=lambda r, c: (), always=True),"
        " Validator('plan', 'MY_OTHER', 1, check=lambda r, c: ())]\n"
    )
    host = install({"casebound-mine": source})
    assert host.standing_rules("plan") == (RuleRef("MY_RULE", 1),)
    assert host.standing_rules("assessment") == ()


def test_every_hook_of_the_specification_has_its_rules():
    from casebound import hookspecs

    assert {hook.name for hook in HOOKS} == {name for name in dir(hookspecs) if name.startswith("casebound_")}


# --- what is installed ----------------------------------------------------------------------------------------------


def test_entry_points_agree_with_importlib_metadata(tmp_path, install):
    from importlib.metadata import distributions

    install({"casebound-b": "", "casebound-a": ""})
    (tmp_path / "unrelated-2.dist-info").mkdir()
    (tmp_path / "unrelated-2.dist-info" / "entry_points.txt").write_text("[console_scripts]\ncasebound = x:y\n")
    expected = sorted(
        (point.name, point.value, dist.metadata["Name"], dist.version)
        for dist in distributions(path=[str(tmp_path)])
        for point in dist.entry_points
        if point.group == "casebound"
    )
    assert [(p.name, p.value, p.distribution, p.version) for p in plugins_in(tmp_path)] == expected
    everywhere = {
        (point.name, point.value)
        for dist in distributions()
        for point in dist.entry_points
        if point.group == "casebound"
    }
    assert {(point.name, point.value) for point in installed_plugins()} == everywhere


def test_the_first_folder_with_a_distribution_wins(tmp_path):
    for folder, version in (("one", "2.0"), ("two", "1.0")):
        write_distribution(tmp_path / folder, "casebound-a", "", version=version)
    found = installed_plugins([str(tmp_path / "one"), str(tmp_path / "two"), str(tmp_path / "none")])
    assert found == (Installed("a", "casebound_a", "casebound-a", "2.0"),)


@given(st.text(max_size=400))
def test_no_metadata_breaks_the_search(text):
    from casebound.installed import _group

    assert all(name == name.strip() for name, _ in _group("[casebound]\n" + text))
