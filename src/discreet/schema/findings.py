"""Gathers everything that is wrong with one programme file, so that it is told at once.

It owns the list of problems, not the checks that find them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from discreet.errors import AbsentData, Mistakes, Problem


@dataclass
class Findings:
    """The problems found so far, and what later checks leave out because it is known as wrong."""

    path: Path
    problems: list[Problem] = field(default_factory=list)
    absent: set[Problem] = field(default_factory=set)  # the problems that are only data that are not there
    broken_sections: set[str] = field(default_factory=set)
    broken_variables: set[str] = field(default_factory=set)

    @property
    def folder(self) -> Path:
        """The folder that relative paths start from."""
        return self.path.absolute().parent

    def add(self, key: str, value: str, remedy: str) -> None:
        """Note a problem of the programme file."""
        self.problems.append(Problem(str(self.path), key, value, remedy))

    @contextmanager
    def gathering(self) -> Iterator[None]:
        """Note the problems that are raised inside, and go on after the block."""
        try:
            yield
        except Mistakes as mistakes:
            if isinstance(mistakes, AbsentData):
                self.absent.update(mistakes.problems)
            self.problems.extend(mistakes.problems)

    def mistakes(self) -> Mistakes:
        """Everything found, each thing once, ready to raise."""
        return Mistakes(dict.fromkeys(self.problems))
