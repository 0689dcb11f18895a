"""Our own rules and readers pass the suites that plugin authors use."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from casebound.contracts.findings import Finding
from casebound.host import build_host
from casebound.specs import RuleRef
from casebound.testing.conformance.reader import ReaderConformance
from casebound.testing.conformance.validator import Judged, ValidatorConformance
from casebound.testing.goldens import golden_versions

HOST = build_host(entry_points=())
GOLDEN = Path(__file__).parents[2] / "tests" / "golden" / "protocols"


def judged_by(validator):
    """Return what the golden replies of the versions that name a rule hold for it: silence, or its findings."""
    for version in golden_versions(GOLDEN):
        rules = HOST.protocols[version.stage, version.number].rules
        if version.stage != validator.stage or RuleRef(validator.code, validator.revision) not in rules:
            continue
        contexts = {name: json.loads(version.files()[f"{name}/context.json"]) for name in version.situations()}
        for path, golden in version.replies():
            if not path.startswith(("replies/rule-", "replies/valid-")):
                continue
            findings = [
                Finding.model_validate(found, strict=False) for found in json.loads(version.files()[path])["findings"]
            ]
            own = [finding.path for finding in findings if finding.code == validator.code]
            reply = json.loads(golden.reply.text)
            if not findings or own:
                yield Judged(reply, contexts[golden.situation], own[0] if own else None)


@pytest.mark.parametrize("name", sorted(HOST.validators), ids=lambda name: f"{name[1]}-{name[2]}-{name[0]}")
class TestOurRules(ValidatorConformance):
    @pytest.fixture
    def validator(self, name):
        return HOST.validators[name]

    @pytest.fixture
    def holding(self, validator):
        return [case for case in judged_by(validator) if case.path is None]

    @pytest.fixture
    def breaking(self, validator):
        return [case for case in judged_by(validator) if case.path is not None]


class TestText(ReaderConformance):
    @pytest.fixture
    def reader(self):
        return HOST.readers["text"]

    @pytest.fixture
    def samples(self):
        return ["one line", "a\r\n\r\nb\r\n", "\ufeffmark", "e\u0301 \U0001f600 \u202eabc\n\n\n- x\n"]


class TestMarkdown(ReaderConformance):
    broken = ("---\nid: a\nid: b\n---\nbody", "---\ntitle: |\n  two\n  lines\n---\nbody")

    @pytest.fixture
    def reader(self):
        return HOST.readers["markdown"]

    @pytest.fixture
    def samples(self):
        return [
            "---\nid: a\ntitle: T\n---\n# Steps\n\n1. x\n2. y\n",
            "# T\r\n\r\nbody <!-- hidden -->\r\n\r\n* one\r\n* two",
            "plain e\u0301 \U0001f600",
        ]


class TestJson(ReaderConformance):
    broken = ("{", "[]", '{"title": 1}', '{"title": "a", "title": "b"}', '{"unknown": "x"}')

    @pytest.fixture
    def reader(self):
        return HOST.readers["json"]

    @pytest.fixture
    def samples(self):
        return [
            '{"title": "T", "body": "b\\n\\nc", "comments": ["d"], "expectations": ["e"]}',
            '{"id": "a", "body": "\\ud83d\\ude00 e\\u0301"}',
            '{"body": "b", "expectations": [{"text": "x", "provenance": "external_research"}]}',
        ]


class TestRecord(ReaderConformance):
    broken = (
        "{",
        "[]",
        '{"body": 1}',
        '{"body": "a", "body": "b"}',
        '{"unknown": "x"}',
        '{"body": "a"}\n{"body": "b"}',
    )

    @pytest.fixture
    def reader(self):
        return HOST.readers["record"]

    @pytest.fixture
    def samples(self):
        return [
            '{"id": "a", "body": "\\ud83d\\ude00 e\\u0301", "labels": ["x"]}',
            '{"title": "T", "expectations": ["e"]}',
        ]


class TestGithub(ReaderConformance):
    broken = ("{", "[]", "{}", '{"number": 1, "title": "t"}', '{"number": 2, "url": "https://h/o/r/issues/1"}')

    @pytest.fixture
    def reader(self):
        return HOST.readers["github"]

    @pytest.fixture
    def samples(self):
        url = '"url": "https://github.com/o/r/issues/1"'
        return [
            f'{{"number": 1, {url}, "title": "T", "body": "b\\r\\n\\r\\nc", "comments": [{{"body": "d"}}]}}',
            f'{{"number": 1, {url}, "title": "T", "body": null, "comments": 3, "user": {{"login": "x"}}}}',
        ]
