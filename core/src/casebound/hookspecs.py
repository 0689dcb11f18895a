"""The whole plugin API on one page.

A plugin is a distribution with an entry point in the group `casebound`, named after the distribution without its
`casebound-` (`catalog-inventory`), that points at a module with `@hookimpl` functions. Hooks only register: they do no
work, read no clock, open nothing and import nothing heavy. Each is called once, when something of its kind is first
needed, in the order of the plugins' names. An empty list means "nothing of this kind". What is returned is defined in
`casebound.specs`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from casebound.specs import (
        Benchmark,
        CatalogOffer,
        Command,
        Demo,
        Phase,
        PromptProtocol,
        ProtocolAlias,
        ProviderSpec,
        ReportReader,
        RuleSet,
        Runner,
        Validator,
    )

NAMESPACE = "casebound"
hookspec = pluggy.HookspecMarker(NAMESPACE)
hookimpl = pluggy.HookimplMarker(NAMESPACE)


# --- what a project knows -------------------------------------------------------------------------------------------


@hookspec
def casebound_catalogs() -> Sequence[CatalogOffer]:  # type: ignore[empty-body]  # a specification
    """Offer catalog presets, reference patterns, enrichment presets, roles, headings and a settings text.

    Called: once, when settings are bound, a catalog is looked up, or plugins are listed.
    Returns: one or more `CatalogOffer`; presets stay inactive until settings name them, patterns and roles are active.
    Collisions: two catalogs, enrichments or patterns of one name are an error that names both distributions.
    Errors: `PLUGIN_CLASH`, `PLUGIN_OFFER` (an empty name …), in `plugins`, `doctor`; `doctor` compiles patterns.
    Example:
        @hookimpl
        def casebound_catalogs():
            hosts = Catalog("inv.host", "host", "hosts", "id", "fqdn", ("id", "fqdn"))
            return [CatalogOffer(catalogs=(hosts,))]
    Since: 0.1
    """


@hookspec
def casebound_readers() -> Sequence[ReportReader]:  # type: ignore[empty-body]  # a specification
    """Offer readers for kinds of report files.

    Called: once, when a report is first read, or plugins are listed; the reader itself runs at admission, when
        the case is built, and again in `verify`.
    Returns: `ReportReader`s; a reader must be pure: the same text gives the same report.
    Collisions: two readers of one name, or of one suffix, are an error.
    Errors: `PLUGIN_CLASH`, `PLUGIN_OFFER`; a report that a reader cannot take is `REPORT_SYNTAX`.
    Example:
        @hookimpl
        def casebound_readers():
            return [ReportReader("rst", (".rst",), read="my_plugin.rst:read")]
    Since: 0.1
    """


@hookspec
def casebound_demos() -> Sequence[Demo]:  # type: ignore[empty-body]  # a specification
    """Offer an embedded sample for `casebound demo`.

    Called: once, when a demo is asked for, or plugins are listed; the function that it names runs when the demo does.
    Returns: `Demo`s.
    Collisions: two demos of one name are an error.
    Errors: `PLUGIN_CLASH`.
    Example:
        @hookimpl
        def casebound_demos():
            return [Demo("inventory", folder="my_plugin.demo:fill")]
    Since: 0.1
    """


# --- who answers ----------------------------------------------------------------------------------------------------


@hookspec
def casebound_providers() -> Sequence[ProviderSpec]:  # type: ignore[empty-body]  # a specification
    """Offer model providers.

    Called: once, when settings name a provider, or plugins are listed; settings model and factory are imported
        when a stage that will run names the provider.
    Returns: `ProviderSpec`s.
    Collisions: two providers of one name are an error that names both distributions.
    Errors: `PLUGIN_CLASH`; a factory that does not import is `PLUGIN_BROKEN`.
    Example:
        @hookimpl
        def casebound_providers():
            return [ProviderSpec("echo", settings="my_plugin.provider:Settings", factory="my_plugin.provider:Echo")]
    Since: 0.1
    """


@hookspec
def casebound_rules() -> Sequence[RuleSet]:  # type: ignore[empty-body]  # a specification
    """Offer deterministic answers for a stage, used by rule-based providers.

    Called: once, when a rule-based provider is built, or plugins are listed.
    Returns: `RuleSet`s.
    Collisions: two rule sets for one stage are an error.
    Errors: `PLUGIN_CLASH`.
    Example:
        @hookimpl
        def casebound_rules():
            return [RuleSet("entity_link", answer="my_plugin.rules:answer")]
    Since: 0.1
    """


# --- how they are asked, and judged ---------------------------------------------------------------------------------


@hookspec
def casebound_protocols() -> Sequence[PromptProtocol | ProtocolAlias]:  # type: ignore[empty-body]  # a specification
    """Offer versions of prompt protocols.

    Called: once, when protocols are needed; `casebound plugins` does not ask, `protocols` and `doctor` do.
    Returns: `PromptProtocol`s. A version that another distribution adds to a stage of core starts at 1000 and is used
        only where `[protocols]` names it; a stage that a plugin brings itself counts from 1. `ProtocolAlias` gives an
        earlier version a new number: `[protocols] resolution` selects plan and assessment together.
    Collisions: two protocols of one stage and version are an error.
    Errors: `PLUGIN_CLASH`, `PLUGIN_OFFER` (a number below 1000 in a stage of core, an alias of nothing).
    Example:
        @hookimpl
        def casebound_protocols():
            return [my_plugin.plan_v1000.PROTOCOL, ProtocolAlias("assessment", 1000, of=4)]
    Since: 0.1
    """


@hookspec
def casebound_validators() -> Sequence[Validator]:  # type: ignore[empty-body]  # a specification
    """Offer semantic rules.

    Called: once, when protocols are needed; `casebound plugins` does not ask, `protocols` and `doctor` do.
    Returns: `Validator`s. One with `always=True` takes part in fresh cases and is frozen in their input with its
        distribution and revision; `verify` runs exactly those.
    Collisions: two validators of one stage, code and revision are an error.
    Errors: `PLUGIN_CLASH`; a validator that raises stops the case as `PLUGIN_BROKEN`, it is no failure of the model.
    Example:
        @hookimpl
        def casebound_validators():
            return [Validator("plan", "MY_RULE", 1, check=my_check, always=True)]
    Since: 0.1
    """


# --- what happens around a case -------------------------------------------------------------------------------------


@hookspec
def casebound_phases() -> Sequence[Phase]:  # type: ignore[empty-body]  # a specification
    """Offer phases that may follow interpretation (`hypothesis`, `investigation` …).

    Called: once, when a case may go beyond its interpretation, or plugins are listed; a phase runs after the one
        it names, unless `--stop-after` ends before it. It follows an interpretation: `casebound revise` makes a new
        one, and each phase runs once more behind that; what it wrote behind an earlier one stays where it is.
    Returns: `Phase`s.
    Collisions: two phases of one name, or a name of core's own, are an error.
    Errors: `PLUGIN_CLASH`; `PLUGIN_OFFER` for a phase that follows an unknown one or itself.
    Example:
        @hookimpl
        def casebound_phases():
            return [Phase("hypothesis", after="interpretation", run="my_plugin.hypothesis:run")]
    Since: 0.1
    """


@hookspec
def casebound_runners() -> Sequence[Runner]:  # type: ignore[empty-body]  # a specification
    """Offer a place where the cases of a run are executed.

    Called: once, when `casebound run` looks for the runner that `[workspace] runner` names, or plugins are listed.
        `local` is core's own: every case is a task of the process that runs.
    Returns: `Runner`s.
    Collisions: two runners of one name are an error.
    Errors: `PLUGIN_CLASH`; a runner that raises what its jobs did not is `PLUGIN_BROKEN`, and the run ends in order.
    Example:
        @hookimpl
        def casebound_runners():
            return [Runner("queue", run="my_plugin.queue:run")]
    Since: 0.1
    """


@hookspec
def casebound_benchmarks() -> Sequence[Benchmark]:  # type: ignore[empty-body]  # a specification
    """Offer frozen benchmarks of a stage's prompt: a corpus with its model, guides, and what an answer says.

    Called: once, when a `casebound bench` command names one, or plugins are listed; the classes and files that it names
        are opened by the command.
    Returns: `Benchmark`s. The protocol that one measures is found by stage and version, whoever offers it.
    Collisions: two benchmarks of one name are an error.
    Errors: `PLUGIN_CLASH`, `PLUGIN_OFFER` (a file that is not `package:path`, no guide, a component that is left out);
        a corpus that does not hold is `BENCH_CORPUS`.
    Example:
        @hookimpl
        def casebound_benchmarks():
            guide, at = Guide("en", "my_plugin:guide.md"), "my_plugin.corpus"
            return [Benchmark("links", "link", 1, f"{at}:Corpus", "my_plugin:corpus.json", f"{at}:read",
                              (guide,), VERSIONS, components=(at,))]
    Since: 0.1
    """


@hookspec
def casebound_commands() -> Sequence[Command]:  # type: ignore[empty-body]  # a specification
    """Offer command groups for the command line.

    Called: once, when a command is looked up that core does not have, or plugins are listed.
    Returns: `Command`s; the click group is imported when the command runs.
    Collisions: two commands of one name, or a name of core's own, are an error.
    Errors: `PLUGIN_CLASH`.
    Example:
        @hookimpl
        def casebound_commands():
            return [Command("link", "Entity links", group="my_plugin.cli:link")]
    Since: 0.1
    """
