"""What a link is made of on disk: its input, the accepted suggestion, and what people decided.

The three say three different things and none is derived from another: a suggestion was admitted, a person accepted or
rejected it, and nobody has judged its quality.
"""

from __future__ import annotations

from typing import Any, Literal

from casebound.canonical import canonical_bytes, digest_of
from casebound.contracts.base import Artifact, Contract, Digest, SafeName, Time
from casebound.contracts.interpretation import SealedFile, StagePolicy


class LinkedEntity(Contract):
    """One side: an entity of a finished case, bound by the seal of the interpretation that it is taken from.

    Attributes:
        package_id, case_id: of the case; the package lies in the same workspace.
        seal: path of the seal inside the package, which also says which interpretation it is.
        seal_digest: digest of that seal.
        entity: its alias in the package (`E0001`, `N0001`).
        type, canonical_id: its typed id.
        mentions: aliases of the sources that are shown, of those that mention it, in order.
    """

    package_id: SafeName
    case_id: SafeName
    seal: str
    seal_digest: Digest
    entity: str
    type: str
    canonical_id: str
    mentions: tuple[str, ...]


class LinkInput(Artifact):
    """`input.json`: all that a suggestion may rest on, and who is asked, frozen before the first call.

    It holds no time, so that the same proposal under the same settings is the same link (`question`).

    Attributes:
        context: what the model sees of both sides, as its protocol made it.
    """

    format: Literal["casebound-link-input/v1"] = "casebound-link-input/v1"
    left: LinkedEntity
    right: LinkedEntity
    policy: StagePolicy
    context: dict[str, Any]

    @property
    def question(self) -> Digest:
        """The digest of what is asked, and of whom: the input without the versions of distributions.

        It names the link. So an upgrade asks nobody anew; the input that stands there first is the one that counts.
        """
        return digest_of(canonical_bytes({**self.to_json(), "policy": _without_versions(self.policy.to_json())}))


def _without_versions(value: Any) -> Any:  # noqa: ANN401  # any JSON value
    """Return `value` with the name alone of every distribution that offers something."""
    if isinstance(value, list):
        return [_without_versions(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: part["distribution"] if key == "offered_by" else _without_versions(part) for key, part in value.items()
    }


class Suggestion(Artifact):
    """`suggestion.json`: the admitted reply, verbatim. It is a suggestion: nothing is merged by it.

    Attributes:
        files: everything that stood in the folder when the reply was admitted, by path: input, attempts, feedback
            and events.
    """

    format: Literal["casebound-link-suggestion/v1"] = "casebound-link-suggestion/v1"
    prompt_id: str
    contract: str | None
    input_digest: Digest
    reply: dict[str, Any]
    files: tuple[SealedFile, ...]

    @property
    def assessment(self) -> str:
        """What the reply says: `same_object`, `different_objects` or `insufficient_evidence`."""
        return str(self.reply["assessment"])


Verdict = Literal["accepted", "rejected"]


class Decision(Artifact):
    """`decisions/NNNN.json`: what a person decided about the suggestion; append only, the last one counts.

    Attributes:
        decided_by: the person, as he names himself; nothing here proves who he is.
        suggestion: digest of `suggestion.json`.
        supersedes: digest of the decision before, None for the first.
    """

    format: Literal["casebound-link-decision/v1"] = "casebound-link-decision/v1"
    decision: Verdict
    rationale: str
    decided_by: str
    at: Time
    suggestion: Digest
    supersedes: Digest | None
