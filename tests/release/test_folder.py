import fcntl
import multiprocessing
import os
import random
import shutil
import signal
import stat
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from discreet.errors import Mistakes
from discreet.io import atomic_folder, whole_file
from discreet.io.atomic_folder import exchange
from discreet.programme.release import ReleaseFormat
from discreet.release.assemble import write_cube
from discreet.release.folder import ReleaseFolder
from discreet.release.manifest import read_manifest
from discreet.release.verify import verify
from tests.release.small import PUBLICATION, cubes, publish, table


def beside(target: Path) -> set[str]:
    return {path.name for path in target.parent.iterdir()}


def version_of(target: Path) -> int:
    """Which whole release stands at the target; anything else fails."""
    assert verify(target).problems == ()
    found = [version for version in (0, 1) if read_manifest(target) == MADE[version]]
    assert len(found) == 1
    return found[0]


MADE: dict[int, object] = {}


@pytest.fixture(scope="module", autouse=True)
def both_versions(tmp_path_factory: pytest.TempPathFactory) -> None:
    for version in (0, 1):
        MADE[version] = publish(tmp_path_factory.mktemp("made") / "r", version=version)


def test_a_release_appears_whole_and_alone(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "release"
    publish(target)
    assert version_of(target) == 0
    assert beside(target) == {"release"}


def test_an_old_release_is_replaced_whole(tmp_path: Path) -> None:
    publish(tmp_path / "r", version=0, formats=tuple(ReleaseFormat))
    publish(tmp_path / "r", version=1)
    assert version_of(tmp_path / "r") == 1
    assert beside(tmp_path / "r") == {"r"}


def test_an_empty_folder_may_be_filled(tmp_path: Path) -> None:
    (tmp_path / "r").mkdir()
    publish(tmp_path / "r")
    assert version_of(tmp_path / "r") == 0


def test_a_linked_target_stays_a_link(tmp_path: Path) -> None:
    publish(tmp_path / "real")
    (tmp_path / "r").symlink_to("real")
    publish(tmp_path / "r", version=1)
    assert (tmp_path / "r").is_symlink()
    assert version_of(tmp_path / "real") == 1


def test_a_folder_that_is_no_release_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "thesis.txt").write_text("years of work")
    with pytest.raises(Mistakes, match="not a release of Discreet"):
        publish(tmp_path / "r")
    assert (tmp_path / "r" / "thesis.txt").read_text() == "years of work"
    assert beside(tmp_path / "r") == {"r"}


def test_a_release_with_other_files_is_left_alone(tmp_path: Path) -> None:
    """A secret that someone put there would be removed with the release."""
    publish(tmp_path / "r")
    (tmp_path / "r/parquet").mkdir(exist_ok=True)
    (tmp_path / "r/parquet/.DS_Store").write_text("")
    publish(tmp_path / "r", version=1)
    for place in (".secret", "private/secret.key"):
        (tmp_path / "r" / place).parent.mkdir(exist_ok=True)
        (tmp_path / "r" / place).write_text("ab" * 32)
        with pytest.raises(
            Mistakes, match=rf"has the file '{place}', which is not one of the release; move it"
        ):
            publish(tmp_path / "r", version=2)
        (tmp_path / "r" / place).unlink()
    assert beside(tmp_path / "r") == {"r"}


def test_a_file_at_the_target_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "r").write_text("text")
    with pytest.raises(Mistakes, match="is a file"):
        publish(tmp_path / "r")


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Mistakes, match="choose a folder that you can write to"):
        publish(tmp_path / "file" / "r")


def test_a_folder_that_fills_up_meanwhile_is_left_alone(tmp_path: Path) -> None:
    def disturb() -> None:
        (tmp_path / "r").mkdir()
        (tmp_path / "r" / "thesis.txt").write_text("years of work")

    with pytest.raises(Mistakes, match="not a release of Discreet"):
        publish(tmp_path / "r", before_publish=disturb)
    assert (tmp_path / "r" / "thesis.txt").exists()


def test_two_runs_do_not_meet(tmp_path: Path) -> None:
    with (
        ReleaseFolder(tmp_path / "r", "one"),
        pytest.raises(Mistakes, match="another run"),
        ReleaseFolder(tmp_path / "r", "two"),
    ):
        pass
    publish(tmp_path / "r", run_id="two")
    assert version_of(tmp_path / "r") == 0


def test_a_run_id_is_plain() -> None:
    with pytest.raises(ValueError, match="letters and digits"):
        ReleaseFolder(Path("r"), "../x")


def interrupted(target: Path, run_id: str, count: int) -> list[str]:
    """Write some cubes and stop as a killed run does; give the ids of those that were finished before."""
    found = []
    with ReleaseFolder(target, run_id) as folder:
        for of in cubes()[:count]:
            if folder.finished(of.id):
                found.append(of.id)
            else:
                write_cube(folder, table(of), PUBLICATION, [ReleaseFormat.PARQUET])
    return found


def test_finished_cubes_are_taken_up_by_the_next_run(tmp_path: Path) -> None:
    assert interrupted(tmp_path / "r", "one", 2) == []
    assert interrupted(tmp_path / "r", "one", 3) == ["1.1", "2.1"]
    publish(tmp_path / "r", run_id="one")
    assert version_of(tmp_path / "r") == 0
    assert beside(tmp_path / "r") == {"r"}


def test_only_the_owner_can_open_the_work_folder_and_anyone_the_release(tmp_path: Path) -> None:
    interrupted(tmp_path / "r", "one", 1)
    work = tmp_path / ".r.one.partial"
    assert stat.S_IMODE(work.stat().st_mode) == 0o700
    work.chmod(0o755)  # as an earlier version made it
    interrupted(tmp_path / "r", "one", 1)
    assert stat.S_IMODE(work.stat().st_mode) == 0o700
    publish(tmp_path / "r", run_id="one")
    (tmp_path / "plain").mkdir()
    assert (tmp_path / "r").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_damaged_cube_is_done_again(tmp_path: Path) -> None:
    interrupted(tmp_path / "r", "one", 2)
    (tmp_path / ".r.one.partial" / "tree" / "parquet" / "1.1.parquet").write_bytes(b"half")
    (tmp_path / ".r.one.partial" / "records" / "2.1.json").write_text("half")
    assert interrupted(tmp_path / "r", "one", 2) == []
    publish(tmp_path / "r", run_id="one")
    assert version_of(tmp_path / "r") == 0


def test_what_other_runs_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    interrupted(tmp_path / "r", "one", 1)
    others = {".r.b.one.partial", ".rr.one.partial", ".r.one.partial2", "r.one.partial"}
    for name in others:
        (tmp_path / name).mkdir()
    publish(tmp_path / "r", run_id="two")
    assert beside(tmp_path / "r") == {"r", *others}


def test_giving_up_leaves_nothing(tmp_path: Path) -> None:
    with ReleaseFolder(tmp_path / "r", "one") as folder:
        write_cube(folder, table(cubes()[0]), PUBLICATION, [ReleaseFormat.PARQUET])
        folder.discard()
    assert list(tmp_path.iterdir()) == []


def test_unlisted_leftovers_are_not_published(tmp_path: Path) -> None:
    interrupted(tmp_path / "r", "one", 1)
    tree = tmp_path / ".r.one.partial" / "tree"
    (tree / "old").mkdir()
    (tree / "old" / "manifest.json").write_text("{}")
    publish(tmp_path / "r", run_id="one")
    assert version_of(tmp_path / "r") == 0
    assert not (tmp_path / "r" / "old").exists()


def test_a_file_system_without_exchange_is_named_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class NoLibrary:
        def __init__(self, *_: object, **__: object) -> None: ...

    publish(tmp_path / "r")
    monkeypatch.setattr("ctypes.CDLL", NoLibrary)
    with pytest.raises(Mistakes, match="publish to a folder that does not exist yet"):
        publish(tmp_path / "r", version=1)
    assert version_of(tmp_path / "r") == 0
    publish(tmp_path / "fresh", version=1)


def test_exchange_swaps_two_folders(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / name).write_text(name)
    exchange(tmp_path / "a", tmp_path / "b", "--out")
    assert (tmp_path / "a" / "b").exists()
    with pytest.raises(Mistakes):
        exchange(tmp_path / "a", tmp_path / "missing", "--out")


class Killed(BaseException):
    """Stands for the death of the process."""


def dying_at(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the run die at the given step of those that touch the disk."""
    left = [step]

    def counted(real: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object, **named: object) -> object:
            left[0] -= 1
            if left[0] < 0:
                raise Killed
            return real(*arguments, **named)

        return call

    monkeypatch.setattr(atomic_folder, "sync", counted(whole_file.sync))
    monkeypatch.setattr(atomic_folder, "exchange", counted(exchange))
    monkeypatch.setattr(shutil, "rmtree", counted(shutil.rmtree))
    monkeypatch.setattr(Path, "replace", counted(Path.replace))
    monkeypatch.setattr(Path, "rename", counted(Path.rename))
    monkeypatch.setattr(Path, "unlink", counted(Path.unlink))


def test_death_at_any_step_leaves_one_whole_release(tmp_path: Path) -> None:
    target = tmp_path / "r"
    publish(target, version=0)
    seen = []
    for step in range(1000):
        with pytest.MonkeyPatch.context() as patch:
            dying_at(step, patch)
            try:
                publish(target, version=1, run_id="next")
            except Killed:
                seen.append(version_of(target))
            else:
                break
        publish(target, version=0, run_id="back")
    assert version_of(target) == 1
    assert len(seen) > 40
    assert set(seen) == {0, 1}  # some steps come after the one that publishes
    assert seen == sorted(seen)


def publish_forever(target: Path) -> None:
    for number in range(1_000_000):
        publish(target, version=number % 2, run_id=f"run{number % 2}")


def killed_at_random(target: Path, rounds: int) -> None:
    """Kill a publishing process with SIGKILL again and again; each time the target must be whole."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.release.small"])
    chance = random.Random(1)
    publish(target, version=0)
    for _ in range(rounds):
        process = context.Process(target=publish_forever, args=(target,))
        process.start()
        time.sleep(chance.uniform(0.05, 0.4))
        assert process.is_alive()
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        version_of(target)
    publish(target, version=1)
    assert version_of(target) == 1
    assert beside(target) == {target.name}


def test_kill_at_random_moments(tmp_path: Path) -> None:
    killed_at_random(tmp_path / "r", 8)


@pytest.mark.long
def test_kill_at_many_random_moments(tmp_path: Path) -> None:
    killed_at_random(tmp_path / "r", 150)


def test_a_damaged_file_of_the_same_size_is_found(tmp_path: Path) -> None:
    interrupted(tmp_path / "r", "one", 1)
    file = tmp_path / ".r.one.partial" / "tree" / "parquet" / "1.1.parquet"
    file.write_bytes(bytes(len(file.read_bytes())))
    assert interrupted(tmp_path / "r", "one", 1) == []
    assert interrupted(tmp_path / "r", "one", 1) == ["1.1"]
    file.unlink()
    assert interrupted(tmp_path / "r", "one", 1) == []


def test_folders_with_names_like_work_folders_stay(tmp_path: Path) -> None:
    others = {".r.one", ".r.", "abc", ".zz", "one.partial"}
    for name in others:
        (tmp_path / name).mkdir()
    (tmp_path / ".r.partial").mkdir()  # the work folder of a run without an id: removed
    (tmp_path / ".r.file.partial").write_text("a file is no work folder")
    (tmp_path / ".r.link.partial").symlink_to("abc")
    publish(tmp_path / "r", run_id="two")
    assert beside(tmp_path / "r") == {"r", ".r.file.partial", ".r.link.partial", *others}


def test_folders_that_stay_empty_are_not_published(tmp_path: Path) -> None:
    interrupted(tmp_path / "r", "one", 1)
    tree = tmp_path / ".r.one.partial" / "tree"
    (tree / "old" / "older" / "oldest").mkdir(parents=True)
    (tree / "old" / "older" / "left.txt").write_text("half")
    publish(tmp_path / "r", run_id="one")
    assert not (tmp_path / "r" / "old").exists()


@pytest.mark.parametrize("again", [False, True], ids=["gone", "made anew"])
def test_a_lock_that_its_holder_has_just_removed_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, again: bool
) -> None:
    """Between opening and locking the holder ended and removed the file; a third run may have made it anew."""
    lock, flock = tmp_path / ".r.lock", fcntl.flock
    tries: list[int] = []

    def late(descriptor: int, kind: int) -> None:
        if not tries:
            lock.unlink()
            if again:
                lock.touch()
        tries.append(descriptor)
        flock(descriptor, kind)

    monkeypatch.setattr(fcntl, "flock", late)
    with ReleaseFolder(tmp_path / "r", "one") as folder:
        assert len(tries) == 2
        assert lock.exists()
        folder.discard()
    assert list(tmp_path.iterdir()) == []
