"""API tokens, the identity of callers, and security headers."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from dataclasses import asdict, dataclass
from enum import StrEnum
from ipaddress import IPv6Address, ip_address, ip_network
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError
from sqlalchemy import Column, LargeBinary, MetaData, String, Table, select
from starlette.requests import HTTPConnection

from discreet.errors import Mistakes, mistake
from discreet.io.store import Book, Database, add_new, lay_out
from discreet.io.whole_file import OWNER_ONLY_FILE, whole_file
from discreet.serve.history_store import ANONYMOUS
from discreet.serve.http.languages import language_of
from discreet.serve.http.limits import RateLimit, Rates, Settings
from discreet.serve.http.problems import HttpProblem
from discreet.text.phrase import Language, phrase

PREFIX = "dsc_"
_NAME = re.compile(r"[A-Za-z0-9._@-]{1,64}")


class Role(StrEnum):
    """What a caller may do: the public, users the office trusts with larger requests, and administrators."""

    PUBLIC = "public"
    TRUSTED = "trusted"
    ADMIN = "admin"


@dataclass(frozen=True)
class Token:
    """An entry of a token file: the hash of a token, never the token."""

    name: str
    role: Role
    hash: str
    created: str


class _Line(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str
    role: Role
    hash: str
    created: str


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")

    tokens: list[_Line] = []


def hashed(token: str) -> str:
    """The stored hash of a token."""
    return hashlib.blake2b(
        token.encode("utf-8", "replace"), digest_size=32, person=b"discreet-token"
    ).hexdigest()


def read_tokens(path: Path) -> tuple[Token, ...]:
    """Read a file of tokens."""
    try:
        found = _File.model_validate_json(path.read_bytes())
    except OSError as error:
        reason = (error.strerror or "cannot be read").lower()
        raise mistake(path, "tokens", reason, "make one with: discreet token create FILE NAME") from None
    except ValidationError:
        raise mistake(
            path, "tokens", "not a file of tokens", "make one with: discreet token create"
        ) from None
    return tuple(Token(line.name, line.role, line.hash, line.created) for line in found.tokens)


def create_token(path: Path, name: str, role: Role, created: str) -> str:
    """Add a token to a file, which is created if missing; return the token, which is stored nowhere."""
    if _NAME.fullmatch(name) is None:
        raise mistake(path, "name", repr(name[:70]), "use up to 64 letters, digits and . _ @ -")
    tokens = read_tokens(path) if path.exists() else ()
    if any(token.name == name for token in tokens):
        raise mistake(path, "name", f"{name!r} has a token", "revoke it first, or choose another name")
    token = PREFIX + secrets.token_urlsafe(32)
    _write(path, (*tokens, Token(name, role, hashed(token), created)))
    return token


def revoke_token(path: Path, name: str) -> None:
    """Remove a token from a file; running servers notice."""
    tokens = read_tokens(path)
    left = tuple(token for token in tokens if token.name != name)
    if len(left) == len(tokens):
        known = ", ".join(token.name for token in tokens) or "none"
        raise mistake(path, "name", f"no token of {name[:70]!r}", f"choose from {known}")
    _write(path, left)


def _write(path: Path, tokens: tuple[Token, ...]) -> None:
    """Replace the file in one step, readable by its owner only."""
    with whole_file(path, OWNER_ONLY_FILE) as draft:
        content = {"tokens": [asdict(token) for token in tokens]}
        draft.write_text(json.dumps(content, indent=1), encoding="utf-8")


class TokenFile:
    """The current tokens of a file; no token is accepted while the file is unreadable."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._seen: tuple[int, int] = (0, 0)
        self._tokens: dict[str, Token] = {}
        if path is not None:
            self._tokens = {token.hash: token for token in read_tokens(path)}
            self._seen = _mark(path)

    def find(self, token: str) -> Token | None:
        """The entry of a token, or None."""
        if self._path is None:
            return None
        try:
            mark = _mark(self._path)
            if mark != self._seen:
                self._tokens = {one.hash: one for one in read_tokens(self._path)}
                self._seen = mark
        except (OSError, Mistakes):
            return None
        return self._tokens.get(hashed(token))


def _mark(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_mtime_ns, found.st_ino


KNOWN = "token:"  # prefix of the name of a user with a token
API_POLICY = "default-src 'none'; frame-ancestors 'none'"
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; "
    "connect-src 'self'; manifest-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "cross-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "X-Frame-Options": "DENY",
}
HTTPS_HEADERS = {"Strict-Transport-Security": "max-age=31536000"}

_tables = MetaData()
_keys = Table(
    "serve_keys",
    _tables,
    Column("name", String, primary_key=True),
    Column("key", LargeBinary, nullable=False),
)


@dataclass(frozen=True)
class Caller:
    """A caller: an opaque id for the database, a role, and a language."""

    user: str
    role: Role
    language: Language = Language.ENGLISH

    @property
    def is_known(self) -> bool:
        """Whether they have a token; others are identified by an address, and a user may have many."""
        return self.user.startswith(KNOWN)

    @property
    def is_trusted(self) -> bool:
        """Whether the office trusts them with larger requests."""
        return self.role is not Role.PUBLIC


class Authenticator:
    """Identifies callers by token or address, and limits their rates."""

    def __init__(self, settings: Settings, rates: Rates) -> None:
        self._settings, self._rates = settings, rates
        self._tokens = TokenFile(settings.tokens)

    def admit(self, connection: HTTPConnection) -> Caller:
        """The caller; an unknown token or too many requests raise a problem."""
        kind, _, token = connection.headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not token.strip():
            caller = Caller(self._anonymous(connection), Role.PUBLIC, language_of(connection))
        else:
            caller = self._known(token.strip(), connection)
        limit = self._limit(caller.role)
        if limit is not None:
            self._rates.take(caller.user, limit)
        return caller

    def _known(self, token: str, connection: HTTPConnection) -> Caller:
        found = self._tokens.find(token)
        if found is None:
            # guesses are counted like requests of their address
            self._rates.take(self._anonymous(connection), self._settings.limits.public)
            message = phrase("This API token is unknown or was revoked.")
            raise HttpProblem(401, message, kind="token", headers={"WWW-Authenticate": "Bearer"})
        return Caller(KNOWN + found.name, found.role, language_of(connection))

    def limit_storing(self, caller: Caller) -> None:
        """Limit how often a caller stores something, because it takes disk space."""
        if not caller.is_trusted:
            self._rates.take(f"keeping {caller.user}", self._settings.limits.storing)

    def _limit(self, role: Role) -> RateLimit | None:
        limits = self._settings.limits
        return {Role.PUBLIC: limits.public, Role.TRUSTED: limits.trusted}.get(role)

    def _anonymous(self, connection: HTTPConnection) -> str:
        host = connection.client.host if connection.client else ""
        digest = hashlib.blake2b(_network(host).encode(), digest_size=16, key=self._settings.user_key)
        return f"{ANONYMOUS}{digest.hexdigest()}"


def _network(host: str) -> str:
    """An address, or for IPv6 the network of one household: its last 64 bits change at will."""
    if ":" not in host:
        return host
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if isinstance(address, IPv6Address) and address.ipv4_mapped is None:
        return str(ip_network((address, 64), strict=False))
    return str(address)


def stored_key(database: Database, name: str) -> bytes:
    """A random key stored in the database, for a server that has no secret."""
    lay_out(database, Book("keys", _tables))
    with database.writing() as connection:
        add_new(connection, _keys, [{"name": name, "key": secrets.token_bytes(32)}])
        found: bytes = connection.execute(select(_keys.c.key).where(_keys.c.name == name)).scalar_one()
    return found
