"""Cases of one claim: a few in every run, the others in ``make test-long``."""

from collections.abc import Iterable
from typing import Any

import pytest

BOTH_DATABASES = pytest.mark.parametrize("where", ["sqlite", "postgresql"], indirect=True)


def few(cases: Iterable[Any], *ordinary: int | str, single: bool = False) -> list[Any]:
    """Arguments of ``parametrize``: those at the given positions or, if text, of these names are in every run.

    A tuple has several arguments, or is one if ``single``.
    """
    known = list(cases)
    absent = [one for one in ordinary if one not in (known if isinstance(one, str) else range(len(known)))]
    assert not absent, absent
    return [
        case
        if at in ordinary or (isinstance(case, str) and case in ordinary)
        else pytest.param(
            *(case if isinstance(case, tuple) and not single else (case,)), marks=pytest.mark.long
        )
        for at, case in enumerate(known)
    ]
