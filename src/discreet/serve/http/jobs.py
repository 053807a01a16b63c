"""Background jobs for large tables: their routes, and the worker that makes them.

Jobs and results are in the store, so that a killed server loses none of them.
"""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from threading import Event, Thread
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from fastapi.responses import Response

from discreet.errors import DatabaseUnavailable, DiscreetError, Mistakes
from discreet.serve.answer import Refusal
from discreet.serve.http.api import JobBody, LayoutBody
from discreet.serve.http.downloads import TABLES, File, Format, require_form, written
from discreet.serve.http.middleware import where_of
from discreet.serve.http.problems import HttpProblem, Refused, mistakes_problem, retry_after, unexpected
from discreet.serve.http.respond import as_json, send, send_json
from discreet.serve.http.security import Caller
from discreet.serve.http.service import CallerOf, Service, ServiceOf
from discreet.serve.http.settings import Limits
from discreet.serve.http.tokens import Role
from discreet.serve.jobs_store import Job, JobState, Store
from discreet.serve.open import TableBuilder
from discreet.serve.query import to_json
from discreet.text.phrase import Language, phrase, said

POLL = 5.0  # seconds after which a worker looks for jobs that other processes queued
UNFINISHED = (JobState.QUEUED, JobState.RUNNING)
TAKEN, ANSWERED = 0.1, 0.7  # progress of a job when it has been claimed, and when its values are there
logger = logging.getLogger("discreet.serve.jobs")
router = APIRouter(prefix="/api/v1/jobs", tags=["background jobs"])
JobName = Annotated[str, Path(pattern=r"^[0-9a-f]{1,64}$", description="The id of a job.")]


@router.post("", status_code=202)
async def submit(service: ServiceOf, caller: CallerOf, request: Request, body: JobBody) -> Response:
    """Queue a large table; a table that the rules refuse is refused immediately."""
    query = body.query.query()
    service.check(caller)
    require_form(query, body.format, body.layout.layout())
    preview = await service.preview(caller, query)
    if preview.refusal is not None:
        raise Refused(preview.refusal)
    limits = service.settings.limits
    most = limits.trusted_jobs if caller.is_trusted else limits.jobs

    def add() -> Job:
        if sum(job.state in UNFINISHED for job in service.store.jobs(caller.user)) >= most:
            message = phrase("You have {most} unfinished jobs; wait for one of them.", most=most)
            raise HttpProblem(429, message, kind="jobs", headers=retry_after(10))
        layout = body.layout.model_dump(mode="json", exclude_defaults=True)
        extra = {"format": body.format.value, "layout": layout, "language": caller.language.value}
        return service.store.add_job(caller.user, preview.query, json.dumps(extra))

    job = await service.pool.run(add)
    request.app.state.worker.wake()
    headers = {"Location": f"/api/v1/jobs/{job.id}"}
    return Response(as_json(job_json(job)), 202, media_type="application/json", headers=headers)


@router.get("")
async def mine(request: Request, service: ServiceOf, caller: CallerOf) -> Response:
    """The jobs of a caller with a token, newest first; empty without a token, since users may share an address."""
    found = await service.pool.run(lambda: service.store.jobs(caller.user)) if caller.is_known else []
    return send_json(request, {"jobs": [job_json(job) for job in found]})


@router.get("/{name}")
async def one(request: Request, service: ServiceOf, caller: CallerOf, name: JobName) -> Response:
    """The state and progress of a job."""
    return send_json(request, job_json(await _find(service, caller, name)))


@router.get("/{name}/result", responses=TABLES)
async def result(request: Request, service: ServiceOf, caller: CallerOf, name: JobName) -> Response:
    """The table that a finished job made."""
    job = await _find(service, caller, name)
    if job.state in UNFINISHED:
        message = phrase("The job is not finished.")
        raise HttpProblem(409, message, kind="unfinished", headers=retry_after(2))
    if job.state is JobState.FAILED:
        raise HttpProblem(409, job.message, kind="failed")
    body = await service.pool.run(lambda: service.store.result(name))
    form = Format(json.loads(job.extra)["format"])
    media_type, _, content = (body or b"").partition(b"\n")
    ending = "json" if form is Format.JSON_STAT else form.value.removeprefix("sdmx-")
    file_name = f"{service.catalogue.name}-{job.query.id[:8]}.{ending}"
    file = File(content, media_type.decode("latin-1"), ending, _language(job).value)
    return send(request, file, name=file_name)


@router.delete("/{name}", status_code=204)
async def drop(service: ServiceOf, caller: CallerOf, name: JobName) -> Response:
    """Cancel a job or delete its result; what was charged for a finished table stays charged."""
    await _find(service, caller, name)
    await service.pool.run(lambda: service.store.drop_job(name))
    return Response(status_code=204)


async def _find(service: Service, caller: Caller, name: str) -> Job:
    """A job of the caller; whether others have jobs is not revealed."""
    job = await service.pool.run(lambda: service.store.job(name))
    if job is None or (job.user != caller.user and caller.role is not Role.ADMIN):
        message = phrase("You have no job of this id; results are stored for a limited time.")
        raise HttpProblem(404, message)
    return job


def _language(job: Job) -> Language:
    """The language of the user who submitted a job."""
    return Language(json.loads(job.extra or "{}").get("language", Language.ENGLISH))


def job_json(job: Job) -> dict[str, Any]:
    """A job for machines."""
    done = job.state is JobState.DONE
    return {
        "id": job.id,
        "state": job.state.value,
        "progress": job.progress,
        "words": job.message,
        "query": to_json(job.query),
        **json.loads(job.extra or "{}"),
        "created": job.created.isoformat(),
        "finished": job.finished.isoformat() if job.finished else None,
        "result": f"/api/v1/jobs/{job.id}/result" if done else None,
    }


class JobWorker:
    """One thread that makes one job after another."""

    def __init__(self, builder: TableBuilder, store: Store, limits: Limits) -> None:
        self._builder, self._store, self._limits = builder, store, limits
        self._name = secrets.token_hex(8)
        self._stopped, self._woken = Event(), Event()
        self._thread = Thread(target=self._work, name="jobs", daemon=True)

    def start(self) -> None:
        """Start; jobs of a killed server are claimed again when their lease ends."""
        self._thread.start()

    def stop(self) -> None:
        """Stop after the current job; one that takes longer is claimed again at the next start."""
        self._stopped.set()
        self._woken.set()
        self._thread.join(timeout=5)

    def wake(self) -> None:
        """Signal that there is a job."""
        self._woken.set()

    def _work(self) -> None:
        while not self._stopped.is_set():
            try:
                job = self._store.claim_job(self._name, self._limits.job_lease)
                if job is not None:
                    self._make(job)
                    continue
                self._store.drop_results(datetime.now(UTC) - timedelta(days=self._limits.job_days))
            except Exception as error:
                logger.error("%s", where_of(error))  # noqa: TRY400 - the text of an error is not logged
            self._woken.wait(POLL)
            self._woken.clear()

    def _make(self, job: Job) -> None:
        with self._beating(job) as reached:
            try:
                if reached(TAKEN):
                    self._finish(job, reached)
            except DatabaseUnavailable:
                raise  # the job is not lost: it is claimed again when its lease ends
            except Mistakes as mistakes:
                self._fail(job, mistakes_problem(mistakes).detail)
            except HttpProblem as problem:
                self._fail(job, problem.detail)
            except Exception as error:
                logger.error("%s", where_of(error))  # noqa: TRY400
                self._fail(job, unexpected().detail)

    def _finish(self, job: Job, reached: Callable[[float], bool]) -> None:
        answer = self._builder.ask(job.query, job.user, job=True)
        if isinstance(answer, Refusal):
            self._fail(job, answer.message)
            return
        if not reached(ANSWERED):
            return
        extra = json.loads(job.extra)
        layout = LayoutBody.model_validate(extra.get("layout", {})).layout()
        spoken, form = answer.in_language(_language(job)), Format(extra["format"])
        file = written(spoken, form, self._builder.catalogue, layout)
        self._store.finish_job(job.id, self._name, file.media_type.encode() + b"\n" + file.body)
        self._store.drop_beyond(self._limits.results)

    def _fail(self, job: Job, message: str) -> None:
        self._store.fail_job(job.id, self._name, said(message, _language(job)))

    @contextmanager
    def _beating(self, job: Job) -> Iterator[Callable[[float], bool]]:
        """Renew the lease while the work goes on; the yielded function stores the progress, and returns if to go on."""
        lease, done, progress = self._limits.job_lease, Event(), [0.0]

        def reached(share: float) -> bool:
            progress[0] = share
            return self._store.report_progress(job.id, self._name, share, lease)

        def beat() -> None:
            while not done.wait(lease / 3):
                try:
                    self._store.report_progress(job.id, self._name, progress[0], lease)
                except DiscreetError as error:
                    logger.error("%s", where_of(error))  # noqa: TRY400

        thread = Thread(target=beat, name="lease", daemon=True)
        thread.start()
        try:
            yield reached
        finally:
            done.set()
            thread.join()
