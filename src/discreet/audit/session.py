"""A session against a running table builder: the same table under random opposite filters, averaged.

The counts of a table are the sums of its counts for codes in a random set S of another variable and for codes that are
not. With the noise of each answer independent, n such pairs and the table itself have 1 + n/2 times the information of
one count (maths.attacks.information): the best linear estimate has the variance V / (1 + n/2). An outsider does not
know which estimates are right; what is reported is how likely they are.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from ipaddress import ip_address
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from discreet.errors import mistake
from discreet.maths.attacks.averaging import successes

Floats = NDArray[np.float64]

LONGEST_ANSWER = 50_000_000  # bytes
WAIT = 30.0  # seconds for an answer
REQUESTS, SECONDS, RATE = 200, 60.0, 5.0  # the bounds of a session, unless others are given
MOST_CODES = 400  # of an axis that is chosen by itself
FEWEST_CODES = 8  # of the variable that is filtered by
OK, REFUSED, TOO_MANY = 200, 403, 429


@dataclass(frozen=True, kw_only=True)
class Session:
    """What to attack, and within which bounds."""

    address: str
    axes: tuple[str, ...] = ()  # breakdowns; chosen where none are given
    filtered: str = ""  # the variable of the filters; chosen where none is given
    unit: str = ""
    requests: int = REQUESTS
    seconds: float = SECONDS
    rate: float = RATE  # requests per second, at most
    variance: float | None = None  # of the noise, if known
    own_server: bool = False
    seed: int = 1


@dataclass(frozen=True)
class SessionFindings:
    """How many requests were answered, and how exactly the counts of the table are known with them."""

    axes: tuple[str, ...]
    filtered: str
    requests: int
    answered: int
    refused: Mapping[str, int]  # rule -> requests
    cells: int
    pairs: int
    variance: float | None  # of the noise: as given, or as estimated from the pairs
    standard_error: float | None
    success: float | None  # the probability that a rounded estimate is the true count
    declared: float | None  # what the server declares as the largest

    def as_json(self) -> Mapping[str, object]:
        """The document."""
        return {**vars(self), "axes": list(self.axes), "refused": dict(self.refused)}


def attack_server(
    session: Session,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> SessionFindings:
    """Run a session within its bounds."""
    server = _Server(session, clock, sleep)
    catalogue = server.get("/api/v1/catalogue")
    unit, axes, filtered = _chosen(session, catalogue)
    codes = _leaves(server.get(f"/api/v1/variables/{filtered}"))
    whole = server.table(unit, axes, "")
    rng = np.random.default_rng(session.seed)
    sums: list[Floats] = []
    while server.goes_on:
        some = [
            code
            for code, is_in in zip(codes, rng.permutation(len(codes)) < len(codes) // 2, strict=True)
            if is_in
        ]
        listed = f"({', '.join(map(json.dumps, some))},)"
        halves = [server.table(unit, axes, f"{filtered} {word} {listed}") for word in ("in", "not in")]
        if halves[0] is not None and halves[1] is not None:
            sums.append(halves[0] + halves[1])
    variance = _variance(whole, sums) if session.variance is None else session.variance
    history = catalogue.get("history")
    declared = history.get("success") if isinstance(history, dict) else None
    error = None if variance is None else (variance / max(len(sums) / 2 + (whole is not None), 1e-9)) ** 0.5
    known = error is not None and (whole is not None or bool(sums))
    return SessionFindings(
        axes,
        filtered,
        server.asked,
        server.answered,
        dict(server.refused),
        0 if whole is None else len(whole),
        len(sums),
        variance,
        error if known else None,
        float(successes(np.array([error**2]))[0]) if known and error is not None else None,
        declared,
    )


def _variance(whole: Floats | None, sums: list[Floats]) -> float | None:
    """The differences between a table and the sum of a pair have three times the variance of the noise."""
    if whole is None or not sums:
        return None
    shown = whole > 0
    differences = np.concatenate([(one - whole)[shown] for one in sums])
    return float((differences**2).mean() / 3) if differences.size else None


def _chosen(session: Session, catalogue: Mapping[str, object]) -> tuple[str, tuple[str, ...], str]:
    """The unit, the axes and the filtered variable: the finest of the places and another, where none are given."""
    units, variables = catalogue.get("units"), catalogue.get("variables")
    if not (isinstance(units, list) and units and isinstance(variables, list)):
        raise _strange(session.address)
    unit = session.unit or str(units[0])
    mine = [one for one in variables if isinstance(one, dict) and unit in one.get("units", ())]
    sizes = {one["name"]: {b["name"]: int(b["codes"]) for b in one["breakdowns"]} for one in mine}
    filtered = session.filtered or _filtered(mine, sizes, session.axes)
    if filtered not in sizes:
        remedy = f"name one of {', '.join(sizes)} with --filter"
        raise mistake(session.address, "--filter", repr(filtered), remedy)
    if session.axes:
        return unit, session.axes, filtered
    axes: list[str] = []
    for one in sorted(mine, key=lambda one: (not one["is_place"], max(sizes[one["name"]].values()))):
        fitting = [name for name, codes in sizes[one["name"]].items() if 2 < codes <= MOST_CODES]
        if fitting and one["name"] != filtered and len(axes) < 2:
            axes.append(fitting[-1])
    return unit, tuple(axes), filtered


def _filtered(
    mine: list[dict[str, object]], sizes: Mapping[str, Mapping[str, int]], axes: tuple[str, ...]
) -> str:
    """The variable with the most codes that is neither a place nor an axis."""
    free = [
        str(one["name"])
        for one in mine
        if not one["is_place"] and str(one["name"]) not in {axis.partition(".")[0] for axis in axes}
    ]
    found = max(free, key=lambda name: max(sizes[name].values()), default="")
    return found if found and max(sizes[found].values()) > FEWEST_CODES else ""


def _leaves(variable: Mapping[str, object]) -> list[str]:
    codes, parents = variable.get("codes"), variable.get("parents")
    if not (isinstance(codes, list) and isinstance(parents, list)):
        return []
    above = set(map(str, parents))
    return [str(code) for code in codes if str(code) not in above]


def is_own(address: str) -> bool:
    """Whether an address is of this machine."""
    host = urlsplit(address).hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


class _Server:
    """Asks one server, no faster than allowed and no longer than the bounds."""

    def __init__(self, session: Session, clock: Callable[[], float], sleep: Callable[[float], None]) -> None:
        if not (session.own_server or is_own(session.address)):
            remedy = "attack only servers that you run: confirm it with --own-server"
            raise mistake("", "attack", f"{session.address} is not on this machine", remedy)
        self._session, self._clock, self._sleep = session, clock, sleep
        self._end = clock() + session.seconds
        self._next = clock()
        self.asked, self.answered = 0, 0
        self.refused: Counter[str] = Counter()

    @property
    def goes_on(self) -> bool:
        """Whether the bounds allow another pair of requests."""
        return self.asked + 2 <= self._session.requests and self._clock() < self._end

    def get(self, path: str) -> Mapping[str, object]:
        """A document of the server."""
        status, content = self._request("GET", path, None)
        if status != OK:
            raise _strange(self._session.address)
        return content

    def table(self, unit: str, axes: tuple[str, ...], where: str) -> Floats | None:
        """The values of a table; None where it is refused."""
        self.asked += 1
        status, content = self._request(
            "POST", "/api/v1/table", {"unit": unit, "axes": list(axes), "where": where}
        )
        values = content.get("value")
        if status == OK and isinstance(values, list):
            self.answered += 1
            return np.array([0 if value is None else value for value in values], dtype=np.float64)
        if status in (REFUSED, TOO_MANY):
            self.refused[str(content.get("rule") or content.get("title") or status)] += 1
            return None
        detail = str(content.get("detail") or f"status {status}").splitlines()[0][:200]
        raise mistake(
            self._session.address, "table", detail, "name other breakdowns with --axes and --filter"
        )

    def _request(self, method: str, path: str, body: object) -> tuple[int, Mapping[str, object]]:
        self._sleep(max(0.0, self._next - self._clock()))
        self._next = self._clock() + 1 / self._session.rate
        parts = urlsplit(self._session.address)
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        try:
            connection = kind(parts.netloc, timeout=WAIT)
            headers = {"Content-Type": "application/json", "Accept": "application/json"}
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            content = json.loads(answer.read(LONGEST_ANSWER))
            connection.close()
        except (OSError, HTTPException) as error:
            reason = (getattr(error, "strerror", None) or "does not answer").lower()
            raise mistake("", self._session.address, reason, "start it with discreet serve") from None
        except ValueError:
            raise _strange(self._session.address) from None
        return answer.status, content if isinstance(content, dict) else {}


def _strange(address: str) -> Exception:
    return mistake("", address, "is no table builder", "give the address that discreet serve prints")
