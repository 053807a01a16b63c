"""Filter expressions on codes (population bases, structural zeros): their grammar, normal form and masks.

It does not read data: the caller passes the leaf index of every record.

    expression := comparison | not expression | (expression)
                | expression and expression | expression or expression
    comparison := NAME == "code" | NAME != "code" | NAME in ("code", ..) | NAME not in ("code", ..)
    NAME       := VARIABLE | VARIABLE.BREAKDOWN

``=`` is read as ``==``, and a code of letters, digits, ``_``, ``-`` and ``.`` needs no quotes: GEO=AT1,
AGE in (Y_LT15, Y15-29). A code that has codes below it means its whole subtree.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property, reduce
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from discreet.errors import Mistakes, Problem, mistake
from discreet.maths.cells.counting import recode
from discreet.programme.codelist import Breakdown, Codelist
from discreet.text.phrase import Phrase, joined, phrase

LONGEST = 200_000  # characters
DEEPEST = 40  # nested operators
NOBODY = phrase("no record can pass this; remove one of its conditions")
ALL, NONE = "true", "false"  # the normal forms of comparisons that every record passes, or none
MOST_TOLD = 20  # mistakes of one text
MOST_COMPARED = 2_000  # names among which the closest is looked for, which takes long
GRAMMAR = phrase('write comparisons like SEX == "1" or AGE.L in ("Y_LT15", "Y15-29"), joined by and, or, not')

LEXEMES = re.compile(
    r"""(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?P<word>[\w.-]+)|(?P<sign>[<>!=:]=|[^\w.-])""",
    re.DOTALL,
)
QUOTED_TEXT = re.compile(r"""\s*["']""")
WORDS = {"and", "or", "not", "in"}  # of the grammar: as codes they need quotes

Columns = Mapping[str, NDArray[np.unsignedinteger]]


@dataclass(frozen=True)
class Comparison:
    """The records whose leaf of one variable is among those marked."""

    variable: str
    passing: bytes  # leaf -> does it pass, 1 or 0
    canonical: str

    @cached_property
    def lookup(self) -> NDArray[np.bool_]:
        """Leaf -> does it pass."""
        return np.frombuffer(self.passing, dtype=bool)

    def mask(self, columns: Columns) -> NDArray[np.bool_]:
        """Look the leaf of every record up."""
        leaves = columns[self.variable]
        passing = np.empty(len(leaves), dtype=bool)
        recode(leaves, self.lookup, passing)  # indexing would make a wider copy of the leaves first
        return passing


@dataclass(frozen=True)
class Junction:
    """Several terms of which a record must pass all (``and``) or any (``or``)."""

    word: str
    terms: tuple[Comparison | Junction, ...]

    @property
    def canonical(self) -> str:
        """The terms in alphabetical order."""
        return f" {self.word} ".join(
            f"({term.canonical})" if isinstance(term, Junction) else term.canonical for term in self.terms
        )


Term = Comparison | Junction


@dataclass(frozen=True)
class Filter:
    """A checked expression such as ``HST in ("1.1", "1.2") and AGE != "Y_LT15"``.

    Two filters are equal when their normal forms are: negations pushed inwards, comparisons of one variable
    joined, codes replaced by the highest equivalent ones, everything sorted.
    """

    canonical: str
    text: str = field(compare=False)
    variables: tuple[str, ...] = field(compare=False)
    term: Term = field(compare=False, repr=False)

    def mask(self, columns: Columns) -> NDArray[np.bool_]:
        """Mark the records that pass, given the leaf index of each under each variable of ``variables``."""
        return next(masks([self], columns))

    @property
    def steps(self) -> int:
        """How often each record is looked at: once for every comparison and every join of two terms."""
        return _steps(self.term)

    @property
    def passes_all(self) -> bool:
        """Whether every record passes, whatever its codes."""
        return isinstance(self.term, Comparison) and all(self.term.passing)


def _steps(term: Term) -> int:
    return 1 if isinstance(term, Comparison) else sum(_steps(part) + 1 for part in term.terms) - 1


def masks(filters: Iterable[Filter], columns: Columns) -> Iterator[NDArray[np.bool_]]:
    """The masks of several filters on the same records; what they share is looked up once."""
    seen: dict[str, NDArray[np.bool_]] = {}
    return (_mask(one.term, columns, seen) for one in filters)


def _mask(term: Term, columns: Columns, seen: dict[str, NDArray[np.bool_]]) -> NDArray[np.bool_]:
    if isinstance(term, Junction):
        join = np.logical_and if term.word == "and" else np.logical_or
        return reduce(join, [_mask(part, columns, seen) for part in term.terms])
    if term.canonical not in seen:
        seen[term.canonical] = term.mask(columns)
    return seen[term.canonical]


def parse_filter(
    text: str,
    variables: Mapping[str, Codelist],
    file: object = "",
    key: str = "",
    breakdowns: Mapping[str, Mapping[str, Breakdown]] | None = None,
) -> Filter:
    """Check an expression against the codelists; every mistake in it is reported at once.

    With ``breakdowns`` (variable -> name -> breakdown) a name like AGE.L must exist and contain the codes.
    """
    reader = _Reader(spelled_out(text), variables, breakdowns, str(file), key)
    term = reader.read(_parse(reader.text, file, key), negated=False, depth=0)
    if reader.problems:
        raise Mistakes(reader.problems)
    if isinstance(term, Comparison) and not any(term.passing):
        raise mistake(file, key, _quote(text), NOBODY)
    return Filter(term.canonical, text, tuple(sorted(set(_names(term)))), term)


def spelled_out(text: str) -> str:
    """The same expression with ``==`` for ``=``, and quotes around the codes that have none.

    A bare word is a code only where a code is due: after ``=``, ``==``, ``!=`` or ``in``, and in the list that begins
    there. Next to a quoted text it stays as it is, because Python would join the two.
    """
    if len(text) > LONGEST:
        return text  # is refused
    parts: list[str] = []
    awaited, depth = False, 0  # must a code follow; how many brackets of its list are open
    for found in LEXEMES.finditer(text):
        kind, part = found.lastgroup, found[0]
        if kind == "word":
            joins = QUOTED_TEXT.match(text, found.end())
            code = awaited and part not in WORDS and not joins
            parts.append(f'"{part}"' if code else part)
            awaited = part == "in"
        elif kind == "text":
            parts.append(part)
            awaited = False
        else:
            parts.append("==" if part == "=" else part)
            if part in ("=", "==", "!="):
                awaited, depth = True, 0
            elif part in "([":
                depth += awaited
            elif part in ")]":
                awaited, depth = False, max(depth - 1, 0)
            elif part == ",":
                awaited = depth > 0
            elif not part.isspace():
                awaited = False
    return "".join(parts)


def mentioned(text: str) -> set[str]:
    """The names of variables that a filter mentions, known or not; none where it cannot be read."""
    try:
        return {node.id for node in ast.walk(_parse(spelled_out(text), "", "")) if isinstance(node, ast.Name)}
    except Mistakes:
        return set()


def _names(term: Term) -> Iterator[str]:
    if isinstance(term, Comparison):
        yield term.variable
    else:
        for part in term.terms:
            yield from _names(part)


def _parse(text: str, file: object, key: str) -> ast.expr:
    if len(text) > LONGEST:
        raise mistake(
            file,
            key,
            phrase("a filter of {length} characters", length=len(text)),
            phrase("keep it below {most}; compare codes of an upper level", most=LONGEST),
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        at = phrase("(line {line}, column {column})", line=error.lineno, column=error.offset)
        value = joined(_no_filter(text), at if error.lineno else "")
        raise mistake(file, key, value, GRAMMAR) from None
    except (ValueError, RecursionError, MemoryError):
        raise mistake(file, key, _no_filter(text), GRAMMAR) from None


def _no_filter(text: str) -> Phrase:
    return phrase("{text} is not a filter", text=_quote(text))


class _Reader:
    """Walks the parsed expression, collects problems, and builds the normal form from the leaves up."""

    def __init__(
        self,
        text: str,
        variables: Mapping[str, Codelist],
        breakdowns: Mapping[str, Mapping[str, Breakdown]] | None,
        file: str,
        key: str,
    ) -> None:
        self.text, self.variables, self.breakdowns = text, variables, breakdowns
        self.file, self.key = file, key
        self.problems: list[Problem] = []

    def read(self, node: ast.expr, *, negated: bool, depth: int) -> Term:
        """Turn a node into a term; a negation is carried down to the comparisons (De Morgan)."""
        if depth > DEEPEST:
            raise mistake(
                self.file,
                self.key,
                phrase("{text} is nested too deeply", text=_quote(self.text)),
                phrase("use at most {most} levels of brackets", most=DEEPEST),
            )
        match node:
            case ast.BoolOp(op=op, values=values):
                word = "and" if isinstance(op, ast.And) != negated else "or"
                return self._join(
                    word, [self.read(part, negated=negated, depth=depth + 1) for part in values]
                )
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self.read(operand, negated=not negated, depth=depth + 1)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self._comparison(left, op, right, negated=negated)
        return self._refuse(node)

    def _comparison(self, left: ast.expr, op: ast.cmpop, right: ast.expr, *, negated: bool) -> Term:
        many = isinstance(op, ast.In | ast.NotIn)
        if len(self.problems) >= MOST_TOLD:
            return _NOTHING
        if not (many or isinstance(op, ast.Eq | ast.NotEq)):
            return self._refuse(left, phrase("only ==, !=, in and not in compare codes"))
        name, codes = self._name(left), self._codes(right, many=many)
        if name is None or codes is None:
            return _NOTHING
        variable, level = name
        tree = self.variables[variable]
        known = self._known_codes(variable, level)
        for code in islice((code for code in codes if code not in known), MOST_TOLD):
            of = variable + (f".{level}" if level else "")
            value = phrase("unknown code {code} of {of}", code=repr(code), of=of)
            self._add(value, alternatives(code, sorted(known)))
        if self.problems:
            return _NOTHING
        inside = tree.leaves_below(codes)
        return _compare(tree, variable, inside if isinstance(op, ast.Eq | ast.In) != negated else ~inside)

    def _name(self, node: ast.expr) -> tuple[str, str] | None:
        match node:
            case ast.Name(id=variable):
                level = ""
            case ast.Attribute(value=ast.Name(id=variable), attr=level):
                pass
            case _:
                self._refuse(node, phrase("the left side must be the name of a variable"))
                return None
        if variable not in self.variables:
            value = phrase("unknown variable {name} of the programme", name=repr(variable))
            self._add(value, alternatives(variable, sorted(self.variables)))
            return None
        if level and self.breakdowns is not None and level not in self.breakdowns[variable]:
            value = phrase("unknown breakdown {name} of {variable}", name=repr(level), variable=variable)
            self._add(value, alternatives(level, sorted(self.breakdowns[variable])))
            return None
        return variable, level

    def _codes(self, node: ast.expr, *, many: bool) -> list[str] | None:
        items = node.elts if many and isinstance(node, ast.Tuple | ast.List) else [node]
        codes = [
            item.value for item in items if isinstance(item, ast.Constant) and isinstance(item.value, str)
        ]
        if len(codes) == len(items) > 0:
            return codes
        some = phrase('the right side must be a list of quoted codes such as ("1", "2")')
        self._refuse(node, some if many else phrase('the right side must be one quoted code such as "1"'))
        return None

    def _known_codes(self, variable: str, level: str) -> Mapping[str, int]:
        if level and self.breakdowns is not None:
            axis = self.breakdowns[variable][level]
            return dict(zip(axis.codes[1:], range(1, len(axis)), strict=True))
        return self.variables[variable].position

    def _join(self, word: str, terms: Sequence[Term]) -> Term:
        """Flatten, join the comparisons of one variable, drop what has no effect, and sort."""
        if self.problems:
            return _NOTHING
        flat = [
            part
            for term in terms
            for part in (term.terms if isinstance(term, Junction) and term.word == word else (term,))
        ]
        absorbing, neutral = (ALL, NONE) if word == "or" else (NONE, ALL)
        joined = self._join_variables(word, [part for part in flat if isinstance(part, Comparison)])
        for part in joined:
            if part.canonical == absorbing:
                return part
        useful = [part for part in joined if part.canonical != neutral]
        junctions = {part.canonical: part for part in flat if isinstance(part, Junction)}
        kept: list[Term] = sorted([*useful, *junctions.values()], key=lambda part: part.canonical)
        if not kept:
            return min(joined, key=lambda part: part.variable)
        return kept[0] if len(kept) == 1 else Junction(word, tuple(kept))

    def _join_variables(self, word: str, parts: Sequence[Comparison]) -> list[Comparison]:
        join = np.logical_and if word == "and" else np.logical_or
        masks: dict[str, NDArray[np.bool_]] = {}
        for part in parts:
            known = masks.get(part.variable)
            masks[part.variable] = part.lookup if known is None else join(known, part.lookup)
        return [_compare(self.variables[variable], variable, passing) for variable, passing in masks.items()]

    def _refuse(self, node: ast.expr, reason: str = "") -> Comparison:
        part = ast.get_source_segment(self.text.strip(), node) or self.text
        self._add(phrase("{text} in a filter", text=_quote(part)), reason or GRAMMAR)
        return _NOTHING

    def _add(self, value: str, remedy: str) -> None:
        self.problems.append(Problem(self.file, self.key, value, remedy))


_NOTHING = Comparison("", b"", "")


def _compare(tree: Codelist, variable: str, passing: NDArray[np.bool_]) -> Comparison:
    """Write a set of leaves with the fewest codes, by inclusion or, where shorter, by exclusion."""
    if passing.all() or not passing.any():
        canonical = ALL if passing.all() else NONE
    else:
        inside, outside = tree.fewest_codes(passing), tree.fewest_codes(~passing)
        word, codes = ("in", inside) if len(inside) <= len(outside) else ("not in", outside)
        canonical = (
            f"{variable} {word} ({', '.join(json.dumps(code, ensure_ascii=False) for code in sorted(codes))})"
        )
    return Comparison(variable, passing.tobytes(), canonical)


def alternatives(value: str, known: Sequence[str]) -> Phrase:
    """The remedy for an unknown name: the closest one, and what exists."""
    closest = get_close_matches(value, known[:MOST_COMPARED], n=1)
    if not known:
        return phrase("there are none")
    more = phrase(".. ({number} in all)", number=len(known))
    shown = (*known[:12], *([more] if len(known) > 12 else ()))
    meant = phrase("did you mean {name}?", name=repr(closest[0])) if closest else ""
    return joined(meant, phrase("use one of {names}", names=shown))


def _quote(text: str) -> str:
    return f"'{text if len(text) <= 60 else text[:57] + '...'}'"
