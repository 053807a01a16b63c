"""Folders of a process are gone when it ends, also when it was killed: then the next process removes them."""

import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from discreet.io.temporary_folder import TemporaryFolder, private_folder
from tests.waiting import PATIENCE

HELD = """
import sys, time
from pathlib import Path
from discreet.io.temporary_folder import TemporaryFolder
folder = TemporaryFolder(Path(sys.argv[1]))
(folder.path / "confidential").mkdir()
(folder.path / "confidential" / "counts").write_text("42")
print(folder.path, flush=True)
time.sleep(3600)
"""


def test_the_folder_of_a_killed_process_is_removed_and_that_of_a_living_one_stays(tmp_path: Path) -> None:
    given = [sys.executable, "-c", HELD, str(tmp_path)]
    with (
        subprocess.Popen(given, stdout=subprocess.PIPE, text=True) as killed,
        subprocess.Popen(given, stdout=subprocess.PIPE, text=True) as living,
    ):
        try:
            assert killed.stdout is not None
            assert living.stdout is not None
            left, used = Path(killed.stdout.readline().strip()), Path(living.stdout.readline().strip())
            assert left.stat().st_mode & 0o777 == 0o700
            killed.send_signal(signal.SIGKILL)
            killed.wait(PATIENCE)
            assert (left / "confidential" / "counts").exists()
            mine = TemporaryFolder(tmp_path)
            assert not left.exists()
            assert (used / "confidential" / "counts").exists()
            assert sorted(tmp_path.iterdir()) == sorted([mine.path, used])
        finally:
            living.kill()
            living.wait(PATIENCE)
    mine.remove()
    assert TemporaryFolder(tmp_path).path.parent == tmp_path
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_a_locked_folder_of_ours_stays(tmp_path: Path) -> None:
    (tmp_path / "discreet-of-others").mkdir()
    (tmp_path / "discreet-link").mkdir()
    (tmp_path / "elsewhere").write_text("")
    (tmp_path / "discreet-link" / ".lock").symlink_to(tmp_path / "elsewhere")
    project = tmp_path / "project"  # it has a lock of its own
    project.mkdir()
    (project / ".lock").write_text("")
    (tmp_path / "discreet-leads-elsewhere").symlink_to(project)
    (tmp_path / "discreet-open").mkdir()
    (tmp_path / "discreet-open").chmod(0o755)
    (tmp_path / "discreet-open" / ".lock").write_text("")
    before = sorted(tmp_path.iterdir())
    TemporaryFolder(tmp_path).remove()
    assert (project / ".lock").exists()
    assert sorted(tmp_path.iterdir()) == before


def test_a_private_folder_goes_with_its_block(tmp_path: Path) -> None:
    with suppress(ZeroDivisionError), private_folder(tmp_path) as folder:
        (folder / "truth").write_text("1")
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []
