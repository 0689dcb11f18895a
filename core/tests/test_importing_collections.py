"""What one file may hold, by its name or by its beginning."""

import io
import json

import pytest
from casebound.errors import SettingsError
from casebound.host import build_host
from casebound.intake.admission import admit_as
from casebound.workspace.collections import PassedOver, Refused, Stream, reports_in

READERS = build_host(entry_points=()).readers
ISSUE = {"number": 1, "title": "t", "body": "b", "url": "https://github.com/o/r/issues/1", "comments": []}
MANY = 'a[{"]\\' * 20000


def items(data, name=None, *, max_bytes=1000):
    return list(reports_in(Stream(io.BytesIO(data), lambda size: None), name, READERS, max_bytes))


def found(data, name=None, **more):
    """Return name, place, reader and bytes of each report."""
    return [(item.name, item.place, item.reader.name, item.data) for item in items(data, name, **more)]


def dumped(value):
    return json.dumps(value).encode()


def test_each_line_of_json_lines_is_a_report_of_its_own_bytes():
    issue = dumped(ISSUE)
    data = b'\xef\xbb\xbf{"body": "a"}\r\n\n ' + issue + b'\n{"body": "c'
    assert found(data, "x/lines.JSONL") == [
        ("x/lines.JSONL", "line 1", "record", b'{"body": "a"}'),
        ("x/lines.JSONL", "line 3", "github", issue),
        ("x/lines.JSONL", "line 4", "record", b'{"body": "c'),
    ]


def test_each_element_of_an_array_is_a_report_and_pages_are_taken_apart():
    issue = dumped(ISSUE)
    data = b'\n[ {"body": "a"},\n[' + issue + b", [1]], 5]"
    assert found(data, "issues.json") == [
        ("issues.json", "element 1", "record", b'{"body": "a"}'),
        ("issues.json", "element 2, element 1", "github", issue),
        ("issues.json", "element 2, element 2", "record", b"[1]"),
        ("issues.json", "element 3", "record", b"5"),
    ]


def test_a_page_that_does_not_hold_is_refused_and_the_next_one_read():
    first, page, last = items(b'[[{"body": "a"}] , [1}, {"body": "c"}]', "a.json")
    assert (first.place, last.place) == ("element 1, element 1", "element 3")
    assert (page.place, page.error.code, page.error.found) == ("element 2", "REPORT_SYNTAX", "the sign }")


def test_other_files_hold_one_report():
    assert found(b"[x] a\n", "a.md") == [("a.md", "", "markdown", b"[x] a\n")]
    assert found(b'[{"a": 1}]', "a.txt") == [("a.txt", "", "text", b'[{"a": 1}]')]
    assert found(b'\xef\xbb\xbf {"body": "a"}', "a.json") == [("a.json", "", "json", b'\xef\xbb\xbf {"body": "a"}')]
    assert found(dumped(ISSUE), "a.json")[0][2] == "github"
    assert found(b"{}", "a.github.json")[0][2] == "github"
    assert found(b'{"number": 1, "number": 2}', "a.json")[0][2] == "json"  # which refuses it


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b'[{"body": "a"}]', "stdin.json"),
        (b'\xef\xbb\xbf\r\n [\n [ {"body": "a"}]]', "stdin.json"),
        (b'{"body": "a"}', "stdin.jsonl"),
        (b'{"body": "a"}\n{"body": "b"}\n', "stdin.jsonl"),
        (b'{"body": "torn\n{"body": "b"}\n', "stdin.jsonl"),
        (b'{\n  "body": "a"\n}\n', "stdin.json"),
        (b'{"id": "a",\n "body": "a"}\n', "stdin.json"),
        (b'{"body":\n"a"}', "stdin.json"),
        (b"# Title\n\nText", "stdin.md"),
        (b"[Quest] does not start", "stdin.md"),
        (b"[[wiki]] page", "stdin.md"),
        (b"{code}\nx\n{code}", "stdin.md"),
        (b"[] a box", "stdin.md"),
        (b"", "stdin.md"),
    ],
)
def test_standard_input_shows_what_it_is(data, name):
    assert {item.name for item in items(data)} == {name}


@pytest.mark.parametrize("data", [b"[]", b" [ ] \n", b"[\n"])
def test_an_empty_array_on_standard_input_holds_nothing(data):
    assert [item for item in items(data) if not isinstance(item, Refused)] == []


def test_a_look_ahead_needs_no_whole_reads():
    class Dribble(io.BytesIO):
        def readinto(self, buffer):
            return super().readinto(buffer[:1])

    data = b'[{"body": "a"}, {"body": "b"}]'
    stream = Stream(Dribble(data), lambda size: None)
    assert [item.data for item in reports_in(stream, None, READERS, 1000)] == [b'{"body": "a"}', b'{"body": "b"}']


def test_pull_requests_are_passed_over_and_comments_that_are_missing_counted():
    pull = ISSUE | {"pull_request": {"url": "u"}}
    first, second = items(dumped([pull, ISSUE | {"comments": 4}]), "a.json")
    assert first == PassedOver("a.json", "element 1")
    assert second.missing_comments == 4


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.md", None])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_wide_encodings_are_refused_once(name, encoding):
    def take():
        (item,) = items('[{"body": "a"}]\n'.encode(encoding), name)
        admit_as(item.reader, item.data, name=item.name)

    with pytest.raises(SettingsError) as caught:
        take()
    assert caught.value.code == "REPORT_ENCODING"


def test_a_report_that_is_too_large_is_refused_before_it_is_held():
    large = dumped({"body": MANY})
    small = b'{"body": "b"}'
    for data, name in ((b"[" + large + b"," + small + b"]", "a.json"), (large + b"\n" + small, "a.jsonl")):
        first, second = items(data, name)
        assert (first.error.code, second.data) == ("REPORT_TOO_LARGE", small)
    for name in ("a.md", "one.json"):
        with pytest.raises(SettingsError) as caught:
            items(large, name)
        assert caught.value.code == "REPORT_TOO_LARGE"


def test_a_file_that_nobody_reads_is_refused_by_its_name():
    with pytest.raises(SettingsError) as caught:
        items(b"x", "a.docx")
    assert caught.value.code == "REPORT_FORMAT"


def test_bytes_are_counted_as_they_are_read():
    counted = []
    data = b'{"body": "a"}\n' * 20000
    stream = Stream(io.BytesIO(data), counted.append)
    next(reports := reports_in(stream, "a.jsonl", READERS, 1000))
    assert 0 < sum(counted) < len(data)
    assert len(list(reports)) == 19999
    assert sum(counted) == len(data)
