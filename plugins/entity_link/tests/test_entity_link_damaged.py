"""Nothing is built on a link that does not hold, and one that cannot be read hides no other."""

from __future__ import annotations

import json
import os

import pytest
from casebound.canonical import canonical_bytes
from casebound.errors import CaseboundError, IntegrityError, ProviderError
from casebound_entity_link.figures import derive_figures
from casebound_entity_link.link import Damaged

NATIVE = "attempts/entity_link-0001/native.bin"


def edit(path, **changed):
    path.write_bytes(canonical_bytes({**json.loads(path.read_bytes()), **changed}))


def edit_suggestion(root):
    path = root / "suggestion.json"
    reply = {**json.loads(path.read_bytes())["reply"], "assessment": "same_object"}
    edit(path, reply=reply)


def truncate(root):
    (root / NATIVE).write_bytes((root / NATIVE).read_bytes()[:-1])


def put_a_pipe(root):
    (root / NATIVE).unlink()
    os.mkfifo(root / NATIVE)


DAMAGES = {
    "an edited suggestion": edit_suggestion,
    "truncated native bytes": truncate,
    "no native bytes": lambda root: (root / NATIVE).unlink(),
    "a pipe for native bytes": put_a_pipe,
    "a decision about another suggestion": lambda root: edit(
        root / "decisions/0001.json", suggestion="sha256:" + "0" * 64
    ),
    "no input": lambda root: (root / "input.json").unlink(),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_nothing_is_built_on_a_link_that_does_not_hold(pair, damage):
    link = pair.propose()
    pair.journal().decide(link.name, "accepted", rationale="looked at it", by="Kim")
    DAMAGES[damage](link.package.root)
    before = sorted(link.package.paths())
    for attempt in (
        lambda: pair.journal().decide(link.name, "rejected", rationale="looked again", by="Kim"),
        lambda: pair.propose(),
    ):
        with pytest.raises(IntegrityError) as caught:
            attempt()
        assert caught.value.code == "ENTITY_LINK_DAMAGED"
        assert caught.value.path.startswith(f"{link.package.root}/")
    assert sorted(link.package.paths()) == before
    assert len(pair.calls()) == 1


def test_an_unfinished_link_that_does_not_hold_does_not_go_on(pair):
    link = pair.propose("no JSON", ProviderError("LLM_UNAVAILABLE", retryable=True))
    pair.inventory.clock.advance(61)
    truncate(link.package.root)
    with pytest.raises(IntegrityError) as caught:
        pair.propose()
    file = f"{link.package.root}/attempts/entity_link-0001/native.json"  # which says what the bytes were
    assert (caught.value.code, caught.value.path) == ("ENTITY_LINK_DAMAGED", file)
    assert len(pair.calls()) == 2


def test_a_decision_does_not_need_the_packages_of_the_sides(pair):
    link = pair.propose()
    (pair.inventory.workspace / "cases" / "INC-8" / "analysis/interpretations/0001/seal.json").unlink()
    assert pair.verify(link).answer == "does_not_hold"
    pair.journal().decide(link.name, "accepted", rationale="looked at it", by="Kim")
    assert len(link.decisions()) == 1


def make_a_link(root):
    kept = root.with_name("elsewhere")
    root.rename(kept)
    root.symlink_to(kept)


@pytest.mark.parametrize(
    ("break_", "code"),
    [
        (lambda root: (root / "input.json").write_bytes(b""), "STORE_JSON"),
        (lambda root: (root / "input.json").unlink(), "STORE_MISSING"),
        (lambda root: (root / "suggestion.json").write_bytes(b"{}"), "STORE_JSON"),
        (make_a_link, "WORKSPACE_LINK"),
    ],
)
def test_a_link_that_cannot_be_read_is_told_and_the_others_are_there(pair, break_, code):
    broken, whole = pair.propose(), pair.propose(sides=pair.sides[::-1])
    break_(broken.package.root)
    found = {one.link.name if isinstance(one, Damaged) else one.name: one for one in pair.journal().survey()}
    assert found.keys() == {broken.name, whole.name}
    line = found[broken.name].to_json()
    assert (line["state"], line["code"], line["folder"]) == ("does_not_hold", code, str(broken.package.root))
    assert str(broken.package.root) in line["error"]
    assert line.keys() == found[whole.name].to_json().keys()
    assert derive_figures([found[whole.name]])["reviews"]["links"] == 1


def test_an_empty_folder_is_no_link(pair):
    (pair.root / ("sha256-" + "0" * 64)).mkdir(parents=True)
    assert list(pair.journal().survey()) == []


def test_an_error_about_a_file_of_a_link_names_its_whole_path(pair):
    link = pair.propose()
    (link.package.root / "input.json").write_bytes(b"")
    with pytest.raises(CaseboundError) as caught:
        next(pair.journal().links()).to_json()
    assert (caught.value.code, caught.value.path) == ("STORE_JSON", f"{link.package.root}/input.json")
    assert f"{link.package.root}/input.json" in str(caught.value)
