"""Files that appear whole, and what killed processes leave."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from discreet.io.whole_file import OWNER_ONLY_FILE, PUBLIC_FILE, whole_file

KILLED = """
import os, signal, sys
from pathlib import Path
from discreet.io.whole_file import OWNER_ONLY_FILE, whole_file
with whole_file(Path(sys.argv[1]), OWNER_ONLY_FILE) as draft:
    draft.write_text("confidential")
    os.kill(os.getpid(), signal.SIGKILL)
"""
NAMES = ["key.json", "key", ".hidden.json", "x" * 200 + ".json", "a[0]*.json"]


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("name", NAMES)
def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    for _ in range(2):
        ended = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
        assert ended.returncode == -signal.SIGKILL
        assert len(names(tmp_path)) == 1
    with whole_file(path, OWNER_ONLY_FILE) as draft:
        assert names(tmp_path) == {draft.name}
        draft.write_text("whole")
    assert names(tmp_path) == {name}
    assert path.read_text() == "whole"
    assert path.stat().st_mode & 0o777 == OWNER_ONLY_FILE


def test_a_draft_that_is_written_to_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "key.json"
    with whole_file(path, PUBLIC_FILE) as slow:
        slow.write_text("slow")
        with whole_file(path, PUBLIC_FILE) as fast:
            fast.write_text("fast")
            assert names(tmp_path) == {slow.name, fast.name}
        assert path.read_text() == "fast"
    assert path.read_text() == "slow"
    assert names(tmp_path) == {"key.json"}


def test_only_drafts_are_removed(tmp_path: Path) -> None:
    path = tmp_path / "key.json"
    others = (
        ".key.json.0123456789abcdef",  # of another suffix
        ".key.json.0123456789abcde.json",
        ".key.json.0123456789abcdeg.json",
        ".key.json.0123456789ABCDEF.json",
        "key.json.0123456789abcdef.json",
        ".yek.json.0123456789abcdef.json",
    )
    for name in others:
        (tmp_path / name).write_text("mine")
    (tmp_path / "target").write_text("mine")
    link = tmp_path / ".key.json.1111111111111111.json"
    link.symlink_to("target")
    (tmp_path / ".key.json.2222222222222222.json").mkdir()
    os.mkfifo(tmp_path / ".key.json.3333333333333333.json")
    before = names(tmp_path)
    with whole_file(path, PUBLIC_FILE) as draft:
        draft.write_text("whole")
    assert names(tmp_path) == before | {"key.json"}
