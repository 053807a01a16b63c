"""What cannot be in a synthetic census, as filter expressions; it does not check records against them."""

from __future__ import annotations

from itertools import permutations

# each of these says "under 15 years"; a table may hold any one of them
_CHILD = {"AGE": "Y_LT15", "CAS": "2.1", "EDU": "11"}
# each of these says "not employed"
_NOT_EMPLOYED = {"OCC": "12", "IND": "12", "SIE": "6", "LPW": "5"}
_OF_CHILDREN = ('LMS != "1"', 'FST in ("1", "2")', 'HST == "1.2.1"')
_ARRIVALS = 9  # bands of YAE: 1.1 (2020 to 2021), 1.2 (2015 to 2019), ... 1.9 (1980 to 1984)

_OTHERS = (
    'AGE == "Y0" and ROY != "4"',
    'AGE != "Y0" and ROY == "4"',
    'HST == "1.1" and FST in ("4", "5")',
    'HST != "1.1" and FST in ("1", "2", "3")',
    'FST == "1.1.1" and LMS != "2.1"',
    'FST == "1.1.2" and LMS != "2.2"',
    'FST == "1.2" and LMS == "2"',
    'HST == "2.1" and HAR != "1.2"',
    'HST != "2.1" and HAR == "1.2"',
    'YAE in ("1.1", "1.2", "1.3") and YAT != "1"',
    'YAE not in ("1.1", "1.2", "1.3") and YAT == "1"',
    'YAE == "3" and YAT != "3"',
    'YAE != "3" and YAT == "3"',
    'TPH == "1.1" and SPH != "1"',
    'TPH != "1.1" and SPH == "1"',
    'TPH == "3" and SPH in ("1", "2")',
)


def structural_zeros() -> tuple[str, ...]:
    """Expressions that are true of no record; a statement is made in every pair of variables that imply it."""
    return (*_children(), *_employed(), *_arrivals(), *_OTHERS)


def _children() -> list[str]:
    alike = [f"{_is(one, _CHILD)} and {_is_not(other, _CHILD)}" for one, other in permutations(_CHILD, 2)]
    idle = [
        f"{_is(one, _CHILD)} and {_is_not(job, _NOT_EMPLOYED)}" for one in _CHILD for job in _NOT_EMPLOYED
    ]
    return [*alike, *idle, *(f"{_is(one, _CHILD)} and {fact}" for one in _CHILD for fact in _OF_CHILDREN)]


def _employed() -> list[str]:
    jobs = permutations(_NOT_EMPLOYED, 2)
    alike = [f"{_is(one, _NOT_EMPLOYED)} and {_is_not(other, _NOT_EMPLOYED)}" for one, other in jobs]
    at_work = [f'CAS == "1.1" and {_is(job, _NOT_EMPLOYED)}' for job in _NOT_EMPLOYED]
    return [*alike, *at_work, *(f'CAS != "1.1" and {_is_not(job, _NOT_EMPLOYED)}' for job in _NOT_EMPLOYED)]


def _arrivals() -> list[str]:
    """Nobody arrived before birth: under 5 not before 2015, under 10 not before 2010, and so on."""
    rules = []
    for first in range(_ARRIVALS - 2):
        before = ", ".join(f'"1.{band}"' for band in range(first + 3, _ARRIVALS + 1))
        rules.append(f'AGE == "Y{5 * first}-{5 * first + 4}" and YAE in ({before})')
    return rules


def _is(variable: str, codes: dict[str, str]) -> str:
    return f'{variable} == "{codes[variable]}"'


def _is_not(variable: str, codes: dict[str, str]) -> str:
    return f'{variable} != "{codes[variable]}"'
