"""Bundles: a frozen measurement as a folder that people can review before a single call is made.

Rules:
- Preparing asks nobody: files are read, digested and written. The same files and receipts give the same bundle, byte
  for byte; no time stands in it.
- What a model is to be given stands in files of its own (`inputs/`, the system text, the schema), which hold nothing of
  references, rationales, checks, splits and groups. The forms for reviewers are unsigned.
- A bundle is read only as a whole: every file as the manifest binds it, no other file, no link; and what follows from
  the corpus and the receipts is derived again.
- Loading says what was frozen; only `confirm_identity` says that it is also what is installed here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import NoReturn

from casebound.bench.corpus import CorpusFile, load_corpus
from casebound.bench.files import read_file
from casebound.bench.identity import OTHER_SCOPE, derive_governed
from casebound.bench.instrument import Instrument, open_instrument
from casebound.bench.measurement import Measurement, with_receipts
from casebound.bench.parsing import parse_written
from casebound.bench.place import write_folder
from casebound.bench.receipts import author_template, independent_template
from casebound.bench.subject import input_digest
from casebound.bench.wording import EXPOSED, OF_A_BUNDLE
from casebound.canonical import canonical_bytes, digest_of, readable_bytes
from casebound.contracts.bench_checks import CheckSummary
from casebound.contracts.bench_identity import TREE_SCOPE, BundledCase, BundledFile, BundleManifest
from casebound.errors import SettingsError
from casebound.host import Host

CODE = "BENCH_BUNDLE"
MANIFEST = "manifest.json"
CORPUS = "corpus.json"
SYSTEM = "system.txt"
SCHEMA = "response-schema.json"
AUTHOR_FORM, AUTHOR_RECEIPT = "author-review.template.json", "author-review.json"
INDEPENDENT_FORM, INDEPENDENT_RECEIPT = "independent-review.template.json", "independent-review.json"
REVIEW_PAGE = "review.html"
CHECKS = "checks.json"

Page = Callable[[Measurement, CheckSummary | None], str]


def input_path(case_id: str) -> str:
    """Return where a bundle keeps the input of a case."""
    return f"inputs/{case_id}.json"


@dataclass(frozen=True, slots=True)
class Bundle:
    """A bundle that holds: where it is, what binds it, and what it freezes."""

    root: Path
    manifest: BundleManifest
    measurement: Measurement


# --- writing --------------------------------------------------------------------------------------------------------


def write_bundle(output: Path, measurement: Measurement, page: Page, checks: CheckSummary | None = None) -> Bundle:
    """Write a bundle, whole or not at all.

    Args:
        output: a new folder; `refuse_output` has looked at the place.
        measurement: what is frozen.
        page: draws the page for reviewers.
        checks: the layered results of captures, where some were checked.

    Raises:
        SettingsError: it cannot be written there (`BENCH_OUTPUT`); then nothing stands there.
    """
    files = {**_frozen_files(measurement), **_receipt_files(measurement)}
    files[REVIEW_PAGE] = page(measurement, checks).encode()
    if checks is not None:
        files[CHECKS] = checks.to_bytes()
    manifest = _manifest(measurement, files, checks)
    write_folder(output, {**files, MANIFEST: manifest.to_bytes()})
    return Bundle(output, manifest, measurement)


def _frozen_files(measurement: Measurement) -> dict[str, bytes]:
    """Return the files that follow from the measurement alone."""
    corpus, scope = measurement.corpus.corpus, measurement.scope
    governed = derive_governed(measurement.instrument, corpus)
    return {
        CORPUS: measurement.corpus.data,
        **{guide.name: guide.data for guide in measurement.instrument.guides.values()},
        SYSTEM: governed.system,
        SCHEMA: governed.response_schema,
        **{input_path(case.case_id): canonical_bytes(case.input.to_json()) for case in corpus.cases},
        AUTHOR_FORM: readable_bytes(author_template(scope)),
        INDEPENDENT_FORM: readable_bytes(independent_template(scope)),
    }


def _receipt_files(measurement: Measurement) -> dict[str, bytes]:
    named = {AUTHOR_RECEIPT: measurement.author, INDEPENDENT_RECEIPT: measurement.independent}
    return {name: receipt.data for name, receipt in named.items() if receipt is not None}


def _manifest(measurement: Measurement, files: Mapping[str, bytes], checks: CheckSummary | None) -> BundleManifest:
    return BundleManifest(
        benchmark=measurement.instrument.spec.name,
        measurement_id=measurement.measurement_id,
        identity=measurement.identity,
        cases=_cases(measurement.corpus),
        readiness=measurement.readiness,
        captures=None if checks is None else checks.captures,
        files=tuple(
            BundledFile(path=path, bytes=len(files[path]), digest=digest_of(files[path])) for path in sorted(files)
        ),
        limitations=limitations(measurement, exposed=checks is not None),
    )


def limitations(measurement: Measurement, *, exposed: bool) -> tuple[str, ...]:
    """Return what the measurement does not establish; `exposed`: outputs were seen when its bundle was prepared."""
    return (*OF_A_BUNDLE, *measurement.corpus.corpus.limitations, *((EXPOSED,) if exposed else ()))


def _cases(corpus: CorpusFile) -> tuple[BundledCase, ...]:
    return tuple(
        BundledCase(case_id=case.case_id, split=case.split, input=input_digest(case.input))
        for case in corpus.corpus.cases
    )


# --- reading --------------------------------------------------------------------------------------------------------


def load_bundle(root: Path, host: Host, now: datetime) -> Bundle:
    """Return the bundle in a folder, once all of it holds.

    Raises:
        SettingsError: it does not hold (`BENCH_BUNDLE`, or the code of the file that does not), with file and pointer;
            nobody offers its benchmark (`SETTINGS_NAME`).
    """
    path = root / MANIFEST
    manifest = _parse_manifest(path)
    files = dict(_bound_files(root, manifest))
    if manifest.measurement_id != digest_of(manifest.identity.to_bytes()):
        _refuse(path, "/measurementId", "another digest than that of the identity")
    instrument = open_instrument(host, manifest.benchmark)
    measurement = Measurement(instrument, load_corpus(root / CORPUS, instrument.model), manifest.identity)
    author, independent = (root / name if name in files else None for name in (AUTHOR_RECEIPT, INDEPENDENT_RECEIPT))
    measurement = with_receipts(measurement, author, independent, now)
    _check_identity(path, manifest, instrument, files)
    _check_derived(root, manifest, measurement, files)
    return Bundle(root, manifest, measurement)


def _parse_manifest(path: Path) -> BundleManifest:
    try:
        return parse_written(read_file(path), BundleManifest, CODE, path)
    except SettingsError as exc:
        if exc.pointer != "/identity/scope":
            raise
        raise SettingsError(
            "BENCH_IDENTITY",
            path=str(path),
            pointer=exc.pointer,
            found="tree digests of another scope",
            allowed=(TREE_SCOPE,),
            hint=OTHER_SCOPE,
        ) from exc


def _bound_files(root: Path, manifest: BundleManifest) -> Iterator[tuple[str, str]]:
    """Yield every file that stands in the folder with its digest, once it is what the manifest binds."""
    bound = {file.path: file for file in manifest.files}
    present = sorted(_walk(root, ""))
    for name in sorted({*bound, *present} - {MANIFEST}):
        path = root / name
        if name not in bound:
            _refuse(path, None, "a file that the manifest does not bind")
        if name not in present:
            _refuse(root / MANIFEST, f"/files/{list(bound).index(name)}", f"no file {name!r}")
        digest = digest_of(read_file(path))
        if digest != bound[name].digest:
            _refuse(path, None, f"{digest}, where the manifest binds {bound[name].digest}")
        yield name, digest


def _walk(folder: Path, below: str) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(Path(entry.path), f"{below}{entry.name}/")
            elif entry.is_file(follow_symlinks=False):
                yield below + entry.name
            else:
                _refuse(Path(entry.path), None, "a link, or something that is no file")


def _check_identity(path: Path, manifest: BundleManifest, instrument: Instrument, files: Mapping[str, str]) -> None:
    """Refuse frozen files that are not those that the identity binds."""
    identity = manifest.identity
    wanted = {"/identity/corpus": (CORPUS, identity.corpus)}
    for language, digest in identity.guides.items():
        guide = instrument.guides.get(language)
        wanted[f"/identity/guides/{language}"] = (guide.name if guide else f"guide.{language}", digest)
    wanted["/identity/prompt/system"] = (SYSTEM, identity.prompt.system)
    wanted["/identity/prompt/responseSchema"] = (SCHEMA, identity.prompt.response_schema)
    for pointer, (name, digest) in wanted.items():
        if files.get(name) != digest:
            _refuse(path, pointer, f"another digest than that of {name}")


def _check_derived(root: Path, manifest: BundleManifest, measurement: Measurement, files: Mapping[str, str]) -> None:
    """Refuse a manifest that says otherwise than the corpus and the receipts that stand beside it."""
    path = root / MANIFEST
    if manifest.cases != _cases(measurement.corpus):
        _refuse(path, "/cases", "other cases than those of the corpus")
    for case in manifest.cases:
        if files.get(name := input_path(case.case_id)) != case.input:
            _refuse(root / name, None, f"another input than that of the case {case.case_id!r}")
    if manifest.readiness != measurement.readiness:
        _refuse(path, "/readiness", "another readiness than the receipts give")
    if (CHECKS in files) != (manifest.captures is not None):
        _refuse(path, "/captures", f"captures without {CHECKS}, or the other way round")


def _refuse(path: Path, pointer: str | None, found: str) -> NoReturn:
    raise SettingsError(CODE, path=str(path), pointer=pointer, found=found)
