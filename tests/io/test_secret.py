"""The office's secret: from where it is read, and what is refused without ever being shown."""

import os
import stat
from pathlib import Path

import pytest

from discreet.errors import Mistakes
from discreet.io.secret import make_secret, read_secret

DIGITS = "0123456789abcdef" * 4


def private(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o600)
    return path


def refusal(where: str, environment: dict[str, str] | None = None) -> str:
    with pytest.raises(Mistakes) as caught:
        read_secret(where, environment or {})
    said = str(caught.value)
    assert "\n" not in said
    assert DIGITS[:20] not in said
    return said


def test_a_made_secret_is_new_private_and_readable(tmp_path: Path) -> None:
    made = []
    for name in ("a.key", "b.key"):
        make_secret(tmp_path / name)
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
        made.append(read_secret(str(tmp_path / name), {}))
    assert len(made[0]) == 32
    assert made[0] != made[1]


def test_a_secret_is_never_overwritten(tmp_path: Path) -> None:
    path = private(tmp_path / "a.key", DIGITS)
    with pytest.raises(Mistakes, match="the file exists"):
        make_secret(path)
    assert path.read_text() == DIGITS
    with pytest.raises(Mistakes, match="no such file"):
        make_secret(tmp_path / "nowhere/a.key")


def test_file_environment_and_descriptor_give_the_same_secret(tmp_path: Path) -> None:
    path = private(tmp_path / "a.key", DIGITS + "\n")
    wanted = bytes.fromhex(DIGITS)
    assert read_secret(str(path), {}) == wanted
    assert read_secret("env:KEY", {"KEY": DIGITS}) == wanted
    reading, writing = os.pipe()
    os.write(writing, DIGITS.encode())
    os.close(writing)
    assert read_secret(f"fd:{reading}", {}) == wanted
    os.close(reading)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o601, 0o777])
def test_a_file_that_others_can_touch_is_refused(tmp_path: Path, mode: int) -> None:
    path = private(tmp_path / "a.key", DIGITS)
    path.chmod(mode)
    assert "chmod 600" in refusal(str(path))


@pytest.mark.parametrize(
    "text", ["", DIGITS[:-1], DIGITS[:-2], DIGITS + "00", "z" * 64, DIGITS * 2, "\xe9" * 64]
)
def test_wrong_lengths_and_digits_are_refused_everywhere(tmp_path: Path, text: str) -> None:
    path = private(tmp_path / "a.key", text)
    assert "not 64 hexadecimal digits" in refusal(str(path))
    assert "not 64 hexadecimal digits" in refusal("env:KEY", {"KEY": text})
    with path.open("rb") as file:
        assert "discreet secret --out" in refusal(f"fd:{file.fileno()}")


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    assert "no such file" in refusal(str(tmp_path / "nowhere.key"))
    assert "is a directory" in refusal(str(tmp_path))
    assert "not 64 hexadecimal digits" in refusal("env:KEY")
    for where in ("fd:987", "fd:-1", "fd:x", "fd:"):
        assert "no such file descriptor" in refusal(where)
