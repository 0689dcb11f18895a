import os
import threading

import pytest
from casebound.canonical import digest_of
from casebound.contracts.case import Admission, Report
from casebound.errors import CaseboundError, PluginError, SettingsError
from casebound.intake.admission import admit, check_duplicate, check_size, choose_reader, decode_report, read_report
from casebound.intake.builtin import READERS
from casebound.specs import ReportReader
from casebound.testing.text import ugly_texts
from hypothesis import given
from hypothesis import strategies as st


def take(data, name="report.md", *, max_bytes=1000, package_id=None, readers=READERS):
    return admit(data, name=name, readers=readers, max_bytes=max_bytes, package_id=package_id)


def refusal(data, code, name="report.md", **more):
    with pytest.raises(SettingsError) as caught:
        take(data, name, **more)
    assert caught.value.code == code
    assert caught.value.path
    return caught.value


def test_an_admission_says_what_was_let_in():
    data = b"---\nid: ops#17\n---\nHost 5 is down."
    admission, report = take(data, "/some/where/report-17.md")
    assert report == Report(case_id="ops#17", body="Host 5 is down.")
    assert admission == Admission(
        case_id="ops#17", package_id="ops#17", reader="markdown", file="report-17.md", size=34, digest=digest_of(data)
    )


def test_a_report_without_an_id_is_named_by_its_digest():
    data = b"Host 5 is down."
    admission, _ = take(data)
    assert admission.case_id == admission.package_id == "c-" + digest_of(data)[7:23]
    assert take(data, package_id="second-look")[0].case_id == admission.case_id
    assert take(data, package_id="second-look")[0].package_id == "second-look"


def test_line_ends_are_part_of_the_report_and_of_its_digest():
    unix, windows = take(b"# T\nA\n\nB\n"), take(b"# T\r\nA\r\n\r\nB\r\n")
    assert windows[1].body == "A\r\n\r\nB\r\n"
    assert unix[0].digest != windows[0].digest


# --- size -----------------------------------------------------------------------------------------------------------


def test_the_limit_itself_is_accepted_and_one_byte_more_is_not():
    assert take(b"x" * 10, max_bytes=10)[0].size == 10
    error = refusal(b"x" * 11, "REPORT_TOO_LARGE", max_bytes=10)
    assert "11 bytes" in error.found
    assert "10 bytes" in error.expected


def test_size_is_checked_before_the_bytes_are_looked_at():
    refusal(b"\x00\xff" * 10, "REPORT_TOO_LARGE", max_bytes=10)


def test_a_huge_file_is_refused_from_its_size_alone(tmp_path):
    huge = tmp_path / "huge.md"
    with huge.open("wb") as file:
        file.truncate(1 << 40)  # sparse: reading it would take for ever
    with pytest.raises(SettingsError) as caught:
        read_report(huge, 8 << 20)
    assert caught.value.code == "REPORT_TOO_LARGE"
    assert caught.value.path == str(huge)
    assert caught.value.found == f"at least {1 << 40} bytes"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_a_pipe_that_never_ends_is_cut_at_the_limit(tmp_path):
    pipe = tmp_path / "pipe.md"
    os.mkfifo(pipe)
    written = []

    def pour():
        with pipe.open("wb", buffering=0) as file:
            try:
                while True:
                    written.append(file.write(b"x" * 65536))
            except BrokenPipeError:
                pass

    writer = threading.Thread(target=pour)
    writer.start()
    with pytest.raises(SettingsError) as caught:
        read_report(pipe, 3 << 20)
    writer.join()
    assert caught.value.code == "REPORT_TOO_LARGE"
    assert sum(written) < 6 << 20


def test_reading_gives_the_bytes_unchanged(tmp_path):
    data = b"\xef\xbb\xbfa\r\nb\r\x1a\xff" + os.urandom(3 << 20)
    (tmp_path / "report.md").write_bytes(data)
    assert read_report(tmp_path / "report.md", len(data)) == data


@pytest.mark.parametrize("name", ["missing.md", "."])
def test_what_is_no_file_cannot_be_read(tmp_path, name):
    with pytest.raises(SettingsError) as caught:
        read_report(tmp_path / name, 10)
    assert caught.value.code == "REPORT_UNREADABLE"


def test_check_size_takes_the_limit():
    check_size(10, 10)
    with pytest.raises(SettingsError):
        check_size(11, 10)


# --- bytes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "code", "place"),
    [
        ("naïve".encode("cp1252"), "REPORT_ENCODING", "0xef at byte 2, line 1"),
        (b"a\r\nb\nc \x93quoted\x94", "REPORT_ENCODING", "0x93 at byte 7, line 3"),
        (b"\xef\xbb\xbfab\xff", "REPORT_ENCODING", "0xff at byte 5, line 1"),
        (b"cut off \xe2\x82", "REPORT_ENCODING", "0xe2 at byte 8"),
        (b"overlong \xc0\xaf", "REPORT_ENCODING", "0xc0 at byte 9"),
        (b"surrogate \xed\xa0\x80", "REPORT_ENCODING", "0xed at byte 10"),
        (b"beyond \xf4\x90\x80\x80", "REPORT_ENCODING", "0xf4 at byte 7"),
        ("text".encode("utf-16"), "REPORT_ENCODING", "UTF-16"),
        ("text".encode("utf-32"), "REPORT_ENCODING", "UTF-32"),
        ("text".encode("utf-16-le"), "REPORT_BINARY", "0x00 at byte 1"),
        (b"line\nNUL \x00", "REPORT_BINARY", "0x00 at byte 9, line 2"),
        (b"\x89PNG\r\n\x1a\n", "REPORT_BINARY", "0x1a at byte 6"),
        (b"\x7fELF\x02", "REPORT_BINARY", "0x7f at byte 0"),
        (b"PK\x03\x04", "REPORT_BINARY", "0x03 at byte 2"),
    ],
)
def test_bytes_that_are_no_text_are_refused_with_their_place(data, code, place):
    assert place in refusal(data, code).found


def test_what_terminals_paste_is_text():
    assert take(b"\x1b[31mred\x1b[0m\x07\x08\x0c\x0b\ttext")[1].body == "\x1b[31mred\x1b[0m\x07\x08\x0c\x0b\ttext"


@pytest.mark.parametrize("name", ["r.md", "r.txt", "r.json"])
def test_a_byte_order_mark_is_no_part_of_the_text(name):
    content = b'{"title": "T", "body": "B"}' if name == "r.json" else b"# T\nB" if name == "r.md" else b"T\n\nB"
    admission, report = take(b"\xef\xbb\xbf" + content, name)
    assert (report.title, report.body) == ("T", "B")
    assert admission.size == len(content) + 3
    assert decode_report(b"\xef\xbb\xbf\xef\xbb\xbfa", name=name) == "\ufeffa"


@pytest.mark.parametrize(
    ("content", "where"),
    [
        ('{"body": "a\\u0000"}', "body"),
        ('{"body": "a", "comments": ["b", "\\u007f"]}', "comments[1]"),
        ('{"body": "a", "expectations": [{"text": "b", "reference": "\\u0001"}]}', "expectations[0].reference"),
    ],
)
def test_an_escape_smuggles_no_binary_in(content, where):
    assert refusal(content.encode(), "REPORT_BINARY", "r.json").where == where


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b"", "r.md"),
        (b"\xef\xbb\xbf", "r.txt"),
        (b" \r\n\t\xc2\xa0", "r.md"),
        ("\u200b\u2060\u202e\ufeff".encode(), "r.txt"),
        (b"---\nid: a\ntitle:\n---\n \n", "r.md"),
        (b'{"id": "a", "title": " ", "comments": [" "], "expectations": []}', "r.json"),
        (b'{"expectations": [{"text": "", "reference": "RFC 1"}]}', "r.json"),
    ],
)
def test_a_report_without_text_is_refused(data, name):
    refusal(data, "REPORT_EMPTY", name)


@given(ugly_texts(("---\n", "title: x\n", '{"body": "', '"}')), st.sampled_from(["r.md", "r.txt", "r.json"]))
def test_valid_text_is_admitted_or_refused_by_name(text, name):
    try:
        admission, report = take(text.encode(), name, max_bytes=10**6)
    except CaseboundError as error:
        assert error.code in {"REPORT_SYNTAX", "REPORT_EMPTY", "CASE_ID"}  # noqa: PT017  # either outcome is right
    else:
        assert admission.digest == digest_of(text.encode())
        assert name == "r.json" or text.endswith(report.body)


@given(st.binary(max_size=200))
def test_any_bytes_are_admitted_or_refused_by_name(data):
    try:
        assert take(data)[0].size == len(data)
    except CaseboundError as error:
        assert error.path == "report.md"  # noqa: PT017  # either outcome is right


# --- reader and ids -------------------------------------------------------------------------------------------------


def test_the_ending_chooses_the_reader_and_the_longest_wins():
    readers = [*READERS, ReportReader("export", (".issue.json",), read="casebound.intake.readers.json:read")]
    assert choose_reader("A.MD", readers).name == "markdown"
    assert choose_reader("a.issue.json", readers).name == "export"
    assert choose_reader("C:\\folder\\a.issue.txt", readers).name == "text"


@pytest.mark.parametrize("name", ["report.docx", "report", "folder.md/report", "md"])
def test_other_files_are_refused_with_what_is_accepted(name):
    error = refusal(b"text", "REPORT_FORMAT", name)
    assert error.allowed == (".github.json", ".json", ".jsonl", ".markdown", ".md", ".ndjson", ".text", ".txt")


def test_a_reader_says_where_and_admission_says_which_file():
    error = refusal(b'{"body": "a", "body": "b"}', "REPORT_SYNTAX", "in/r.json")
    assert (error.path, error.pointer) == ("in/r.json", "/body")


@pytest.mark.parametrize(
    "case_id", ["owner/repo#5", "../up", ".hidden", "a b", "-dash", "x" * 101, "id\u0430", "a\u200b", "#5"]
)
def test_an_id_that_is_no_safe_name_is_refused(case_id):
    refusal(f"---\nid: {case_id}\n---\ntext".encode(), "CASE_ID")
    refusal(b"text", "CASE_ID", package_id=case_id)


@pytest.mark.parametrize("case_id", ["repo#5", "BUG-000020", "a", "7", "x" * 100, "a.b_c-d#1"])
def test_safe_names_are_kept(case_id):
    assert take(f"---\nid: {case_id}\n---\ntext".encode())[0].case_id == case_id


def test_a_line_end_is_no_part_of_a_package_id():
    refusal(b"text", "CASE_ID", package_id="a\n")
    refusal(b"text", "CASE_ID", package_id="")


def test_a_file_name_without_text_form_is_kept_visibly():
    assert take(b"text", "caf\udce9.md")[0].file == "caf\ufffd.md"


@given(st.text(st.characters(), max_size=20))
def test_what_an_admission_says_admits_the_same_bytes_again(name):
    first, report = take(b"---\nid: a\n---\ntext", name + "x.md", package_id="again")
    assert take(b"---\nid: a\n---\ntext", first.file, package_id=first.package_id) == (first, report)
    assert first.to_bytes()


@pytest.mark.parametrize(
    ("target", "code"),
    [
        ("casebound.no_such_module:read", "PLUGIN_BROKEN"),
        ("casebound.intake.readers.text:no_such_function", "PLUGIN_BROKEN"),
        ("builtins:int", "PLUGIN_BROKEN"),
        ("builtins:len", "PLUGIN_OFFER"),
    ],
)
def test_a_broken_reader_is_named(target, code):
    with pytest.raises(PluginError) as caught:
        take(b"text", "r.rst", readers=[ReportReader("rst", (".rst",), read=target)])
    assert caught.value.code == code
    assert "rst" in caught.value.where


# --- duplicates -----------------------------------------------------------------------------------------------------


def held(text, case_id=None, package_id=None):
    data = (f"---\nid: {case_id}\n---\n" if case_id else "").encode() + text.encode()
    return take(data, package_id=package_id)[0]


def test_a_new_report_is_no_duplicate():
    assert check_duplicate(held("a"), []) is None
    assert check_duplicate(held("a"), [held("b"), held("c", "id-1")]) is None


def test_the_same_bytes_are_told_as_the_report_that_is_there():
    known = held("a", "id-1")
    assert check_duplicate(held("a", "id-1"), [held("b"), known]) is known


def test_another_report_with_the_same_id_is_refused():
    with pytest.raises(SettingsError) as caught:
        check_duplicate(held("changed", "id-1"), [held("b"), held("a", "id-1")])
    assert caught.value.code == "REPORT_DUPLICATE"
    assert "id-1" in caught.value.found


def test_a_package_id_that_is_taken_is_not_advised_again():
    with pytest.raises(SettingsError) as caught:
        check_duplicate(held("changed", "id-1", "mine"), [held("a", "id-1", "mine")])
    assert caught.value.hint == "give another --package-id"


def test_an_id_is_taken_whatever_package_holds_it():
    with pytest.raises(SettingsError):
        check_duplicate(held("changed", "id-1"), [held("a", "id-1", "pkg-9")])


def test_a_package_id_makes_a_fresh_case():
    known = held("a", "id-1")
    assert check_duplicate(held("a", "id-1", "again"), [known]) is None
    assert check_duplicate(held("changed", "id-1", "again"), [known]) is None


def test_a_package_id_that_exists_is_that_package_or_a_clash():
    first, again = held("a", "id-1"), held("a", "id-1", "again")
    assert check_duplicate(held("a", "id-1", "again"), [first, again]) is again
    with pytest.raises(SettingsError):
        check_duplicate(held("b", "id-2", "again"), [first, again])


def test_package_ids_that_differ_in_case_only_clash_because_they_name_folders():
    with pytest.raises(SettingsError):
        check_duplicate(held("b", "ID-1"), [held("a", "id-1")])


def test_the_same_report_goes_on_in_its_own_case_even_beside_later_ones():
    first = held("a", "id-1")
    later = held("changed", "id-1", "again")
    fresh = held("a", "id-1", "zzz")
    early = held("a", "id-1", "aaa")
    for order in ([first, later, fresh, early], [early, fresh, later, first]):
        assert check_duplicate(held("a", "id-1"), order) is first
    assert check_duplicate(held("changed", "id-1"), [first, later]) is later
