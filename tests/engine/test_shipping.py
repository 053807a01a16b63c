"""How executors get the package: a zip file, an archive with an environment, or not at all; on a real cluster."""

import shutil
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import discreet
from tests.engine.java import require_java
from tests.engine.standalone_cluster import Cluster, running_cluster
from tests.engine.test_cluster import Office
from tests.waiting import PATIENCE

PACKAGE = Path(discreet.__file__).parent


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    require_java()
    with running_cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All libraries of this environment, without the package."""
    folder = tmp_path_factory.mktemp("libraries")
    for place in dict.fromkeys(path for path in sys.path if path.endswith("site-packages")):
        for path in Path(place).iterdir():
            if "discreet" not in path.name and path.suffix != ".pth" and not (folder / path.name).exists():
                (folder / path.name).symlink_to(path)
    return folder


def python_with(folder: Path, *paths: Path | str) -> Path:
    """A Python of a node: the interpreter, and only these folders beside what Spark adds."""
    program = folder / "bin" / "python"
    program.parent.mkdir(parents=True, exist_ok=True)
    added = ":".join(map(str, paths))
    base = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    program.write_text(f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{added}" exec {base} -s "$@"\n')
    program.chmod(0o755)
    return program


def zipped(path: Path, changed: str = "") -> Path:
    """The package as a zip file; ``changed``: the same with other code."""
    with zipfile.ZipFile(path, "w") as archive:
        for one in sorted(PACKAGE.rglob("*")):
            if one.is_file() and "__pycache__" not in one.parts:
                archive.write(one, one.relative_to(PACKAGE.parent))
        if changed:
            archive.writestr("discreet/more.py", changed)
    return path


@pytest.mark.long
def test_a_zip_file_makes_the_same_release(
    cluster: Cluster, libraries: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = zipped(tmp_path / "discreet.zip")
    more = f'spark.submit.pyFiles = "{archive}"\nspark.executorEnv.XDG_CACHE_HOME = "{tmp_path / "cache"}"\n'
    office = Office(tmp_path / "office", cluster, more)
    wanted = office.run(office.twin, tmp_path / "embedded")
    monkeypatch.setenv("PYSPARK_PYTHON", str(python_with(tmp_path / "node", libraries)))
    assert office.run(office.programme, tmp_path / "release") == wanted
    assert list((tmp_path / "cache").rglob("*.kernel"))


@pytest.mark.long
def test_an_archive_with_an_environment_makes_the_same_release(
    cluster: Cluster, libraries: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As ``venv-pack`` makes it; its interpreter loads the package once for all workers of an executor."""
    inside = tmp_path / "environment"
    python_with(inside, "$(dirname $0)/../lib", libraries)
    shutil.copytree(PACKAGE, inside / "lib" / "discreet", ignore=shutil.ignore_patterns("__pycache__"))
    packed = tmp_path / "environment.tar.gz"
    with tarfile.open(packed, "w:gz") as archive:
        archive.add(inside, arcname=".")
    more = f'spark.archives = "{packed}#environment"\nspark.python.daemon.module = "discreet.engine.daemon"\n'
    office = Office(tmp_path / "office", cluster, more)
    wanted = office.run(office.twin, tmp_path / "embedded")
    monkeypatch.setenv("PYSPARK_PYTHON", "./environment/bin/python")
    monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", sys.executable)
    assert office.run(office.programme, tmp_path / "release") == wanted


@pytest.mark.long
@pytest.mark.parametrize(
    ("changed", "message"),
    [("", "executors: no package discreet on"), ("# other", "executors: another version of discreet on")],
)
def test_executors_without_the_package_or_with_another_are_refused(
    cluster: Cluster,
    libraries: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    changed: str,
    message: str,
) -> None:
    other = zipped(tmp_path / "discreet.zip", changed) if changed else libraries
    office = Office(tmp_path / "office", cluster)
    monkeypatch.setenv("PYSPARK_PYTHON", str(python_with(tmp_path / "node", libraries, other)))
    running = office.start(tmp_path / "release")
    _, wrong = running.communicate(timeout=PATIENCE)
    lines = [line for line in wrong.splitlines() if "executors" in line]
    assert running.returncode == 2, wrong
    assert len(lines) == 1
    assert message in lines[0]
    assert "docs/how-to/move-to-spark.md" in lines[0]
    assert "Traceback" not in wrong
    assert not (tmp_path / "release").exists()
