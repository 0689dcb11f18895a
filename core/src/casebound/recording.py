"""Recordings and packages: taking the replies out of a package, and reading them from either.

A package is verified before its replies are taken; one that does not hold gives none, one that is unfinished gives what
is there. A recording holds by its own digests. Both prove consistency, not authorship.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from pathlib import Path

from casebound.binding import Bound
from casebound.contracts.interpretation import InterpretationInput
from casebound.contracts.model_call import ModelReply, ModelRequest, NativeRecord
from casebound.contracts.recording import RecordedAttempt, RecordedOutcome, Recording
from casebound.errors import IntegrityError, PluginError, SettingsError
from casebound.host import Host
from casebound.llm.attempts import NATIVE, NATIVE_BODY, REPLY, REQUEST, Attempt, AttemptLog
from casebound.llm.replay import ReplayProvider, recorded_request
from casebound.progress import latest_revision
from casebound.store.layout import ADMISSION, PACKAGE
from casebound.store.package import TMP, Package, parse_artifact
from casebound.store.workspace import CASES
from casebound.store.write import create_new_file, read_given
from casebound.verification import verify_package

MOST_BYTES = 512 << 20  # of a recording


def open_replay(source: Path, bound: Bound) -> ReplayProvider:
    """Return the provider that answers from the recorded replies of a file or a package.

    Raises:
        SettingsError: `REPLAY_SOURCE`, `PACKAGE_UNREADABLE`; `REPLAY_MISMATCH` where the settings name another provider
            or model than answered then.
        PluginError: as `record_package`.
    """
    replay = ReplayProvider(load_recording(source, bound.host))
    for stage, model in bound.stages.items():
        replay.check_model(stage, model.provider, model.model)
    return replay


def load_recording(source: Path, host: Host) -> Recording:
    """Return the recorded replies of a package folder, or of a file that `write_recording` wrote.

    Raises:
        SettingsError: `REPLAY_SOURCE`: it is no regular file, is too large, cannot be read, was altered, does not hold,
            or has no replies; `PACKAGE_UNREADABLE` for a folder that is no package.
        PluginError: as `record_package`.
    """
    if source.is_dir():
        return record_package(source, host)
    try:
        recording = parse_artifact(read_given(source, MOST_BYTES), str(source), Recording)
        recording.check()
    except OSError as exc:
        raise _unusable(source, exc.strerror or "it cannot be read") from exc
    except IntegrityError as exc:
        raise _unusable(source, f"{exc.found}" + (f" at {exc.pointer}" if exc.pointer else "")) from exc
    except ValueError as exc:
        raise _unusable(source, str(exc)) from exc
    return recording


def record_package(root: Path, host: Host) -> Recording:
    """Return the recorded replies of the package at `root`: of every stage, of its latest interpretation.

    Raises:
        SettingsError: `PACKAGE_UNREADABLE`; `REPLAY_SOURCE` for one that does not hold, or that has no replies.
        PluginError: `PLUGIN_MISSING`: nobody can tell whether it holds, because a plugin is not installed.
    """
    verification = verify_package(root, host)
    if verification.only_plugins_missing:
        missing = "; ".join(dict.fromkeys(finding.message for finding in verification.findings))
        raise PluginError("PLUGIN_MISSING", path=str(root), found=missing)
    if verification.findings:
        first, others = verification.findings[0], len(verification.findings) - 1
        more = f", and {others} more" if others else ""
        raise _unusable(root, f"a package that does not hold: {first.code} {first.file}{first.pointer}{more}")
    attempts = list(_attempts(Package(root)))
    if not attempts:
        raise _unusable(root, "a package without any reply")
    return Recording.of(attempts)


def write_recording(root: Path, file: Path, host: Host) -> Recording:
    """Write the recorded replies of the package at `root` into a new file and return them.

    Raises:
        SettingsError: as `record_package`; `OUTPUT_FILE` where the file exists, cannot be written, or would lie in a
            package or among the cases of a workspace, where it would be a file too many.
        PluginError: as `record_package`.
    """
    _refuse_inside(file)
    recording = record_package(root, host)
    try:
        create_new_file(file, recording.to_bytes())
    except FileExistsError:
        raise SettingsError("OUTPUT_FILE", path=str(file), found="a file that is already there") from None
    except OSError as exc:
        hint = "check the folder, its permissions and its space"
        raise SettingsError("OUTPUT_FILE", path=str(file), found=exc.strerror or str(exc), hint=hint) from exc
    return recording


def _refuse_inside(file: Path) -> None:
    """Refuse a place in a package or among the cases of a workspace, as it is written and behind its links."""
    for place in (Path(os.path.abspath(file)), Path(os.path.realpath(file.parent), file.name)):
        for folder in place.parents:
            if all((folder / name).exists() for name in (PACKAGE, ADMISSION)):
                raise SettingsError("OUTPUT_FILE", path=str(file), found=f"a place in the package {folder}")
            if folder.name == CASES and (folder.parent / TMP).is_dir():
                raise SettingsError("OUTPUT_FILE", path=str(file), found=f"a place among the cases {folder}")


def _attempts(package: Package) -> Iterator[RecordedAttempt]:
    revision = latest_revision(package)
    frozen = package.load_if(revision.input, InterpretationInput)
    for policy in frozen.stages if frozen else ():
        log = AttemptLog(package, revision, policy.stage)
        for attempt in log.all():
            if attempt.outcome is not None:  # an attempt that nobody decided has nothing to say yet
                yield _recorded(package, log, policy.stage, attempt)


def _recorded(package: Package, log: AttemptLog, stage: str, attempt: Attempt) -> RecordedAttempt:
    outcome, number = attempt.outcome, attempt.number
    assert outcome is not None  # noqa: S101  # the caller asked
    body = package.read(log.path(number, NATIVE_BODY))
    return RecordedAttempt(
        stage=stage,
        attempt=number,
        request=recorded_request(package.load(log.path(number, REQUEST), ModelRequest)),
        native=None if body is None else package.load(log.path(number, NATIVE), NativeRecord),
        body=None if body is None else base64.b64encode(body).decode("ascii"),
        reply=package.load_if(log.path(number, REPLY), ModelReply),
        outcome=RecordedOutcome(
            kind=outcome.kind,
            code=outcome.code,
            message=outcome.message,
            retryable=outcome.retryable,
            retry_after_ms=outcome.retry_after_ms,
        ),
    )


def _unusable(source: Path, found: str) -> SettingsError:
    return SettingsError("REPLAY_SOURCE", path=str(source), found=found)
