"""`summary.md`: every label that limits a claim, and data that stays data."""

from __future__ import annotations

import pytest
from casebound.contracts.case import Case, ExpectedBehavior, Fields
from casebound.contracts.interpretation import Interpretation, InterpretationContext
from casebound.interpretation.summary import derive_summary

ZERO = "sha256:" + "0" * 64


def said(text, *source_ids, **labels):
    return {"text": text, "source_ids": list(source_ids), **labels}


def summary(title="A title", text="It fails.", name="node-1", number="7"):
    entity = {
        "id": "N0001",
        "type": "host",
        "canonical_id": number,
        "name_bindings": [],
        "lookup_associations": [
            {"name": name, "role": "affected_subject", "role_basis": "model_contextual_selection_not_causation"}
        ],
    }
    case = Case(
        case_id="c-1",
        source_digest=ZERO,
        build_digest=ZERO,
        fields=Fields(title=title, body="", comments=(), expectations=()),
        sources=(),
        entities=(),
        expected_behavior=ExpectedBehavior(completeness="not_established", provenance=()),
        unknowns=(),
    )
    sources = [
        {"id": "S0001", "kind": "observation", "text": text},
        {"id": "P0001", "kind": "project_description", "text": "d"},
    ]
    context = InterpretationContext(
        policy="p",
        prompt_id="case_interpretation_resolved_v6",
        input_digest=ZERO,
        basis=ZERO,
        context={"entities": [entity], "sources": sources},
    )
    reply = {
        "summary": said(text, "S0001"),
        "observed_behavior": [said(text, "S0001")],
        "expected_behavior": [],
        "behavior_gap": None,
        "first_known_divergence": None,
        "described_behavior": [
            said("It should run.", "P0001", basis="local_description", verification="not_independently_verified")
        ],
        "provisional_behavior_gap": said(
            "It runs not.", "S0001", "P0001", basis="local_description", status="provisional"
        ),
        "relevant_entities": [{"entity_id": "N0001", "reason": "named", "source_ids": ["S0001", "N0001"]}],
        "unknowns": [said("Who stopped it?", "S0001")],
    }
    interpretation = Interpretation(
        contract="case-interpretation-quality-output-v1", prompt_id="x", context_digest=ZERO, reply=reply
    )
    return derive_summary(case, context, interpretation).decode()


@pytest.mark.spec("A-147b", "A-087", "A-146f", "A-147d")
def test_descriptions_and_provisional_gaps_carry_their_labels():
    text = summary()
    assert "## Described by the project's database (local description, not independently verified)" in text
    assert "## Provisional gap (against a local description, provisional)" in text
    assert r"role: affected\_subject \(model\_contextual\_selection\_not\_causation\)" in text
    assert "## Formally expected" not in text
    assert "## Gap" not in text


@pytest.mark.parametrize("hidden", ["\u00a0", "\u2028", "\u3000", "\u200b", "\u202e", "\x1b"])
def test_hidden_characters_are_shown_and_never_folded_away(hidden):
    assert f"⟦U+{ord(hidden):04X}⟧" in summary(text=f"It{hidden}fails")


@pytest.mark.parametrize(
    "place", [{"title": "[x](http://e) # **b**"}, {"text": "<img src=x> | `c`"}, {"name": "*n*\n# x"}]
)
def test_data_is_no_markup(place):
    [value] = place.values()
    text = summary(**place)
    assert value not in text
    assert "\n# x" not in text
    assert "<img" not in text.replace("\\<", "")
    assert "[x](" not in text


def test_an_id_can_not_leave_its_code_span():
    assert "`7⟦U+0060⟧ \\[x\\]" not in summary(number="7` [x](y)")
    assert "`7⟦U+0060⟧ [x](y)`" in summary(number="7` [x](y)")
