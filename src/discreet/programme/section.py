"""What the sections of a programme file share: their base model, common types of values, and the collected problems."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, Tag
from pydantic_core import PydanticCustomError

from discreet.errors import AbsentData, Mistakes, Problem
from discreet.maths.exact_numbers import fraction, is_amount
from discreet.programme.definitions import LANGUAGE_TAG
from discreet.text.phrase import translated

FORM = "form"  # error type whose context has the remedy
LONGEST_LABEL = 200
LONGEST_DESCRIPTION = 4_000


STRICT = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)  # of every table of the file


class Declared(BaseModel):
    """A table of the file: unknown keys are refused and nothing is converted."""

    model_config = STRICT


def is_file(path: Path) -> bool:
    """Whether there is such a file; a name that no file can have is none."""
    try:
        return path.is_file()
    except OSError:
        return False


def with_home(path: str) -> Path:
    """A path, with ``~`` or ``~NAME`` at its beginning as the home of a user; as it is where there is no such home."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


def text_or_table(value: object) -> str:
    """Which of two forms a value has, as the tag of a tagged union."""
    return "|text" if isinstance(value, str) else "|table"


def text_or_languages(value: object) -> str:
    """Whether a text is given once or by language, as the tag of a tagged union."""
    return "|table" if isinstance(value, dict) else "|text"


def matching(pattern: str, remedy: str) -> AfterValidator:
    """A text that must match a pattern; one that does not is reported with the remedy."""
    compiled = re.compile(pattern)

    def check(value: str) -> str:
        if not compiled.fullmatch(value):
            raise PydanticCustomError(FORM, "'{value}' does not fit", {"value": value, "remedy": remedy})
        return value

    return AfterValidator(check)


def _word(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", value) or keyword.iskeyword(value):
        remedy = "start with a letter, go on with letters, digits or _, and avoid keywords such as and, or, not, in"
        raise PydanticCustomError(FORM, "name '{value}'", {"value": value, "remedy": remedy})
    return value


Word = Annotated[str, AfterValidator(_word)]
Identifier = Annotated[
    str,
    matching(
        r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}",
        "use up to 64 letters, digits, '.', '_' or '-': it becomes a file name",
    ),
]
Text = Annotated[str, Field(min_length=1)]


def _label(value: str) -> str:
    if not value.strip() or not value.isprintable() or len(value) > LONGEST_LABEL:
        remedy = f"write one line of up to {LONGEST_LABEL} characters, or leave the key out"
        raise PydanticCustomError(FORM, "{shown}", {"shown": repr(value[:60]), "remedy": remedy})
    return value.strip()


Label = Annotated[str, AfterValidator(_label)]  # what readers see in headings, XML and file properties


def _description(value: str) -> str:
    if not value.strip() or len(value) > LONGEST_DESCRIPTION or not value.replace("\n", " ").isprintable():
        remedy = f"write up to {LONGEST_DESCRIPTION:,} characters of text, or leave the key out"
        raise PydanticCustomError(FORM, "{shown}", {"shown": repr(value[:60]), "remedy": remedy})
    return " ".join(value.split())


Description = Annotated[str, AfterValidator(_description)]
LanguageTag = Annotated[
    str, matching(LANGUAGE_TAG.pattern, "write the tag of a language such as en or pt-BR")
]
LabelEntry = Annotated[
    Annotated[Label, Tag("|text")] | Annotated[dict[LanguageTag, Label], Field(min_length=1), Tag("|table")],
    Discriminator(text_or_languages),
]
DescriptionEntry = Annotated[
    Annotated[Description, Tag("|text")]
    | Annotated[dict[LanguageTag, Description], Field(min_length=1), Tag("|table")],
    Discriminator(text_or_languages),
]
Amount = int | float | str  # a number, or a fraction such as "1/3"
Quota = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


@dataclass
class Findings:
    """The problems found so far, and what later checks skip because it is already reported."""

    path: Path
    problems: list[Problem] = field(default_factory=list)
    absent: set[Problem] = field(default_factory=set)  # the problems that are only missing data
    broken_sections: set[str] = field(default_factory=set)
    broken_variables: set[str] = field(default_factory=set)

    @property
    def folder(self) -> Path:
        """The folder that relative paths start from."""
        return self.path.absolute().parent

    def add(self, key: str, value: str, remedy: str) -> None:
        """Add a problem of the programme file."""
        self.problems.append(Problem(str(self.path), key, value, remedy))

    @contextmanager
    def gathering(self) -> Iterator[None]:
        """Collect the problems that are raised inside, and continue after the block."""
        try:
            yield
        except Mistakes as mistakes:
            if isinstance(mistakes, AbsentData):
                self.absent.update(mistakes.problems)
            self.problems.extend(mistakes.problems)

    def mistakes(self) -> Mistakes:
        """All problems, each once, ready to raise."""
        return Mistakes(dict.fromkeys(self.problems))


def positive(key: str, value: Amount, findings: Findings) -> Fraction:
    """An amount above zero, exactly as it was written; any other is reported, and zero where it is not a number."""
    try:
        amount = fraction(str(value))
    except ValueError:
        amount = Fraction(0)
    if not is_amount(amount):
        findings.add(key, repr(value), 'give a positive number (1e-15 to 1e6), or a fraction such as "1/3"')
    return amount


def worded(key: str, entry: str | Mapping[str, str] | None, own: str, findings: Findings) -> str:
    """A text, or one by language, of which that of the release's own is required; empty where it is not given."""
    if entry is None or isinstance(entry, str):
        return entry or ""
    if own not in entry:
        remedy = f"add one, or declare release.language (now {own!r})"
        findings.add(key, f"no text in the language of the release, {own!r}", remedy)
        return ""
    return translated(entry[own], {tag: text for tag, text in entry.items() if tag != own})
