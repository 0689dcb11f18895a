from __future__ import annotations

from pathlib import Path

import pytest
from casebound.bench.place import find_repositories, find_repository, refuse_output, write_folder
from casebound.errors import SettingsError


@pytest.fixture
def repository(tmp_path) -> Path:
    root = tmp_path / "repository"
    (root / ".git").mkdir(parents=True)
    (root / "core" / "src").mkdir(parents=True)
    return root


def refused(output: Path, *repositories: Path) -> str:
    with pytest.raises(SettingsError) as caught:
        refuse_output(output, repositories)
    assert (caught.value.code, caught.value.path) == ("BENCH_OUTPUT", str(output))
    return caught.value.found or ""


# --- which repository -----------------------------------------------------------------------------------------------


def test_a_repository_is_the_nearest_folder_with_git(repository):
    (repository / "core" / "pyproject.toml").touch()
    assert find_repository(repository / "core" / "src") == repository
    (repository / "core" / "src" / ".git").write_text("gitdir: elsewhere\n")
    assert find_repository(repository / "core" / "src" / "x.json") == repository / "core" / "src"


def test_without_git_it_is_the_root_pyproject(tmp_path):
    inner = tmp_path / "work" / "core" / "src"
    inner.mkdir(parents=True)
    (tmp_path / "work" / "core" / "pyproject.toml").touch()
    (tmp_path / "work" / "pyproject.toml").touch()
    assert find_repository(inner) == tmp_path / "work"


@pytest.mark.spec("B-099")
def test_a_start_behind_a_link_is_followed_to_its_repository(repository, tmp_path):
    (repository / "corpus.json").touch()
    (tmp_path / "corpus.json").symlink_to(repository / "corpus.json")
    assert find_repository(tmp_path / "corpus.json") == repository


@pytest.mark.spec("B-099")
def test_both_ends_of_a_link_between_repositories_are_found(repository, tmp_path):
    (repository / "corpus.json").touch()
    other = tmp_path / "other"
    (other / ".git").mkdir(parents=True)
    (other / "corpus.json").symlink_to("../repository/corpus.json")
    assert find_repositories(other / "corpus.json") == [other, repository]
    assert find_repository(other / "corpus.json") == other
    assert find_repositories(repository / "corpus.json") == [repository]


# --- where a bundle may go ------------------------------------------------------------------------------------------


@pytest.mark.spec("B-098")
@pytest.mark.parametrize("path", ["bundle", "./bundle", "../bundle", "~/bundle"])
def test_a_relative_path_is_refused(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert refused(Path(path)) == "a relative path"


@pytest.mark.spec("B-099")
def test_a_place_in_the_repository_is_refused(repository):
    assert "in the repository" in refused(repository / "bundle", repository)
    assert "in the repository" in refused(repository / "core" / "src" / "bundle", repository)


@pytest.mark.spec("B-099")
def test_a_place_in_the_repository_through_links_is_refused(repository, tmp_path):
    (tmp_path / "outside").symlink_to(repository / "core")
    assert "in the repository" in refused(tmp_path / "outside" / "bundle", repository)
    (tmp_path / "alias").symlink_to(repository)
    assert "in the repository" in refused(repository / "bundle", tmp_path / "alias")
    (tmp_path / "free").mkdir()
    (repository / "way-out").symlink_to(tmp_path / "free")
    assert "in the repository" in refused(repository / "way-out" / "bundle", repository)


def test_a_way_up_is_refused_even_where_it_would_lead_outside(repository, tmp_path):
    assert "does not name a new folder" in refused(repository / ".." / "bundle", repository)


def test_a_neighbour_with_a_longer_name_is_no_part_of_the_repository(repository, tmp_path):
    (tmp_path / "repository-bundles").mkdir()
    refuse_output(tmp_path / "repository-bundles" / "one", [repository])


@pytest.mark.spec("B-100")
def test_the_parent_must_be_a_folder(tmp_path):
    (tmp_path / "file").touch()
    assert refused(tmp_path / "nowhere" / "bundle") == "no folder that would hold it"
    assert refused(tmp_path / "file" / "bundle") == "no folder that would hold it"


@pytest.mark.spec("B-100", "B-104")
def test_the_target_must_not_exist_in_any_form(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    for name in ("empty", "file", "dangling"):
        assert refused(tmp_path / name) == "something that is there already"


# --- writing --------------------------------------------------------------------------------------------------------


def test_a_folder_is_written_whole(tmp_path):
    write_folder(tmp_path / "bundle", {"a": b"1", "inner/b": b"2"})
    assert (tmp_path / "bundle" / "inner" / "b").read_bytes() == b"2"
    assert [path.name for path in tmp_path.iterdir()] == ["bundle"]


def test_a_folder_that_appears_meanwhile_is_not_replaced(tmp_path):
    (tmp_path / "bundle").mkdir()
    with pytest.raises(SettingsError, match="BENCH_OUTPUT"):
        write_folder(tmp_path / "bundle", {"a": b"1"})
    assert list((tmp_path / "bundle").iterdir()) == []
    assert [path.name for path in tmp_path.iterdir()] == ["bundle"]


def test_what_cannot_be_written_leaves_nothing(tmp_path):
    with pytest.raises(SettingsError, match="BENCH_OUTPUT"):
        write_folder(tmp_path / "bundle", {"a": b"1", "a/b": b"2"})
    assert list(tmp_path.iterdir()) == []
