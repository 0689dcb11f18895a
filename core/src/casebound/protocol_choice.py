"""Which version of a prompt protocol a fresh case freezes.

Rules:
- `[protocols]` decides where it names a version; else the newest that core ships and that is no draft.
- Versions that another distribution adds to a stage of core are used only where `[protocols]` names them.
- Without resolution the interpretation has one plain prompt, which no number selects.
"""

from __future__ import annotations

from casebound.errors import PluginError, SettingsError
from casebound.host import Host
from casebound.loading import DISTRIBUTION
from casebound.settings import Settings
from casebound.specs import CORE_STAGES, PromptProtocol

PLAIN_PROMPT = "case_interpretation_v1"


def choose_protocol(settings: Settings, host: Host, stage: str) -> PromptProtocol:
    """Return the version that a fresh case freezes for `stage`.

    Raises:
        SettingsError: `[protocols]` names one that nobody offers.
        PluginError: two plugins claim it, or there is none at all.
    """
    if settings.entity_resolution is None:
        return plain_protocol(host)
    key = "interpretation" if stage == "interpretation" else "resolution"
    wanted: int | None = getattr(settings.protocols, key)
    if wanted is None:
        return default_protocol(host, stage)
    return numbered_protocol(host, stage, wanted, path=str(settings.path), pointer=f"protocols.{key}")


def numbered_protocol(
    host: Host, stage: str, version: int, *, path: str | None = None, pointer: str | None = None
) -> PromptProtocol:
    """Return the version of `stage` that a number selects; the plain prompt has none.

    Args:
        host: the plugins.
        stage: whose version it is.
        version: the number.
        path: the file that names it, for errors.
        pointer: the key or option that names it, for errors.

    Raises:
        SettingsError: nobody offers it; the message lists what is accepted.
        PluginError: two plugins claim it.
    """
    if (stage, version) in host.index("protocols").clashes:
        host.need("protocols", (stage, version))
    known = {number: p for (of, number), p in host.protocols.items() if of == stage and p.prompt_id != PLAIN_PROMPT}
    if version not in known:
        found, versions = f"version {version} of stage {stage}", [str(number) for number in sorted(known)]
        raise SettingsError("SETTINGS_NAME", path=path, pointer=pointer, found=found, allowed=versions)
    return known[version]


def plain_protocol(host: Host) -> PromptProtocol:
    """Return the protocol of an interpretation without resolution. Raises `PluginError` where it is missing."""
    for protocol in host.protocols.values():
        if protocol.prompt_id == PLAIN_PROMPT:
            return protocol
    raise PluginError("PLUGIN_MISSING", found=f"no protocol with the prompt {PLAIN_PROMPT}")


def default_protocol(host: Host, stage: str) -> PromptProtocol:
    """Return what a fresh case freezes where settings say nothing: the newest that its owner ships and is no draft.

    For a stage of core only what core ships counts; a stage that a plugin brings itself has the newest of all.

    Raises:
        PluginError: there is none.
    """
    usable = [
        protocol
        for (of, version), protocol in host.protocols.items()
        if of == stage
        and not protocol.draft
        and protocol.prompt_id != PLAIN_PROMPT
        and (stage not in CORE_STAGES or host.distribution_of("protocols", (of, version)).distribution == DISTRIBUTION)
    ]
    if not usable:
        raise PluginError("PLUGIN_MISSING", found=f"no prompt protocol for the stage {stage}")
    return max(usable, key=lambda protocol: protocol.version)


def list_protocols(host: Host) -> list[dict[str, object]]:
    """Return every version as `casebound protocols` prints it: stage, version, distribution, draft, default."""
    defaults = set()
    for stage in {stage for stage, _ in host.protocols}:
        try:
            defaults.add((stage, default_protocol(host, stage).version))
        except PluginError:
            continue  # a stage with drafts only has no default
    return [
        {
            "stage": stage,
            "version": version,
            "distribution": host.distribution_of("protocols", (stage, version)).distribution,
            "draft": protocol.draft,
            "default": (stage, version) in defaults,
        }
        for (stage, version), protocol in sorted(host.protocols.items(), key=lambda entry: entry[0])
    ]
