from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
from casebound.bench.trees import LEFT_OUT_OF_METADATA, declaration_of, digest_file, digest_tree, installed_tree
from casebound.canonical import digest_of
from casebound.errors import SettingsError
from hypothesis import given, settings
from hypothesis import strategies as st

FILES = {"__init__.py": b"x = 1\n", "inner/deep/data.bin": b"\x00\xff", "inner/empty.py": b"", "py.typed": b""}


def lay_out(root: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return root


def tree_of(root: Path):
    return digest_tree({"package": root})


# --- what counts ----------------------------------------------------------------------------------------------------


@pytest.mark.spec("B-092")
def test_place_order_times_permissions_and_caches_do_not_count(tmp_path):
    one = lay_out(tmp_path / "one", FILES)
    other = lay_out(tmp_path / "elsewhere" / "under another name", dict(reversed(FILES.items())))
    (other / "__pycache__").mkdir()
    (other / "__pycache__" / "x.cpython-311.pyc").write_bytes(b"compiled")
    (other / "__pycache__" / "x.index").write_bytes(b"of a compiler")
    (other / "inner" / "old.pyc").write_bytes(b"compiled")
    (other / "inner" / "nothing here").mkdir()
    for path in other.rglob("*"):
        os.utime(path, (1, 1))
    (other / "__init__.py").chmod(0o755)
    assert tree_of(one) == tree_of(other)
    assert (tree_of(one).files, tree_of(one).bytes) == (4, 8)


@pytest.mark.spec("B-092")
@pytest.mark.parametrize(
    "change",
    [
        lambda root: (root / "__init__.py").write_bytes(b"x = 2\n"),
        lambda root: (root / "inner/empty.py").write_bytes(b"\n"),
        lambda root: (root / "inner/empty.py").rename(root / "inner/void.py"),
        lambda root: (root / "py.typed").rename(root / "inner/py.typed"),
        lambda root: (root / "another.py").touch(),
        lambda root: (root / "py.typed").unlink(),
        lambda root: (root / "__pycache__x.py").touch(),
    ],
)
def test_one_changed_byte_or_path_is_another_tree(tmp_path, change):
    root = lay_out(tmp_path, FILES)
    before = tree_of(root)
    change(root)
    assert tree_of(root).digest != before.digest


@settings(max_examples=40, deadline=None)
@given(
    st.dictionaries(st.sampled_from(["a", "b", "a.b", "c/d", "c/e"]), st.binary(max_size=3), min_size=1),
    st.dictionaries(st.sampled_from(["a", "b", "a.b", "c/d", "c/e"]), st.binary(max_size=3), min_size=1),
)
def test_trees_are_equal_exactly_where_paths_and_bytes_are(tmp_path_factory, one, other):
    folder = tmp_path_factory.mktemp("trees")
    digests = [tree_of(lay_out(folder / name, files)).digest for name, files in (("1", one), ("2", other))]
    shutil.rmtree(folder)
    assert (digests[0] == digests[1]) == (one == other)


@pytest.mark.spec("B-092")
def test_a_path_counts_in_composed_form_with_slashes(tmp_path):
    composed = lay_out(tmp_path / "1", {"über/a.py": b"x"})
    decomposed = lay_out(tmp_path / "2", {"u\u0308ber/a.py": b"x"})
    assert tree_of(composed) == tree_of(decomposed)
    both = lay_out(tmp_path / "3", {"über/a.py": b"x", "u\u0308ber/a.py": b"x"})
    with pytest.raises(SettingsError, match="a second file under this name"):
        tree_of(both)


@pytest.mark.spec("B-092")
def test_a_link_to_a_file_counts_as_the_file(tmp_path):
    plain = lay_out(tmp_path / "1", FILES)
    (tmp_path / "cache").write_bytes(FILES["__init__.py"])
    linked = lay_out(tmp_path / "2", FILES)
    (linked / "__init__.py").unlink()
    (linked / "__init__.py").symlink_to(tmp_path / "cache")
    (tmp_path / "root").symlink_to(linked)
    assert tree_of(plain) == tree_of(linked) == tree_of(tmp_path / "root")
    (tmp_path / "cache").write_bytes(b"x = 2\n")
    assert tree_of(plain) != tree_of(linked)


@pytest.mark.parametrize(
    ("spoil", "found"),
    [
        (lambda root: (root / "linked").symlink_to(root.parent), "a link to a folder"),
        (lambda root: (root / "gone").symlink_to(root / "nowhere"), "No such file"),
        (lambda root: os.mkfifo(root / "pipe"), "no regular file"),
        (lambda root: os.close(os.open(os.fsencode(root) + b"/\xff.py", os.O_CREAT)), "no Unicode"),
    ],
)
def test_what_cannot_be_bound_may_not_be_there(tmp_path, spoil, found):
    root = lay_out(tmp_path / "package", FILES)
    spoil(root)
    with pytest.raises(SettingsError, match=found) as caught:
        tree_of(root)
    assert caught.value.code == "BENCH_IDENTITY"


def test_a_file_is_digested_without_being_held(tmp_path):
    data = bytes(range(256)) * 9000
    (tmp_path / "large").write_bytes(data)
    assert digest_file(tmp_path / "large") == (digest_of(data), len(data))


# --- installed distributions ----------------------------------------------------------------------------------------

SOURCE = {"thing/__init__.py": b"x = 1\n", "thing/data/words.txt": b"a\n"}
METADATA = {
    "METADATA": b"Metadata-Version: 2.1\nName: the-thing\nVersion: 1.0\n",
    "entry_points.txt": b"[casebound]\nthing = thing\n",
}


def install(site: Path, listed: dict[str, bytes], *, installer: str = "pip", record: bool = True) -> Path:
    info = "the_thing-1.0.dist-info"
    own = {**METADATA, "INSTALLER": installer.encode(), "WHEEL": installer.encode(), "direct_url.json": b"{}"}
    files = {**listed, **{f"{info}/{name}": data for name, data in own.items()}}
    lay_out(site, files)
    if record:
        names = ["../bin/thing", f"{info}/RECORD", *files]
        (site / info / "RECORD").write_text("".join(f"{name},,\n" for name in names))
    return site


def as_wheel(folder: Path, source: dict[str, bytes] = SOURCE) -> Path:
    return install(folder / "site", source)


def as_editable(folder: Path, source: dict[str, bytes] = SOURCE) -> Path:
    lay_out(folder / "repository" / "src", source)
    link = f"# where it is\nimport os\n{folder}/repository/src\n".encode()
    return install(folder / "site", {"_editable_impl_the_thing.pth": link}, installer="another")


def as_hooked(folder: Path, source: dict[str, bytes] = SOURCE) -> Path:
    lay_out(folder / "repository", source)
    finder = {"__editable___the_thing_1_0_finder.py": b"MAPPING = {}", "__editable__.the_thing-1.0.pth": b"import x"}
    return install(folder / "site", finder, installer="third")


def as_copied(folder: Path, source: dict[str, bytes] = SOURCE) -> Path:
    return install(folder / "site", source, record=False)


@pytest.fixture(autouse=True)
def _forget_thing(monkeypatch):
    monkeypatch.delitem(sys.modules, "thing", raising=False)


@pytest.mark.spec("B-087", "B-092")
@pytest.mark.parametrize("way", [as_editable, as_hooked, as_copied])
def test_the_way_of_installing_does_not_count(tmp_path, monkeypatch, way):
    wheel = installed_tree("the-thing", [str(as_wheel(tmp_path / "1"))])
    site = way(tmp_path / "2")
    monkeypatch.syspath_prepend(str(site.parent / "repository" if way is as_hooked else site))
    found = installed_tree("the-thing", [str(site)])
    assert found == wheel
    assert (found.version, found.tree.files) == ("1.0", 4)


@pytest.mark.spec("B-087")
@pytest.mark.parametrize("way", [as_wheel, as_editable])
def test_a_module_that_no_list_knows_is_bound(tmp_path, way):
    site = way(tmp_path)
    before = installed_tree("the-thing", [str(site)])
    package = site / "thing" if way is as_wheel else tmp_path / "repository/src/thing"
    (package / "sneaked.py").touch()
    assert installed_tree("the-thing", [str(site)]).tree != before.tree


@pytest.mark.spec("B-092")
def test_what_the_installer_notes_has_no_effect(tmp_path):
    site = as_wheel(tmp_path)
    before = installed_tree("the-thing", [str(site)])
    for name in LEFT_OUT_OF_METADATA:
        path = site / "the_thing-1.0.dist-info" / name
        path.write_bytes((path.read_bytes() if path.exists() else b"") + b"\n")
    assert installed_tree("the-thing", [str(site)]) == before
    (site / "the_thing-1.0.dist-info" / "entry_points.txt").write_bytes(b"[casebound]\nthing = thing:other\n")
    assert installed_tree("the-thing", [str(site)]) != before


@pytest.mark.spec("B-088")
def test_metadata_is_declared_by_its_raw_bytes(tmp_path):
    site = as_wheel(tmp_path)
    assert declaration_of("the-thing", [str(site)]).digest == digest_of(METADATA["METADATA"])


@pytest.mark.parametrize(
    ("spoil", "found"),
    [
        (lambda site: shutil.rmtree(site / "the_thing-1.0.dist-info"), "it is not installed"),
        (lambda site: (site / "the_thing-1.0.dist-info" / "RECORD").write_text("../bin/thing,,\n"), "no module"),
        (lambda site: shutil.rmtree(site / "thing"), "No such file"),
        (lambda site: (site / "the_thing-1.0.dist-info" / "RECORD").write_text("x" * 200_000), "RECORD"),
        (lambda site: (site / "the_thing-1.0.dist-info" / "METADATA").unlink(), "not installed"),
    ],
)
def test_a_distribution_that_cannot_be_bound_is_named(tmp_path, spoil, found):
    site = as_wheel(tmp_path)
    spoil(site)
    with pytest.raises(SettingsError, match=found) as caught:
        installed_tree("the-thing", [str(site)])
    assert caught.value.code == "BENCH_IDENTITY"
    assert "thing" in str(caught.value)
