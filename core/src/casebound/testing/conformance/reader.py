r"""The suite that every reader of reports passes, ours and yours.

Subclass `ReaderConformance`, name the class `Test…`, and supply two fixtures:

    class TestRst(ReaderConformance):
        broken = ["an unterminated table…"]       # what the reader refuses, if anything

        @pytest.fixture
        def reader(self):
            return ReportReader("rst", (".rst",), read="my_plugin.rst:read")

        @pytest.fixture
        def samples(self):
            return ["Title\n=====\n\nBody.\n", …]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from typing import ClassVar

import pytest

from casebound.canonical import digest_of
from casebound.contracts.case import Admission, Build, Report
from casebound.errors import SettingsError
from casebound.intake.build import derive_case
from casebound.specs import ReportReader

_ANYTHING = (
    "",
    " ",
    "\n",
    "\r\n\r\n",
    "\ufeff",
    "\u202e\u200b",
    "a\u0301 \u00e1 \U0001f600",
    "- \t*",
    "{" * 500,
    "---\n",
)


class ReaderConformance:
    """What is promised in `casebound.specs.ReportReader`, test by test."""

    broken: ClassVar[Sequence[str]] = ()

    # --- what the author supplies -----------------------------------------------------------------------------------

    @pytest.fixture
    def reader(self) -> ReportReader:
        """Supply: the reader."""
        raise NotImplementedError("override the fixture `reader`")

    @pytest.fixture
    def samples(self) -> Sequence[str]:
        """Supply: texts that it reads."""
        raise NotImplementedError("override the fixture `samples`")

    @pytest.fixture
    def read(self, reader: ReportReader) -> Callable[[str], Report]:
        """The function that the reader names."""
        module, _, attribute = reader.read.partition(":")
        function: Callable[[str], Report] = getattr(import_module(module), attribute)
        return function

    # --- what it does -----------------------------------------------------------------------------------------------

    def test_its_suffixes_are_endings(self, reader: ReportReader) -> None:
        """A file is given to the reader of its ending. Repair: lower case, with the dot."""
        assert reader.suffixes
        assert all(suffix.startswith(".") and suffix == suffix.lower() for suffix in reader.suffixes)

    def test_the_same_text_gives_the_same_report(self, read: Callable[[str], Report], samples: Sequence[str]) -> None:
        """`verify` reads again. Repair: no clock, no randomness, no file, no memory."""
        assert samples
        for text in samples:
            assert read(text).model_dump_json() == read(text).model_dump_json()

    def test_a_report_holds_some_text(self, read: Callable[[str], Report], samples: Sequence[str]) -> None:
        """A sample is a report. Repair: put what cannot be understood into the body; hide nothing."""
        for text in samples:
            report = read(text)
            assert report.title or report.body or report.comments or report.expectations

    def test_ranges_of_the_case_point_at_exactly_the_characters(
        self, read: Callable[[str], Report], samples: Sequence[str]
    ) -> None:
        """Every source is a slice of a field. Repair: return text as it stands, without trimming or normalizing it."""
        build = Build(headings={}, patterns=())
        for text in samples:
            admission = Admission(
                case_id="sample",
                package_id="sample",
                reader="sample",
                file="report",
                size=len(text.encode()),
                digest=digest_of(text.encode()),
            )
            case = derive_case(admission, read(text), build)
            for source in case.sources:
                assert 0 <= source.start < source.end <= len(case.fields.text(source.field))
                assert case.text_of(source).strip()

    def test_any_text_is_read_or_refused_by_name(self, read: Callable[[str], Report]) -> None:
        """Nobody sees a traceback for a strange file. Repair: raise `SettingsError`, never another exception."""
        for text in _ANYTHING:
            with suppress(SettingsError):
                assert isinstance(read(text), Report)

    def test_what_is_broken_is_refused_with_its_place(self, read: Callable[[str], Report]) -> None:
        """The message tells where. Repair: give `REPORT_SYNTAX` a pointer or a line."""
        if not self.broken:
            pytest.skip("capability: the reader refuses nothing")
        for text in self.broken:
            with pytest.raises(SettingsError) as caught:
                read(text)
            assert caught.value.code == "REPORT_SYNTAX"
            assert caught.value.pointer or caught.value.where or caught.value.found
