"""Saved queries and jobs outlive their process, and a job whose worker died is taken up again."""

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import update

from discreet.errors import DatabaseUnavailable
from discreet.serve.jobs_store import JobState, Store, _jobs
from tests.cases import BOTH_DATABASES
from tests.forked import Forked
from tests.serve.conftest import query
from tests.serve.working import save_queries

ASKED = query("SEX", "AGE.L", where='EDU == "1"')


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(where: str, clock: Clock) -> Store:
    return Store(where, clock)


@BOTH_DATABASES
def test_a_saved_query_is_found_again_by_another_process(store: Store, where: str, clock: Clock) -> None:
    saved = store.save_query(ASKED, '{"layout": [0, 1]}')
    clock.now += timedelta(days=9000)
    assert Store(where, clock).saved_query(saved.id) == saved
    assert store.save_query(ASKED, '{"layout": [0, 1]}') == saved
    assert store.save_query(ASKED).id != saved.id
    assert store.saved_query("0" * 20) is None


def test_a_job_goes_from_queued_to_done(store: Store, clock: Clock) -> None:
    job = store.add_job("ann", ASKED, '{"format": "csv"}')
    assert store.job(job.id) == job
    assert store.result(job.id) is None
    taken = store.claim_job("w1", 30)
    assert taken is not None
    assert (taken.id, taken.state, taken.query) == (job.id, JobState.RUNNING, ASKED)
    assert store.claim_job("w2", 30) is None
    assert store.report_progress(job.id, "w1", 0.5, 30)
    assert not store.report_progress(job.id, "w2", 0.9, 30)
    assert store.finish_job(job.id, "w1", b"cells")
    done = store.job(job.id)
    assert done is not None
    assert (done.state, done.progress, done.finished) == (JobState.DONE, 1.0, clock.now)
    assert store.result(job.id) == b"cells"
    assert [one.id for one in store.jobs("ann")] == [job.id]
    assert store.jobs("bob") == ()
    assert store.drop_results(clock.now) == 0
    assert store.drop_results(clock.now + timedelta(days=28)) == 1
    assert store.job(job.id) is None


def test_a_job_of_a_dead_worker_is_taken_up_and_the_dead_one_cannot_finish_it(
    store: Store, clock: Clock
) -> None:
    job = store.add_job("ann", ASKED)
    assert store.claim_job("w1", 30) is not None
    clock.now += timedelta(seconds=31)
    again = store.claim_job("w2", 30)
    assert again is not None
    assert again.id == job.id
    assert not store.finish_job(job.id, "w1", b"late")
    assert store.fail_job(job.id, "w2", "too large")
    failed = store.job(job.id)
    assert failed is not None
    assert (failed.state, failed.message) == (JobState.FAILED, "too large")


def test_a_dropped_job_is_gone_for_its_worker_too(store: Store) -> None:
    job = store.add_job("ann", ASKED)
    assert store.claim_job("w1", 30) is not None
    assert store.drop_job(job.id)
    assert not store.drop_job(job.id)
    assert not store.report_progress(job.id, "w1", 0.5, 30)
    assert not store.finish_job(job.id, "w1", b"late")
    assert (store.job(job.id), store.result(job.id), store.claim_job("w2", 30)) == (None, None, None)


def test_jobs_are_taken_once_each_in_their_order(store: Store, clock: Clock) -> None:
    jobs = []
    for _ in range(12):
        jobs.append(store.add_job("ann", ASKED).id)
        clock.now += timedelta(seconds=1)
    with ThreadPoolExecutor(4) as pool:
        taken = list(pool.map(lambda n: store.claim_job(f"w{n}", 60), range(14)))
    assert sorted(one.id for one in taken if one) == sorted(jobs)
    assert taken.count(None) == 2


@BOTH_DATABASES
def test_a_killed_server_loses_no_saved_query(where: str, clock: Clock) -> None:
    process = Forked(save_queries, where)
    said = [process.stdout.readline().strip() for _ in range(5)]
    time.sleep(0.05)
    process.kill()
    said += [line.strip() for line in process.ended()[1].splitlines()]
    store = Store(where, clock)
    whole = [name for name in said if len(name) == 20]
    assert len(whole) >= 5
    assert all(store.saved_query(name) for name in whole)


def test_the_same_query_saved_at_once_is_one(store: Store) -> None:
    with ThreadPoolExecutor(8) as pool:
        saved = list(pool.map(lambda _: store.save_query(ASKED), range(8)))
    assert len({one.id for one in saved}) == 1
    assert len({one.created for one in saved}) == 1


@pytest.mark.parametrize("broken", [{"query": "{"}, {"created": "nan"}, {"state": "lost"}, {"query": "[]"}])
def test_a_job_that_cannot_be_read_does_not_block_the_queue(
    store: Store, clock: Clock, broken: dict[str, str]
) -> None:
    unreadable = store.add_job("ann", ASKED).id
    clock.now += timedelta(seconds=1)
    next_one = store.add_job("ann", ASKED).id
    with store.database.writing() as connection:
        connection.execute(update(_jobs).where(_jobs.c.id == unreadable).values(broken))
    taken = store.claim_job("w", 60)
    assert taken is not None
    assert taken.id == next_one
    with pytest.raises(DatabaseUnavailable, match="a row that cannot be read"):
        store.job(unreadable)
    assert store.drop_job(unreadable)
    assert [job.id for job in store.jobs("ann")] == [next_one]
