"""Health of the server, and its load for administrators."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from discreet.serve.http.problems import HttpProblem
from discreet.serve.http.security import Role
from discreet.serve.http.service import CallerOf, ServiceOf
from discreet.text.phrase import phrase

router = APIRouter(tags=["operation"])


@router.get("/health")
async def health() -> dict[str, str]:
    """Whether the server is running."""
    return {"status": "ok"}


@router.get("/api/v1/status")
async def status(service: ServiceOf, caller: CallerOf) -> dict[str, Any]:
    """How busy the server is; for administrators."""
    if caller.role is not Role.ADMIN:
        raise HttpProblem(403, phrase("This is for administrators."), kind="role")
    limits = service.settings.limits
    return {"at_the_desk": service.pool.pending, "running": limits.running, "waiting": limits.waiting}
