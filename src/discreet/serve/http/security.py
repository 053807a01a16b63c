"""The identity of callers, and security headers."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address, ip_network

from sqlalchemy import Column, LargeBinary, MetaData, String, Table, select
from starlette.requests import HTTPConnection

from discreet.io.store import Book, Database, add_new, lay_out
from discreet.serve.history_store import ANONYMOUS
from discreet.serve.http.languages import language_of
from discreet.serve.http.limits import Rates
from discreet.serve.http.problems import HttpProblem
from discreet.serve.http.settings import RateLimit, Settings
from discreet.serve.http.tokens import Role, TokenFile
from discreet.text.phrase import Language, phrase

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
