from __future__ import annotations

import base64
import json
import os
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest
from casebound.bench.bundle import input_path, load_bundle, write_bundle
from casebound.bench.instrument import open_instrument
from casebound.bench.measurement import Sources, freeze_measurement
from casebound.bench.wording import EXPOSED, LEAKAGE, NO_AUTHORITY, NOT_HIDDEN, OF_A_BUNDLE
from casebound.canonical import canonical_bytes, digest_of, readable_bytes
from casebound.contracts.bench_identity import BundleManifest
from casebound.errors import SettingsError
from casebound.render.benchmark import STYLE, review_page
from casebound.testing.bench_pairs import NOW, REVIEWED
from casebound.testing.small_benchmark import SYSTEM, small_host

CANARY = "canary-5b1e"


def freeze(sources: Sources | None = None):
    return freeze_measurement(open_instrument(small_host(), "small"), sources or Sources(), NOW)


@pytest.fixture(scope="module")
def measurement():
    return freeze()


@pytest.fixture(scope="module")
def pristine(measurement, tmp_path_factory):
    return write_bundle(tmp_path_factory.mktemp("bundles") / "bundle", measurement, review_page).root


@pytest.fixture
def root(pristine, tmp_path) -> Path:
    return Path(shutil.copytree(pristine, tmp_path / "bundle"))


def files_of(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def signed(measurement, name: str, folder: Path, **changed) -> Path:
    """Fill in a form of the bundle."""
    own = {"reviewer": measurement.corpus.corpus.authors[0]}
    other = {"reviewer": "Iris Reader", "reviewKind": "independent-human", "independenceAttestation": True}
    form = json.loads(
        write_bundle(folder / f"for-{name}", measurement, review_page)
        .root.joinpath(f"{name}.template.json")
        .read_bytes()
    )
    form.update(own if name == "author-review" else other, reviewedAt=REVIEWED, reviewedBeforeOutputs=True)
    for decision in form["decisions"]:
        decision.update(decision="approved", rationale="as the <guide> says")
    path = folder / f"{name}.json"
    path.write_bytes(readable_bytes({**form, **changed}))
    return path


# --- what stands in it ----------------------------------------------------------------------------------------------


@pytest.mark.spec("B-101")
def test_a_bundle_holds_everything_that_people_review_and_nothing_else(measurement, pristine):
    files = files_of(pristine)
    cases = [case.case_id for case in measurement.corpus.corpus.cases]
    assert sorted(files) == sorted(
        [
            "manifest.json",
            "corpus.json",
            "guide.en.md",
            "system.txt",
            "response-schema.json",
            *(f"inputs/{case_id}.json" for case_id in cases),
            "author-review.template.json",
            "independent-review.template.json",
            "review.html",
        ]
    )
    assert files["corpus.json"] == measurement.instrument.corpus_path.read_bytes()
    assert files["guide.en.md"] == measurement.instrument.guides["en"].data
    assert files["system.txt"] == SYSTEM.encode()
    assert digest_of(files["response-schema.json"]) == measurement.identity.prompt.response_schema


@pytest.mark.spec("B-101")
def test_forms_are_unsigned_and_name_the_measurement_and_every_case(measurement, pristine):
    for name in ("author-review", "independent-review"):
        form = json.loads((pristine / f"{name}.template.json").read_bytes())
        assert form["measurementId"] == measurement.measurement_id
        assert [decision["caseId"] for decision in form["decisions"]] == list(measurement.scope.case_ids)
        blank = [form["reviewer"], form["reviewedAt"], form["reviewedBeforeOutputs"]]
        blank += [form.get("independenceAttestation"), form.get("reviewKind")]
        blank += [decision[key] for decision in form["decisions"] for key in ("decision", "rationale")]
        assert set(blank) == {None}


@pytest.mark.spec("B-101")
@pytest.mark.parametrize("name", ["author-review", "independent-review"])
def test_an_unsigned_form_is_no_receipt(pristine, name):
    place = pristine / f"{name}.template.json"
    sources = Sources(self_review=place) if name == "author-review" else Sources(review=place)
    with pytest.raises(SettingsError) as caught:
        freeze(sources)
    assert caught.value.code == "BENCH_RECEIPT"


@pytest.mark.spec("B-021", "B-101")
def test_inputs_system_and_schema_hold_nothing_of_a_reference(measurement, tmp_path):
    corpus = json.loads(measurement.corpus.data)
    for number, case in enumerate(corpus["cases"]):
        case["referenceRationale"] += f" {CANARY}"
        case["conversationId"] = f"{CANARY}-{number}"
        case["projectId"] = f"{case['split']}-{CANARY}"
        case["semanticChecks"][0]["text"] += CANARY
    corpus["limitations"].append(CANARY)
    changed = tmp_path / "corpus.json"
    changed.write_text(json.dumps(corpus))
    root = write_bundle(tmp_path / "bundle", freeze(Sources(changed)), review_page).root
    holders = {name for name, data in files_of(root).items() if CANARY.encode() in data}
    assert holders == {"corpus.json", "manifest.json", "review.html"}  # of the manifest, its limitations
    for case in corpus["cases"]:
        assert (root / input_path(case["caseId"])).read_bytes() == canonical_bytes(case["input"])


@pytest.mark.spec("B-017", "B-018", "B-094", "B-096")
def test_the_manifest_says_what_is_not_established(measurement, pristine):
    manifest = BundleManifest.from_bytes((pristine / "manifest.json").read_bytes())
    assert manifest is not None
    assert manifest.limitations == (*OF_A_BUNDLE, *measurement.corpus.corpus.limitations)
    assert "not find all semantic overlap" in LEAKAGE
    assert "neither hidden nor blind" in NOT_HIDDEN
    assert "no sample" in NOT_HIDDEN
    assert EXPOSED not in manifest.limitations


@pytest.mark.spec("B-103")
def test_nothing_in_a_bundle_permits_a_call(measurement, pristine, tmp_path):
    assert "confirmation" in NO_AUTHORITY
    reviewed = freeze(
        Sources(
            self_review=signed(measurement, "author-review", tmp_path),
            review=signed(measurement, "independent-review", tmp_path),
        )
    )
    both = write_bundle(tmp_path / "reviewed", reviewed, review_page)
    added = {"author-review.json", "independent-review.json"}
    assert set(files_of(both.root)) - set(files_of(pristine)) == added
    assert NO_AUTHORITY in both.manifest.limitations


def test_the_same_files_give_the_same_bundle_byte_for_byte(measurement, pristine, tmp_path):
    again = write_bundle(tmp_path / "again", freeze(), review_page).root
    assert files_of(again) == files_of(pristine)


# --- receipts -------------------------------------------------------------------------------------------------------


def test_receipts_stand_in_a_bundle_as_they_were_written_and_decide_its_readiness(measurement, tmp_path):
    own = signed(measurement, "author-review", tmp_path)
    other = signed(measurement, "independent-review", tmp_path)
    ready = freeze(Sources(self_review=own)).readiness
    assert (ready.author_review, ready.independent_review) == ("approved", "pending")
    assert (ready.exploratory_ready, ready.gold_ready) == (True, False)
    root = write_bundle(tmp_path / "b", freeze(Sources(self_review=own, review=other)), review_page).root
    loaded = load_bundle(root, small_host(), NOW)
    assert loaded.manifest.readiness.gold_ready
    assert (root / "author-review.json").read_bytes() == own.read_bytes()
    assert (root / "independent-review.json").read_bytes() == other.read_bytes()


@pytest.mark.spec("B-095")
def test_a_receipt_of_another_measurement_is_refused(measurement, tmp_path):
    own = signed(measurement, "author-review", tmp_path)
    spaced = tmp_path / "corpus.json"
    spaced.write_bytes(measurement.corpus.data + b"\n")
    with pytest.raises(SettingsError, match="another measurement") as caught:
        freeze(Sources(spaced, self_review=own))
    assert (caught.value.code, caught.value.pointer) == ("BENCH_RECEIPT", "/measurementId")


# --- loading --------------------------------------------------------------------------------------------------------


def test_a_bundle_that_was_written_is_loaded_as_it_was(measurement, root):
    loaded = load_bundle(root, small_host(), NOW)
    assert loaded.measurement.identity == measurement.identity
    assert loaded.measurement.measurement_id == loaded.manifest.measurement_id == measurement.measurement_id
    assert loaded.measurement.corpus.data == measurement.corpus.data
    assert loaded.measurement.subject.cases.keys() == measurement.subject.cases.keys()


def refusal(root: Path) -> SettingsError:
    with pytest.raises(SettingsError) as caught:
        load_bundle(root, small_host(), NOW)
    return caught.value


def test_one_changed_byte_of_any_file_is_found(root):
    for name, data in files_of(root).items():
        (root / name).write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        error = refusal(root)
        assert error.code in ("BENCH_BUNDLE", "BENCH_FILE"), name
        assert error.path == str(root / name)
        (root / name).write_bytes(data)
    load_bundle(root, small_host(), NOW)


def test_a_missing_file_is_found_with_its_place_in_the_manifest(root):
    for name in files_of(root):
        (root / name).rename(root.parent / "away")
        error = refusal(root)
        if name == "manifest.json":
            assert error.code == "BENCH_FILE"
        else:
            assert (error.code, error.found) == ("BENCH_BUNDLE", f"no file {name!r}")
            assert re.fullmatch("/files/[0-9]+", error.pointer or "")
        (root.parent / "away").rename(root / name)


@pytest.mark.parametrize(
    ("spoil", "found"),
    [
        (lambda root: (root / "notes.txt").touch(), "does not bind"),
        (lambda root: (root / "author-review.json").write_text("{}"), "does not bind"),
        (lambda root: (root / "inputs" / "linked.json").symlink_to(root / "corpus.json"), "a link"),
        (lambda root: (root / "elsewhere").symlink_to(root.parent), "a link"),
        (lambda root: os.mkfifo(root / "pipe"), "no file"),
    ],
)
def test_whatever_else_stands_there_is_refused(root, spoil, found):
    spoil(root)
    error = refusal(root)
    assert error.code == "BENCH_BUNDLE"
    assert found in (error.found or "")


def rebound(root: Path, change) -> None:
    """Change files and the manifest as somebody would who binds them again."""
    manifest = json.loads((root / "manifest.json").read_bytes())
    change(manifest)
    for file in manifest["files"]:
        if (root / file["path"]).is_file():
            data = (root / file["path"]).read_bytes()
            file.update(bytes=len(data), digest=digest_of(data))
    (root / "manifest.json").write_bytes(canonical_bytes(manifest))


def put(name: str, data: bytes):
    return lambda root, manifest: (root / name).write_bytes(data)


def edit(name: str, change):
    return lambda root, manifest: (root / name).write_bytes(change((root / name).read_bytes()))


def change_first_input(root, manifest):
    edit(input_path(manifest["cases"][0]["caseId"]), lambda data: data.replace(b"a", b"b"))(root, manifest)


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda root, manifest: manifest["identity"].update(corpusVersion="x/v1"), "/measurementId"),
        (put("system.txt", b"Obey."), "/identity/prompt/system"),
        (put("guide.en.md", b"Obey."), "/identity/guides/en"),
        (put("response-schema.json", b"{}"), "/identity/prompt/responseSchema"),
        (edit("corpus.json", lambda data: data + b" "), "/identity/corpus"),
        (lambda root, manifest: manifest["cases"][0].update(split="holdout"), "/cases"),
        (lambda root, manifest: manifest["readiness"].update(goldReady=True), "/readiness"),
        (lambda root, manifest: manifest.update(captures=digest_of(b"")), "/captures"),
        (change_first_input, None),
    ],
)
def test_what_follows_from_the_corpus_is_derived_again(root, change, place):
    rebound(root, lambda manifest: change(root, manifest))
    error = refusal(root)
    assert (error.code, error.pointer) == ("BENCH_BUNDLE", place)


@pytest.mark.spec("B-093")
def test_a_bundle_of_another_scope_is_refused_as_breaking_comparability(root):
    older = "casebound-entity-measurement-runtime/v1"
    rebound(root, lambda manifest: manifest["identity"].update(scope=older))
    error = refusal(root)
    assert (error.code, error.pointer) == ("BENCH_IDENTITY", "/identity/scope")
    assert "BREAKING-COMPARABILITY" in error.hint
    assert "Nothing is converted" in error.hint


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "BENCH_FILE"),
        (b'{"format": 1, "format": 2}', "BENCH_FILE"),
        (b"\xff\xfe{}", "BENCH_FILE"),
        (b"[" * 100_000, "BENCH_FILE"),
        (b"{}", "BENCH_BUNDLE"),
        (b"[]", "BENCH_BUNDLE"),
    ],
)
def test_a_manifest_that_is_none_is_one_clear_error(root, data, code):
    (root / "manifest.json").write_bytes(data)
    error = refusal(root)
    assert (error.code, error.path) == (code, str(root / "manifest.json"))


def test_a_path_in_the_manifest_cannot_lead_out_of_the_bundle(root):
    (root.parent / "secret").write_text("x")
    rebound(
        root, lambda manifest: manifest["files"].append({"path": "../secret", "bytes": 1, "digest": digest_of(b"x")})
    )
    assert "no file '../secret'" in (refusal(root).found or "")


# --- the page -------------------------------------------------------------------------------------------------------


class Seen(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.marked: list[str] = []
        self.text = ""

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta",):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data
        if "mark" in self.open:
            self.marked.append(data)


def seen(page: str) -> Seen:
    parser = Seen()
    parser.feed(page)
    parser.close()
    assert parser.open == []
    return parser


def test_the_page_shows_each_case_with_its_mentions_marked_its_checks_and_its_decisions(measurement, tmp_path):
    reviewed = freeze(Sources(self_review=signed(measurement, "author-review", tmp_path)))
    page = seen(review_page(reviewed, None))
    corpus = measurement.corpus.corpus
    assert page.marked == [text for case in corpus.cases for text in case.input.selected()]
    for case in corpus.cases:
        for text in (case.case_id, case.expected_assessment, case.reference_rationale):
            assert text in page.text
        assert all(check.text in page.text for check in case.semantic_checks)
    assert page.text.count("as the <guide> says") == len(corpus.cases)
    assert page.text.count("pending: no receipt") == len(corpus.cases)
    assert all(limitation in page.text for limitation in OF_A_BUNDLE)


def test_the_page_runs_no_script_loads_nothing_and_fits_a_phone(measurement):
    page = review_page(measurement, None)
    found = seen(page)
    names = {name for name, _ in found.tags}
    assert not names & {"script", "img", "link", "iframe", "object", "embed", "form", "base", "video", "audio", "svg"}
    attributes = {(key, value) for _, attributes in found.tags for key, value in attributes.items()}
    assert not [key for key, _ in attributes if key.startswith("on") or key in ("src", "srcset", "style", "action")]
    assert all(str(value).startswith("#case-") for key, value in attributes if key == "href")
    assert ("content", "width=device-width, initial-scale=1") in attributes
    policy = next(str(value) for key, value in attributes if key == "content" and "default-src" in str(value))
    digest = bytes.fromhex(digest_of(STYLE.encode()).removeprefix("sha256:"))
    style = f"style-src 'sha256-{base64.b64encode(digest).decode()}'"
    assert policy.split("; ") == ["default-src 'none'", style, "base-uri 'none'", "form-action 'none'"]
    assert f"<style>{STYLE}</style>" in page
    assert "url(" not in STYLE
    assert "@import" not in STYLE


def test_hostile_text_stays_text(measurement, tmp_path):
    corpus = json.loads(measurement.corpus.data)
    attack = '</mark><script>alert(1)</script><img src=x onerror=alert(1)>" \u202eevil\u200b'
    case = corpus["cases"][0]
    case["input"]["first"]["text"] = attack
    case["referenceRationale"] = attack
    changed = tmp_path / "corpus.json"
    changed.write_text(json.dumps(corpus))
    page = review_page(freeze(Sources(changed)), None)
    found = seen(page)
    assert not {name for name, _ in found.tags} & {"script", "img"}
    assert "\u202e" not in page
    assert "⟦U+202E⟧evil⟦U+200B⟧" in found.marked[0]
