"""A folder that appears whole or not at all; that of a release is tested in tests/release/test_folder.py."""

import ctypes
import errno
import os
import stat
import sys
from pathlib import Path

import pytest

from discreet.errors import Mistakes
from discreet.io import atomic_folder, whole_file
from discreet.io.atomic_folder import OWNER_ONLY, PUBLIC, AtomicFolder, exchange, require_free


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def write(folder: AtomicFolder, **files: str) -> None:
    for name, text in files.items():
        with folder.file(name.replace("_", "/")) as file:
            file.write(text.encode())


def read(place: Path) -> dict[str, str]:
    return {
        path.relative_to(place).as_posix(): path.read_text() for path in place.rglob("*") if path.is_file()
    }


def any_folder(place: Path, option: str) -> None:
    """Whatever is there may be replaced."""


def test_it_appears_when_it_is_published_and_not_before(tmp_path: Path) -> None:
    with AtomicFolder(tmp_path / "deep" / "out", "--out") as folder:
        write(folder, a="1", sub_b="2")
        assert not (tmp_path / "deep" / "out").exists()
        assert read(folder.tree) == {"a": "1", "sub/b": "2"}
        folder.publish()
    assert read(tmp_path / "deep" / "out") == {"a": "1", "sub/b": "2"}
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["out"]


def test_what_is_not_published_is_gone_and_what_was_there_stays(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with AtomicFolder(tmp_path / "out", "--out") as folder:
        write(folder, a="1")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert read(tmp_path / "out") == {}


@pytest.mark.parametrize(("permissions", "others"), [(OWNER_ONLY, 0), (PUBLIC, 0o055)])
def test_permissions_are_those_asked_for_under_the_umask(
    tmp_path: Path, permissions: atomic_folder.Permissions, others: int
) -> None:
    before = os.umask(0o022)
    try:
        with AtomicFolder(tmp_path / "out", "--out", permissions=permissions) as folder:
            write(folder, a="1", sub_b="2")
            assert (
                mode(folder.tree.parent) == 0o700
            )  # whatever is asked for: only the owner sees it unfinished
            assert mode(tmp_path / ".out.lock") == 0o600
            folder.publish()
    finally:
        os.umask(before)
    out = tmp_path / "out"
    assert [mode(out), mode(out / "sub")] == [0o700 | others] * 2
    assert [mode(out / "a"), mode(out / "sub" / "b")] == [0o600 | (others & 0o044)] * 2


def test_a_filled_folder_is_replaced_only_where_that_is_allowed(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "old").write_text("old")
    with pytest.raises(Mistakes, match="exists and is not empty"), AtomicFolder(tmp_path / "out", "--out"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    with AtomicFolder(tmp_path / "out", "--out", require_replaceable=any_folder) as folder:
        write(folder, new="new")
        assert read(tmp_path / "out") == {"old": "old"}
        folder.publish()
    assert read(tmp_path / "out") == {"new": "new"}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_whether_a_place_is_free(tmp_path: Path) -> None:
    require_free(tmp_path / "missing", "--out")
    (tmp_path / "empty").mkdir()
    require_free(tmp_path / "empty", "--out")
    (tmp_path / "file").write_text("x")
    with pytest.raises(Mistakes, match="is a file; choose a folder that does not exist yet"):
        require_free(tmp_path / "file", "--out")
    with pytest.raises(Mistakes, match="exists and is not empty"):
        require_free(tmp_path, "--out")


def test_only_a_run_with_an_id_is_resumed_and_its_drafts_are_not(tmp_path: Path) -> None:
    with AtomicFolder(tmp_path / "out", "--out", run_id="one") as folder:
        write(folder, a="1")
        folder.record("step one", b"done")
        with folder.draft("half") as draft:
            draft.write_text("half")
            (folder.tree.parent / "drafts" / "other").write_text("left by a run that was killed")
    work = tmp_path / ".out.one.partial"
    assert mode(work) == 0o700
    with AtomicFolder(tmp_path / "out", "--out", run_id="one") as folder:
        assert read(folder.tree) == {"a": "1", "half": "half"}
        assert read(folder.records) == {"step one": "done"}
        assert list((work / "drafts").iterdir()) == []
        folder.discard()
    assert list(tmp_path.iterdir()) == []


def test_drafts_of_names_alike_do_not_meet(tmp_path: Path) -> None:
    with AtomicFolder(tmp_path / "out", "--out") as folder:
        with folder.draft("a/b") as first, folder.draft("a_b") as second, folder.draft("a%2Fb") as third:
            assert len({first, second, third}) == 3
            for number, draft in enumerate((first, second, third)):
                draft.write_text(str(number))
        folder.publish()
    assert read(tmp_path / "out") == {"a/b": "0", "a_b": "1", "a%2Fb": "2"}


def test_what_is_not_to_be_kept_goes_with_the_folders_it_leaves_empty(tmp_path: Path) -> None:
    with AtomicFolder(tmp_path / "out", "--out") as folder:
        write(folder, a="1", sub_b="2", sub_deep_c="3", other_deep_d="4")
        folder.keep_only({"a", "sub/deep/c"})
        folder.publish()
    out = tmp_path / "out"
    assert read(out) == {"a": "1", "sub/deep/c": "3"}
    assert sorted(p.relative_to(out).as_posix() for p in out.rglob("*") if p.is_dir()) == ["sub", "sub/deep"]


def test_every_file_and_folder_is_on_disk_before_it_is_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[Path] = []
    real = whole_file.sync

    def noted(path: Path) -> None:
        synced.append(path)
        real(path)

    monkeypatch.setattr(atomic_folder, "sync", noted)
    with AtomicFolder(tmp_path / "out", "--out") as folder:
        write(folder, a="1", sub_b="2")
        drafts, tree = folder.tree.parent / "drafts", folder.tree
        first, own, second, sub = synced
        assert (own, sub) == (tree, tree / "sub")
        assert [one.parent for one in (first, second)] == [drafts, drafts]
        assert [one.stem for one in (first, second)] == ["a", "sub%2Fb"]
        synced.clear()
        folder.publish()
    assert set(synced) == {tree, tree / "sub", tmp_path}
    assert synced[-1] == tmp_path


def test_the_lock_is_held_and_given_back(tmp_path: Path) -> None:
    with AtomicFolder(tmp_path / "out", "--out"):
        with pytest.raises(Mistakes, match="another run is writing it; wait until it ends"):
            AtomicFolder(tmp_path / "out", "--out").__enter__()
        assert (tmp_path / ".out.lock").exists()
        with AtomicFolder(tmp_path / "other", "--out"):
            pass
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(KeyboardInterrupt), AtomicFolder(tmp_path / "out", "--out"):
        raise KeyboardInterrupt
    with AtomicFolder(tmp_path / "out", "--out") as folder:
        folder.publish()


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    def opened() -> int:
        return len(list(Path("/dev/fd").iterdir()))

    before = opened()
    for _ in range(3):
        with AtomicFolder(tmp_path / "out", "--out", require_replaceable=any_folder) as folder:
            write(folder, a="1")
            with pytest.raises(Mistakes):
                AtomicFolder(tmp_path / "out", "--out").__enter__()
            folder.publish()
    assert opened() == before


def test_a_place_that_cannot_be_written_is_a_mistake_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Mistakes, match="cannot be written: File exists"):
        AtomicFolder(tmp_path / "file" / "out", "--out").__enter__()


def test_a_run_id_consists_of_letters_and_digits(tmp_path: Path) -> None:
    for wrong in ("a/b", "a.b", " "):
        with pytest.raises(ValueError, match="letters and digits"):
            AtomicFolder(tmp_path / "out", "--out", run_id=wrong)
    AtomicFolder(tmp_path / "out", "--out", run_id="a1")


def test_the_exchange_is_tried_before_a_filled_folder_is_to_be_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(first: Path, second: Path, option: str) -> None:
        raise atomic_folder._cannot_exchange(second, option)

    monkeypatch.setattr(atomic_folder, "exchange", refused)
    with AtomicFolder(tmp_path / "fresh", "--out", require_replaceable=any_folder) as folder:
        folder.publish()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "old").write_text("old")
    with pytest.raises(Mistakes) as raised:
        AtomicFolder(tmp_path / "out", "--out", require_replaceable=any_folder).__enter__()
    assert str(tmp_path / "out") in str(raised.value)
    assert "drafts" not in str(raised.value)
    with pytest.raises(Mistakes, match="cannot exchange"):
        exchange(tmp_path / "out", tmp_path / "missing", "--out")


def test_folders_named_from_where_the_process_stands_are_exchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / name).write_text(name)
    monkeypatch.chdir(tmp_path)
    exchange(Path("a"), Path("b"), "--out")
    assert read(tmp_path) == {"a/b": "b", "b/a": "a"}


def test_macos_exchanges_by_a_call_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """renamex_np with RENAME_SWAP = 2 (sys/stdio.h), which other systems must not be asked for."""
    calls: list[tuple[bytes, bytes, int]] = []

    class Library:
        def renamex_np(self, first: bytes, second: bytes, flags: ctypes.c_uint) -> int:
            calls.append((first, second, flags.value))
            return 0

    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: Library())
    monkeypatch.setattr(sys, "platform", "darwin")
    exchange(tmp_path / "a", tmp_path / "b", "--out")
    assert calls == [(bytes(tmp_path / "a"), bytes(tmp_path / "b"), 2)]
    monkeypatch.setattr(sys, "platform", "linux")
    with pytest.raises(Mistakes, match="cannot exchange"):
        exchange(tmp_path / "a", tmp_path / "b", "--out")


def test_a_run_with_an_id_removes_what_one_without_left(tmp_path: Path) -> None:
    for left in (".out.partial", ".out.two.partial", ".other.partial"):
        (tmp_path / left).mkdir()
    with AtomicFolder(tmp_path / "out", "--out", run_id="one") as folder:
        folder.publish()
    assert sorted(path.name for path in tmp_path.iterdir()) == [".other.partial", "out"]


def test_modes_are_named() -> None:
    with pytest.raises(TypeError):
        atomic_folder.Permissions(0o600, 0o700)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    "error",
    [OSError(errno.ENOSPC, "x"), OSError(errno.ENOSPC, "Error writing bytes to file. Detail: [errno 28] ..")],
)
def test_a_full_disk_is_a_mistake_that_names_the_folder(error: OSError, tmp_path: Path) -> None:
    """Whoever notices it: Python, or Arrow with a sentence of its own."""
    place = tmp_path / "o"
    with (
        pytest.raises(Mistakes) as told,
        AtomicFolder(place, "--out") as folder,
        folder.draft("a.csv"),
    ):
        raise error
    assert str(told.value) == f"{place}: --out: cannot be written: No space left on device; make room"
    assert not list(tmp_path.iterdir())
