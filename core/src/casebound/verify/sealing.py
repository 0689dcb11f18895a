"""Which files may be there, and what the seals say of them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from casebound.canonical import digest_of
from casebound.contracts.interpretation import Seal
from casebound.pipeline import is_sealed
from casebound.store.layout import Revision
from casebound.verify.evidence import Evidence, Stop

_CAPTURE = r"captures/sha256-[0-9a-f]{64}\.json"
_ATTEMPT = r"attempts/[a-z_]+-[0-9]{4,}/(request|native|reply|outcome)\.json|attempts/[a-z_]+-[0-9]{4,}/native\.bin"
_KNOWN = re.compile(
    r"^(package|admission|build|case)\.json$"
    r"|^source/report(\.[a-z0-9]{1,16})?$"
    rf"|^research/(facts\.json|{_CAPTURE})$"
    r"|^analysis/interpretations/[0-9]{4,}/("
    r"(input|context|interpretation|hypothesis-context|seal)\.json|summary\.md|events/[0-9]{4,}\.json"
    rf"|feedback-[a-z_]+-[0-9]{{4,}}\.json|{_ATTEMPT}"
    r"|entity-resolution/((input|plan|candidates|assessment)\.json"
    rf"|feedback-[a-z_]+-[0-9]{{4,}}\.json|{_CAPTURE}|{_ATTEMPT}))$"
)


def verify_files(evidence: Evidence, revisions: Sequence[Revision]) -> None:
    """Note files that have no place in a package, and everything that a seal says otherwise."""
    for path in evidence.paths:
        foreign = path.startswith("analysis/") and not path.startswith("analysis/interpretations/")
        if not foreign and not _KNOWN.match(path):
            evidence.note("VERIFY_EXTRA", path, "nothing of a package has this name")
        if (evidence.package.root / path).is_symlink():
            evidence.note("WORKSPACE_LINK", path, "a link, where a file must stand")
    for revision in revisions:
        if evidence.has(revision.seal):
            try:
                _verify_seal(evidence, revision)
            except Stop:
                continue


def _verify_seal(evidence: Evidence, revision: Revision) -> None:
    seal = evidence.load(revision.seal, Seal)
    listed = {file.path: file for file in seal.files}
    evidence.expect(revision.seal, "/files", [file.path for file in seal.files], sorted(listed))
    for number, file in enumerate(seal.files):
        if not evidence.has(file.path):
            evidence.note("STORE_MISSING", file.path, "it is sealed, and missing")
            continue
        try:
            data = evidence.data(file.path)
        except Stop:
            continue
        if (len(data), digest_of(data)) != (file.size, file.digest):
            evidence.note("STORE_DIGEST", file.path, f"it is not what {revision.seal} says at /files/{number}")
        if not is_sealed(file.path, revision):
            evidence.note("VERIFY_EXTRA", revision.seal, "it covers what it may not cover", f"/files/{number}")
    for path in evidence.paths:
        if is_sealed(path, revision) and path not in listed:
            evidence.note("VERIFY_EXTRA", path, f"{revision.seal} does not know it")
