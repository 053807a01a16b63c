"""Who asks, and the headers that keep a browser honest; it owns names of users and roles, not what they may have.

A user with a token is known by the name of the token, any other by a keyed hash of the network address: the books hold
no address, and the same address has the same history after a restart.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address, ip_network

from sqlalchemy import Column, LargeBinary, MetaData, String, Table, select
from starlette.requests import HTTPConnection

from discreet.engine.books import Book, add_new, lay_out
from discreet.engine.transactions import Database
from discreet.serve.http.limits import Rates
from discreet.serve.http.problems import HttpProblem
from discreet.serve.http.settings import RateLimit, Settings
from discreet.serve.http.tokens import Role, TokenBook
from discreet.words.phrase import Language, phrase

KNOWN = "token:"  # before the name of a user who has one
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
    """Who asks: an opaque id for the books, a role, and the language they read."""

    user: str
    role: Role
    language: Language = Language.ENGLISH

    @property
    def is_known(self) -> bool:
        """Whether they have a token; others are known by an address, of which anybody may have many."""
        return self.user.startswith(KNOWN)

    @property
    def is_trusted(self) -> bool:
        """Whether the office trusts them with more at once."""
        return self.role is not Role.PUBLIC


class Reception:
    """Tells callers apart and lets each in as often as they may."""

    def __init__(self, settings: Settings, rates: Rates) -> None:
        self._settings, self._rates = settings, rates
        self._book = TokenBook(settings.tokens)

    def admit(self, connection: HTTPConnection) -> Caller:
        """Say who it is, or raise the problem: an unknown token, or too many requests."""
        kind, _, token = connection.headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not token.strip():
            caller = Caller(self._anonymous(connection), Role.PUBLIC)
        else:
            caller = self._known(token.strip(), connection)
        limit = self._limit(caller.role)
        if limit is not None:
            self._rates.take(caller.user, limit)
        return caller

    def _known(self, token: str, connection: HTTPConnection) -> Caller:
        found = self._book.find(token)
        if found is None:
            # guesses are counted like requests of their address
            self._rates.take(self._anonymous(connection), self._settings.limits.public)
            words = phrase("This API token is not known, or was revoked.")
            raise HttpProblem(401, words, kind="token", headers={"WWW-Authenticate": "Bearer"})
        return Caller(KNOWN + found.name, found.role)

    def keep(self, caller: Caller) -> None:
        """Let a caller have something kept, or raise the problem: what is kept fills a disk."""
        if not caller.is_trusted:
            self._rates.take(f"keeping {caller.user}", self._settings.limits.keeping)

    def _limit(self, role: Role) -> RateLimit | None:
        limits = self._settings.limits
        return {Role.PUBLIC: limits.public, Role.TRUSTED: limits.trusted}.get(role)

    def _anonymous(self, connection: HTTPConnection) -> str:
        host = connection.client.host if connection.client else ""
        digest = hashlib.blake2b(_network(host).encode(), digest_size=16, key=self._settings.user_key)
        return f"address:{digest.hexdigest()}"


def _network(host: str) -> str:
    """An address, or for IPv6 the network of one household: its last 64 bits change at will."""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if isinstance(address, IPv6Address) and address.ipv4_mapped is None:
        return str(ip_network((address, 64), strict=False))
    return str(address)


def kept_key(database: Database, name: str) -> bytes:
    """A random key that stays the same as long as the database does, for a server that has no secret."""
    lay_out(database, Book("keys", _tables))
    with database.writing() as connection:
        add_new(connection, _keys, [{"name": name, "key": secrets.token_bytes(32)}])
        found: bytes = connection.execute(select(_keys.c.key).where(_keys.c.name == name)).scalar_one()
    return found
