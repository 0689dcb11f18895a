"""Issues as `gh` and the REST interface export them."""

import json

import pytest
from casebound.contracts.case import Report
from casebound.errors import SettingsError
from casebound.intake.readers import github, record

OF_GH = {
    "author": {"id": "MDQ6", "is_bot": False, "login": "reporter"},
    "body": "The gateway is down.\r\n",
    "comments": [
        {
            "id": "IC_1",
            "author": {"login": "other"},
            "authorAssociation": "MEMBER",
            "body": "Same here.",
            "createdAt": "2026-03-01T10:00:00Z",
            "includesCreatedEdit": False,
            "isMinimized": False,
            "minimizedReason": "",
            "reactionGroups": [],
            "url": "https://github.com/acme/router/issues/12#issuecomment-1",
            "viewerDidAuthor": False,
        }
    ],
    "createdAt": "2026-03-01T09:00:00Z",
    "id": "I_kwDO",
    "labels": [{"id": "LA", "name": "bug", "color": "d73a4a"}],
    "number": 12,
    "state": "OPEN",
    "title": "Gateway down",
    "url": "https://github.com/acme/router/issues/12",
}
OF_REST = {
    "url": "https://api.github.com/repos/acme/router/issues/12",
    "repository_url": "https://api.github.com/repos/acme/router",
    "comments_url": "https://api.github.com/repos/acme/router/issues/12/comments",
    "html_url": "https://github.com/acme/router/issues/12",
    "id": 1234567890,
    "node_id": "I_kwDO",
    "number": 12,
    "title": "Gateway down",
    "user": {"login": "reporter", "id": 5, "site_admin": False},
    "labels": [{"id": 1, "name": "bug", "default": True}],
    "state": "open",
    "comments": 3,
    "created_at": "2026-03-01T09:00:00Z",
    "body": None,
    "performed_via_github_app": None,
    "score": 1.0,
}
OF_REST_COMMENT = {
    "url": "https://api.github.com/repos/acme/router/issues/comments/1",
    "issue_url": "https://api.github.com/repos/acme/router/issues/12",
    "id": 1,
    "user": {"login": "other"},
    "body": "Same here.",
    "performed_via_github_app": None,
}


def read(issue, **changes):
    return github.read(json.dumps(issue | changes))


def refusal(text, read=github.read):
    with pytest.raises(SettingsError) as caught:
        read(text)
    assert caught.value.code == "REPORT_SYNTAX"
    return caught.value


def test_an_export_of_gh_is_a_report_with_its_comments():
    assert read(OF_GH) == Report(
        case_id="router#12", title="Gateway down", body="The gateway is down.\r\n", comments=("Same here.",)
    )


def test_what_rest_returns_is_a_report_without_the_comments_that_it_only_counts():
    assert read(OF_REST) == Report(case_id="router#12", title="Gateway down")
    assert github.missing_comments(OF_REST) == 3
    assert github.missing_comments(OF_GH) == github.missing_comments(OF_REST | {"comments": 0}) == 0
    fetched = read(OF_REST, comments=[OF_REST_COMMENT, OF_REST_COMMENT | {"body": None}, "a text"])
    assert fetched.comments == ("Same here.", "", "a text")


@pytest.mark.parametrize(
    "address",
    [
        "https://github.com/acme/router/issues/12",
        "https://github.com/acme/router/pull/12",
        "https://github.com/acme/router/issues/12#issuecomment-1",
        "https://api.github.com/repos/acme/router/issues/12",
        "https://ghe.example/api/v3/repos/acme/router/issues/12",
        "http://127.0.0.1:3000/acme/router/issues/12",
    ],
)
def test_the_repository_is_read_from_the_address_without_its_owner(address):
    gh = {key: value for key, value in OF_GH.items() if key != "url"}
    assert read(gh, url=address).case_id == "router#12"
    assert read(OF_GH, html_url=address).case_id == "router#12"


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"number": 13}, "/number"),
        ({"number": "12"}, "/number"),
        ({"number": True}, "/number"),
        ({"url": "https://github.com/acme/router"}, "/url"),
        ({"url": "https://github.com/acme/router/issues/" + "9" * 5000}, "/number"),
        ({"url": "router#12"}, "/url"),
        ({"url": None}, "/url"),
        ({"url": 12}, "/url"),
        ({"html_url": "x"}, "/html_url"),
        ({"title": 12}, "/title"),
        ({"title": "a\nb"}, "/title"),
        ({"body": ["a"]}, "/body"),
        ({"comments": True}, "/comments"),
        ({"comments": "a"}, "/comments"),
        ({"comments": [3]}, "/comments/0"),
        ({"comments": [{"body": 3}]}, "/comments/0/body"),
    ],
)
def test_an_issue_of_another_form_is_refused_with_its_pointer(changes, pointer):
    assert refusal(json.dumps(OF_GH | changes)).pointer == pointer


def test_an_issue_without_its_address_is_told_how_to_export_it():
    error = refusal(json.dumps({"number": 12, "title": "t", "body": "b"}))
    assert "--json number,title,body,comments,url" in error.hint


def test_a_comment_alone_is_no_report():
    assert "comment without its issue" in refusal(json.dumps(OF_REST_COMMENT)).found


@pytest.mark.parametrize("text", ['{"number": 1, "number": 2}', "[]", "{", '{"number": NaN}'])
def test_strictness_is_that_of_every_json(text):
    refusal(text)


def test_issues_comments_and_pull_requests_are_told_from_other_records():
    assert all(map(github.is_issue, (OF_GH, OF_REST, OF_REST_COMMENT, {"number": 1, "title": "t"})))
    others = ({"id": "INC-1", "number": 5, "body": "b"}, {"number": "INC-1", "url": "u"}, {"title": "t"}, {})
    assert not any(map(github.is_issue, others))
    assert github.is_pull_request(OF_REST | {"pull_request": {"url": "u"}})
    assert github.is_pull_request(OF_GH | {"isPullRequest": True})
    assert not github.is_pull_request(OF_REST | {"pull_request": None})


# --- records ----------------------------------------------------------------------------------------------------------


def test_a_record_with_a_body_may_say_more_than_a_report():
    text = '{"id": "a", "title": "t", "body": "b", "comments": ["c"], "labels": ["x"], "score": 1.5}'
    assert record.read(text) == Report(case_id="a", title="t", body="b", comments=("c",))


def test_a_record_without_a_body_hides_no_text_under_another_key():
    assert refusal('{"id": "a", "title": "t", "description": "b"}', record.read).pointer == "/description"
    assert record.read('{"id": "a", "title": "t"}') == Report(case_id="a", title="t")


def test_several_lines_are_told_what_takes_them():
    assert "casebound import" in refusal('{"body": "a"}\n{"body": "b"}\n', record.read).hint
    assert "casebound import" not in refusal('{"body": "a"', record.read).hint
