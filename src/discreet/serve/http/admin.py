"""Health of the server, its load for administrators, and metrics for operators."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response

from discreet.serve.http.metrics import MEDIA_TYPE
from discreet.serve.http.problems import HttpProblem, unavailable
from discreet.serve.http.security import Caller
from discreet.serve.http.service import CallerOf, ServiceOf
from discreet.serve.http.tokens import Role
from discreet.text.phrase import phrase

router = APIRouter(tags=["operation"])


@router.get("/health")
async def health(service: ServiceOf) -> dict[str, str]:
    """Whether the server is running and its database answers; 503 where it does not."""
    if not await service.health.is_well():
        raise unavailable()
    return {"status": "ok"}


@router.get("/api/v1/status")
async def status(service: ServiceOf, caller: CallerOf) -> dict[str, Any]:
    """How busy the server is; for administrators."""
    _require_admin(caller)
    limits = service.settings.limits
    return {"at_the_desk": service.pool.pending, "running": limits.running, "waiting": limits.waiting}


@router.get("/metrics", response_class=Response)
async def metrics(service: ServiceOf, caller: CallerOf) -> Response:
    """Requests, latency, refusals, queue and cache in the format of Prometheus; for administrators."""
    _require_admin(caller)
    return Response(service.metrics.text(), media_type=MEDIA_TYPE, headers={"Cache-Control": "no-store"})


def _require_admin(caller: Caller) -> None:
    if caller.role is not Role.ADMIN:
        raise HttpProblem(403, phrase("This is for administrators."), kind="role")
