"""A standalone cluster of Spark on the loopback interface: a master and two workers, each with its own executor."""

import ctypes
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pyspark

from tests.waiting import PATIENCE, until

SCRIPT = Path(pyspark.__file__).parent / "bin" / "spark-class"
ADDRESS = re.compile(r"Starting Spark master at (spark://\S+)")


@dataclass(frozen=True)
class Cluster:
    """A running cluster; everything that its processes write is below its folder."""

    master: str
    workers: tuple[subprocess.Popen[bytes], ...]
    folder: Path

    def executors(self) -> list[psutil.Process]:
        """The processes of executors that run now."""
        return [
            child
            for worker in self.workers
            for child in psutil.Process(worker.pid).children()
            if "CoarseGrainedExecutorBackend" in " ".join(_command(child))
        ]

    def kill_an_executor(self, which: int) -> int:
        """Kill one executor by its process id; the ids of its Python workers end with it."""
        running = until(self.executors)
        chosen = running[which % len(running)]
        chosen.send_signal(signal.SIGKILL)
        return int(chosen.pid)


def _command(process: psutil.Process) -> list[str]:
    try:
        return list(process.cmdline())
    except psutil.NoSuchProcess:
        return []


def _end_with_the_tests() -> None:
    """Let Linux end this process when the tests are killed."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "prctl"):
        libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


@contextmanager
def running_cluster(folder: Path) -> Iterator[Cluster]:
    """Start a cluster and stop it."""
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_NO_DAEMONIZE": "1"}
    environment |= {
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_LOCAL_DIRS": str(folder / "local"),
    }
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str, *given: str) -> subprocess.Popen[bytes]:
        with (folder / f"{name}.log").open("wb") as log:
            one = subprocess.Popen(
                [SCRIPT, *given],
                env=environment,
                stdout=log,
                stderr=log,
                preexec_fn=_end_with_the_tests,  # noqa: PLW1509
            )
        started.append(one)
        return one

    try:
        deploy = "org.apache.spark.deploy"
        own = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        start("master", f"{deploy}.master.Master", *own)
        address = until(lambda: "".join(ADDRESS.findall((folder / "master.log").read_text())))
        size = ("--cores", "1", "--memory", "1g")
        workers = tuple(
            start(
                f"worker{k}",
                f"{deploy}.worker.Worker",
                *own,
                *size,
                "--work-dir",
                str(folder / f"work{k}"),
                address,
            )
            for k in range(2)
        )
        until(lambda: (folder / "master.log").read_text().count("Registering worker") == 2)
        yield Cluster(address, workers, folder)
    finally:
        for one in reversed(started):
            for child in psutil.Process(one.pid).children(recursive=True) if one.poll() is None else ():
                _end(child)
            one.kill()
            one.wait(PATIENCE)


def _end(process: psutil.Process) -> None:
    with suppress(psutil.NoSuchProcess):
        process.kill()
