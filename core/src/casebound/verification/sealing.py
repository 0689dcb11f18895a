"""Which files may be there, and what the seals say of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress

from casebound.canonical import digest_of
from casebound.contracts.interpretation import Seal
from casebound.store.layout import INTERPRETATIONS, STAGES_OF_RESOLUTION, Revision, is_sealed
from casebound.verification.evidence import Evidence, Stop

_CAPTURE = r"captures/sha256-[0-9a-f]{64}\.json"
_ATTEMPTS = r"attempts/({0})-[0-9]{{4,}}/((request|native|reply|outcome)\.json|native\.bin)"
_CONVERSATION = rf"feedback-({{0}})-[0-9]{{{{4,}}}}\.json|{_ATTEMPTS}"
_KNOWN = re.compile(
    r"^(package|admission|build|case)\.json$"
    r"|^source/report(\.[a-z0-9]{1,16})?$"
    rf"|^research/(facts\.json|{_CAPTURE})$"
    r"|^analysis/interpretations/[0-9]{4,}/("
    r"(input|context|interpretation|hypothesis-context|seal)\.json|summary\.md|events/[0-9]{4,}\.json"
    rf"|{_CONVERSATION.format('interpretation')}"
    r"|entity-resolution/((input|plan|candidates|assessment)\.json"
    rf"|{_CAPTURE}|{_CONVERSATION.format('|'.join(STAGES_OF_RESOLUTION))}))$"
)
_KNOWN_FOLDER = re.compile(
    r"^(source|research(/captures)?|analysis(/interpretations(/[0-9]{4,}(/events|(/entity-resolution)?"
    r"(/captures|/attempts(/[a-z]+-[0-9]{4,})?)?)?)?)?)/$"
)


def is_foreign(path: str) -> bool:
    """Tell whether a plugin's phase answers for `path`, and nobody else."""
    return path.startswith("analysis/") and not path.startswith(f"{INTERPRETATIONS}/")


def verify_files(evidence: Evidence, revisions: Sequence[Revision]) -> None:
    """Note files that have no place in a package, and everything that a seal says otherwise."""
    for path in evidence.paths:
        if is_foreign(path):
            continue
        if not _KNOWN.match(path):
            evidence.note("VERIFY_EXTRA", path, "nothing of a package has this name")
        if evidence.content(path) is None:
            evidence.note("WORKSPACE_LINK", path, "a link, or something that is no file")
    for folder in evidence.folders:
        if not is_foreign(folder) and not _KNOWN_FOLDER.match(folder):
            evidence.note("VERIFY_EXTRA", folder, "nothing of a package has this name")
    for revision in revisions:
        if evidence.has(revision.seal):
            with suppress(Stop):  # noted
                _verify_seal(evidence, revision)


def verify_explained(evidence: Evidence) -> None:
    """Note what nothing in the package leads to, once everything else was derived."""
    for path in evidence.unexplained():
        if not is_foreign(path):
            evidence.note("VERIFY_EXTRA", path, "nothing in the package leads to it")


def _verify_seal(evidence: Evidence, revision: Revision) -> None:
    seal = evidence.load(revision.seal, Seal)
    listed = {file.path: file for file in seal.files}
    evidence.expect(revision.seal, "/files", [file.path for file in seal.files], sorted(listed))
    for number, file in enumerate(seal.files):
        if not evidence.has(file.path):
            evidence.note("STORE_MISSING", file.path, "it is sealed, and missing")
            continue
        seen = evidence.seen(file.path)
        if seen is not None and seen != (file.size, file.digest):
            said = f"it is not what {revision.seal} says at /files/{number}"
            evidence.note("STORE_DIGEST", file.path, said + _why(evidence.content(file.path) or b"", file.digest))
        if not is_sealed(file.path, revision):
            evidence.note("VERIFY_EXTRA", revision.seal, "it covers what it may not cover", f"/files/{number}")
    for path in evidence.paths:
        if is_sealed(path, revision) and path not in listed:
            evidence.note("VERIFY_EXTRA", path, f"{revision.seal} does not know it")


def _why(data: bytes, digest: str) -> str:
    """Return a hint where only line ends were converted, as a checkout or a mail program does."""
    unix = data.replace(b"\r\n", b"\n")
    if digest in (digest_of(unix), digest_of(unix.replace(b"\n", b"\r\n"))):
        return "; its line ends were converted: copy packages as binary (in Git: `-text` in .gitattributes)"
    return ""
