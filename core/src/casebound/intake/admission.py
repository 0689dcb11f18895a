"""Admission: which bytes become a case, under which id, read by whom.

The checks run from cheap to dear, each before the next one can do harm: size, byte order marks, control bytes, UTF-8,
reader, visible text, id. What `file` calls text may hold BEL, BS, ESC and form feeds (pasted terminal output does);
every other control byte is a binary's. A UTF-8 byte order mark is dropped, and ranges count from the character behind
it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path

from casebound.canonical import digest_of
from casebound.contracts.base import SAFE_NAME
from casebound.contracts.case import Admission, Report
from casebound.errors import PluginError, SettingsError
from casebound.guard import plugin_guard
from casebound.intake.blocks import is_visible
from casebound.specs import ReportReader

BOM = b"\xef\xbb\xbf"
_WIDE_BOMS = {
    b"\xff\xfe\x00\x00": "UTF-32",
    b"\x00\x00\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
_BINARY_BYTE = re.compile(rb"[\x00-\x06\x0e-\x1a\x1c-\x1f\x7f]")
_BINARY_CHARACTER = re.compile("[\x00-\x06\x0e-\x1a\x1c-\x1f\x7f\ud800-\udfff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_SAFE_NAME = re.compile(SAFE_NAME)
_CHUNK = 1 << 20


def read_report(path: Path, max_bytes: int) -> bytes:
    """Return the bytes of a report file; never holds more than `max_bytes` and one chunk, whatever the file.

    Raises:
        SettingsError: `REPORT_TOO_LARGE` from the size alone, before a byte is read, or while reading a pipe or a file
            that grows; `REPORT_UNREADABLE` for everything that is not there, not allowed or not a file.
    """
    parts, size = [], 0
    try:
        with path.open("rb", buffering=0) as file:
            check_size(path.stat().st_size, max_bytes, path=str(path))
            while part := file.read(_CHUNK):
                size += len(part)
                check_size(size, max_bytes, path=str(path))
                parts.append(part)
    except OSError as exc:
        raise SettingsError("REPORT_UNREADABLE", path=str(path), found=exc.strerror or type(exc).__name__) from exc
    return b"".join(parts)


def check_size(size: int, max_bytes: int, *, path: str | None = None) -> None:
    """Refuse a report of `size` bytes (so far) that is larger than allowed. Raises `REPORT_TOO_LARGE`."""
    if size > max_bytes:
        raise SettingsError(
            "REPORT_TOO_LARGE", path=path, found=f"at least {size} bytes", expected=f"at most {max_bytes} bytes"
        )


def admit(
    data: bytes, *, name: str, readers: Sequence[ReportReader], max_bytes: int, package_id: str | None = None
) -> tuple[Admission, Report]:
    """Admit the bytes of one report.

    Args:
        data: the whole file.
        name: its name; the ending chooses the reader, the last part is kept in the admission.
        readers: what the host offers.
        max_bytes: `[intake] max_bytes`.
        package_id: the operator's own; default: the case id.

    Returns:
        The admission and what the reader made of the text.

    Raises:
        SettingsError: `REPORT_FORMAT`, `REPORT_TOO_LARGE`, `REPORT_BINARY`, `REPORT_ENCODING`, `REPORT_SYNTAX`,
            `REPORT_EMPTY` or `CASE_ID`, with the place in the file.
        PluginError: a reader does not load, fails, or returns something else than a report.
    """
    check_size(len(data), max_bytes, path=name)
    return admit_as(choose_reader(name, readers), data, name=name, package_id=package_id)


def admit_as(
    reader: ReportReader, data: bytes, *, name: str, package_id: str | None = None
) -> tuple[Admission, Report]:
    """Admit the bytes of one report, of a size that was checked, by a reader that was chosen; else as `admit`."""
    report = read_text(decode_report(data, name=name), reader, name=name)
    digest = digest_of(data)
    case_id = case_id_of(report, digest)
    admission = Admission(
        case_id=_safe_name(case_id, "the id in the report", name),
        package_id=_safe_name(case_id if package_id is None else package_id, "the package id", name),
        reader=reader.name,
        file=_base_name(name),
        size=len(data),
        digest=digest,
    )
    return admission, report


def case_id_of(report: Report, digest: str) -> str:
    """Return the id that the report names, or one made of its bytes' digest."""
    return report.case_id if report.case_id is not None else "c-" + digest.removeprefix("sha256:")[:16]


def choose_reader(name: str, readers: Sequence[ReportReader]) -> ReportReader:
    """Return the reader with the longest suffix that `name` ends with. Raises `REPORT_FORMAT`, listing the suffixes."""
    lowered = _base_name(name).lower()
    fitting = [
        (len(suffix), reader.name, reader)
        for reader in readers
        for suffix in reader.suffixes
        if lowered.endswith(suffix)
    ]
    if not fitting:
        suffixes = sorted({suffix for reader in readers for suffix in reader.suffixes})
        raise SettingsError("REPORT_FORMAT", path=name, found=_base_name(name), allowed=suffixes)
    return max(fitting, key=lambda item: item[:2])[2]


def decode_report(data: bytes, *, name: str) -> str:
    """Return the text of UTF-8 bytes without a byte order mark, otherwise unchanged: line ends stay as they are.

    Raises:
        SettingsError: `REPORT_ENCODING` or `REPORT_BINARY`, with offset (bytes, from 0) and line (from 1).
    """
    check_byte_order(data, name=name)
    binary = _BINARY_BYTE.search(data)
    if binary is not None:
        at = binary.start()
        raise SettingsError("REPORT_BINARY", path=name, found=f"the byte 0x{data[at]:02x} {_place(data, at)}")
    try:
        return data.removeprefix(BOM).decode("utf-8")
    except UnicodeDecodeError as exc:
        at = exc.start + (len(BOM) if data.startswith(BOM) else 0)
        found = f"the byte 0x{data[at]:02x} {_place(data, at)} ({exc.reason})"
        raise SettingsError("REPORT_ENCODING", path=name, found=found) from exc


def check_byte_order(beginning: bytes, *, name: str) -> None:
    """Refuse bytes that say they are UTF-16 or UTF-32. Raises `SettingsError` (`REPORT_ENCODING`)."""
    for mark, encoding in _WIDE_BOMS.items():
        if beginning.startswith(mark):
            raise SettingsError("REPORT_ENCODING", path=name, found=f"a byte order mark of {encoding} at byte 0")


def read_text(text: str, reader: ReportReader, *, name: str) -> Report:
    """Return what `reader` makes of `text`, checked: something visible, and no character that a binary would have.

    Raises:
        SettingsError: `REPORT_SYNTAX`, `REPORT_BINARY` (such a character behind an escape) or `REPORT_EMPTY`.
        PluginError: `PLUGIN_BROKEN` or `PLUGIN_OFFER`.
    """
    try:
        with plugin_guard(f"reader {reader.name}", path=name):
            module, _, function = reader.read.partition(":")
            report = getattr(import_module(module), function)(text)
    except SettingsError as exc:
        raise _at(exc, name) from exc
    if not isinstance(report, Report):
        found = f"a {type(report).__name__}"
        raise PluginError("PLUGIN_OFFER", where=f"reader {reader.name}", found=found, expected="a Report", path=name)
    texts = list(_texts(report))
    for field, value in texts:
        found_character = _BINARY_CHARACTER.search(value)
        if found_character is not None:
            found = f"U+{ord(found_character[0]):04X} at character {found_character.start()}"
            raise SettingsError("REPORT_BINARY", path=name, where=field, found=found)
    if not any(is_visible(value, 0, len(value)) for field, value in texts if not field.endswith(".reference")):
        raise SettingsError("REPORT_EMPTY", path=name)
    return report


def read_again(data: bytes, admission: Admission, readers: Mapping[str, ReportReader]) -> Report:
    """Return the report that admitted bytes are, read by the reader that the admission names.

    Raises:
        SettingsError: the bytes are no longer what was admitted.
        PluginError: the reader is not installed (`PLUGIN_MISSING`), or fails.
    """
    reader = readers.get(admission.reader)
    if reader is None:
        raise PluginError("PLUGIN_MISSING", found=f"nobody offers the reader {admission.reader!r}", path=admission.file)
    return read_text(decode_report(data, name=admission.file), reader, name=admission.file)


def check_duplicate(admission: Admission, existing: Iterable[Admission]) -> Admission | None:
    """Return the admission that the workspace already holds for the same report, None for a new one.

    A report is the same by its digest. An explicit package id (one that is not the case id) asks for a fresh case of
    it, unless that package is the one that exists. Package ids are compared without case, for they name folders.

    Raises:
        SettingsError: `REPORT_DUPLICATE`: another report has the package id, or the case id where none was given.
    """
    folder = admission.package_id.lower()
    fresh = admission.package_id != admission.case_id
    same: list[Admission] = []
    others: list[Admission] = []
    for known in existing:
        if known.digest == admission.digest and (known.package_id == admission.package_id or not fresh):
            same.append(known)
        elif known.package_id.lower() == folder or (known.case_id == admission.case_id and not fresh):
            others.append(known)
    if others and not same:
        known = min(others, key=lambda other: other.package_id)
        raise SettingsError(
            "REPORT_DUPLICATE",
            path=admission.file,
            found=f"case {known.case_id} in package {known.package_id}, of the report {known.file} ({known.digest})",
            expected=f"no other report with the id {admission.package_id}",
            hint="give another --package-id" if fresh else None,
        )
    return min(same, key=lambda known: (known.package_id != admission.package_id, known.package_id), default=None)


def _texts(report: Report) -> Iterator[tuple[str, str]]:
    if report.title is not None:
        yield "title", report.title
    yield "body", report.body
    for number, comment in enumerate(report.comments):
        yield f"comments[{number}]", comment
    for number, expectation in enumerate(report.expectations):
        yield f"expectations[{number}]", expectation.text
        if expectation.reference is not None:
            yield f"expectations[{number}].reference", expectation.reference


def _safe_name(text: str, what: str, name: str) -> str:
    if _SAFE_NAME.fullmatch(text) is None:
        raise SettingsError("CASE_ID", path=name, where=what, found=ascii(text[:120]))
    return text


def _base_name(name: str) -> str:
    """Return the last part of a path, the same on every system; bytes that are no text become U+FFFD.

    The base name of a base name is itself, so that `verify` may admit the same bytes again by what the admission says.
    """
    return _SURROGATE.sub("\ufffd", name.replace("\\", "/").rstrip("/").rpartition("/")[2])


def _place(data: bytes, at: int) -> str:
    line = data.count(b"\n", 0, at) + 1
    return f"at byte {at}, line {line}"


def _at(error: SettingsError, path: str) -> SettingsError:
    """Return what a reader said, with the file that it could not know."""
    return SettingsError(
        error.code,
        path=path,
        pointer=error.pointer,
        where=error.where,
        found=error.found,
        expected=error.expected,
        allowed=error.allowed,
        hint=error.hint,
    )
