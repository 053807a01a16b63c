"""API tokens of users and their file, which has only hashes of them."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from discreet.errors import Mistakes, mistake
from discreet.io.whole_file import OWNER_ONLY_FILE, whole_file

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
