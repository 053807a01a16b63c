"""The built wheel, installed outside the repository: complete, and usable without the groups that are optional."""

import re
import subprocess
import sys
import venv
import zipfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import pytest
from tools.wheel import built

from discreet.cli.app import COMMANDS, EXTRAS
from discreet.kernels import is_of_the_level

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
OLDEST = 80  # of setuptools, as pyproject.toml requires to build
NEEDS_SERVE = {"serve"}
WITHOUT_EXTRAS = f"import sys; sys.modules.update(dict.fromkeys({sorted(EXTRAS)!r})); "


def run(command: Sequence[object], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command outside of the repository, with nothing of this environment."""
    clean = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "NUMBA_CACHE_DIR": str(folder / "numba")}
    return subprocess.run(
        [str(word) for word in command], cwd=folder, capture_output=True, text=True, env=clean, check=False
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built by the setuptools of this environment from a copy of the source."""
    if int(version("setuptools").partition(".")[0]) < OLDEST:
        pytest.skip(
            f"THE WHEEL IS NOT TESTED: setuptools {OLDEST} is needed (pip install -r requirements-dev.lock)"
        )
    return built(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel; its dependencies are those of this environment, Discreet itself is not."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder / "env", with_pip=False)
    python = folder / "env" / "bin" / "python"
    command = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "-q",
        "--no-deps",
        "--no-index",
        wheel,
    ]
    done = run(command, folder)
    assert done.returncode == 0, done.stderr
    packages = next((folder / "env" / "lib").glob("python*")) / "site-packages"
    here = [path for path in sys.path if Path(path).name in {"site-packages", "dist-packages"}]
    (packages / "dependencies.pth").write_text("\n".join(here) + "\n")
    return folder


def test_every_file_of_the_package_is_in_the_wheel(wheel: Path) -> None:
    inside = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("discreet/")}
    files = {one.relative_to(SOURCE).as_posix() for one in (SOURCE / "discreet").rglob("*") if one.is_file()}
    assert {name for name in files if "__pycache__" not in name} <= inside
    kinds = {Path(name).suffix for name in inside}
    assert {".py", ".js", ".css", ".html", ".svg", ".mo", ".csv"} <= kinds


def test_the_demo_runs_from_the_wheel_and_needs_no_extra(installed: Path) -> None:
    done = run([installed / "env/bin/python", "-c", "import discreet; print(discreet.__file__)"], installed)
    assert done.stdout.startswith(str(installed)), done.stdout + done.stderr
    done = run([installed / "env/bin/discreet", "--version"], installed)
    assert done.stdout.strip().endswith(version("discreet")), done.stdout + done.stderr
    code = WITHOUT_EXTRAS + (
        "sys.argv = ['discreet', 'demo', '--out', 'demo', '--persons', '1000']; "
        "from discreet.cli.app import main; main()"
    )
    done = run([installed / "env/bin/python", "-c", code], installed)
    assert done.returncode == 0, done.stderr
    assert "agree everywhere" in done.stdout
    assert (installed / "demo/release/manifest.json").exists()


@pytest.mark.parametrize("persons", [3000, 200_000, 400_000])
def test_its_first_run_compiles_nothing(installed: Path, persons: int) -> None:
    if sys.platform != "linux" or not is_of_the_level():
        pytest.skip("wheels have machine code for Linux and x86-64 alone")
    code = (
        f"import sys; sys.argv = 'discreet demo --quiet --out first-{persons} --persons {persons}'.split()\n"
        "from discreet.cli.app import main\n"
        "try: main()\n"
        "finally: print('numba' in sys.modules)"
    )
    done = run([installed / "env/bin/python", "-c", code], installed)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("False\n")
    assert not (installed / "numba").exists()  # where it would have been stored


def test_every_file_of_the_page_is_served(installed: Path) -> None:
    code = """
from importlib.resources import files
page = files("discreet.serve.page").joinpath("files")
names = [one.name for one in page.iterdir()]
print(sorted(names))
"""
    done = run([installed / "env/bin/python", "-c", code], installed)
    assert done.returncode == 0, done.stderr
    expected = sorted(one.name for one in (SOURCE / "discreet/serve/page/files").iterdir())
    assert done.stdout.strip() == str(expected)
    assert len(expected) > 5


def test_commands_without_their_extra_end_with_one_line() -> None:
    for name in sorted(NEEDS_SERVE):
        code = (
            WITHOUT_EXTRAS
            + f"sys.argv = ['discreet', '{name}', 'x']; from discreet.cli.app import main; main()"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert done.returncode == 2, name
        assert re.fullmatch(
            r"(fastapi|starlette|uvicorn): not installed; run: pip install 'discreet\[serve\]'\n", done.stderr
        )


def test_no_other_command_needs_an_extra() -> None:
    others = [name for name in COMMANDS if name not in NEEDS_SERVE]
    code = (
        WITHOUT_EXTRAS
        + f"import importlib; [importlib.import_module('discreet.cli.' + one) for one in {others!r}]"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.long
def test_an_empty_environment_gets_all_dependencies_from_the_index(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "env", with_pip=True)
    done = subprocess.run(
        [tmp_path / "env/bin/pip", "install", "-q", wheel],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    done = run([tmp_path / "env/bin/discreet", "demo", "--out", "demo", "--persons", "20000"], tmp_path)
    assert done.returncode == 0, done.stderr
    assert "agree everywhere" in done.stdout
    done = run([tmp_path / "env/bin/discreet", "serve", "demo/census/programme.toml"], tmp_path)
    assert done.returncode == 2
    assert "pip install 'discreet[serve]'" in done.stderr
