"""Background work: queued, done one at a time, told about, cancelled, and taken up again after a crash."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from runs_on_disk import line, write_osworld, write_video
from sqlalchemy import select

from db.models import JobRow, JudgementRow
from db.session import Database
from reviewer import job_queue, jobs
from reviewer.errors import ReviewerError
from reviewer.intake import import_paths
from reviewer.judges import Judgement, Progress, StepLabel, known, load
from reviewer.library import Library
from reviewer.media import FrameSource
from reviewer.trajectory import Trajectory

WAIT_S = 20.0


class QueueJudge:
    """A judge that says what a test put in its queue, one answer a run."""

    name = "queue"

    def __init__(
        self, *answers: Judgement | Exception | Callable[[Progress], Judgement], fingerprint: str = "f1"
    ) -> None:
        self.answers = list(answers)
        self.fingerprint = fingerprint
        self.runs = 0

    def run(self, trajectory: Trajectory, frames: FrameSource, alignment: Any, progress: Progress) -> Judgement:
        self.runs += 1
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, Judgement) else answer(progress)


@pytest.fixture
def library(database: Database, tmp_path: Path) -> Library:
    return Library(database, tmp_path / "home")


@pytest.fixture
def trajectory_id(library: Library, tmp_path: Path) -> str:
    run = write_osworld(tmp_path / "in", [line(1, "pyautogui.click(32, 18)"), line(2, "DONE")])
    (record,) = import_paths(library, [run])
    with library.database.write() as session:
        for job in session.scalars(select(JobRow)):
            session.delete(job)
    return str(record["id"])


@pytest.fixture
def worker(library: Library) -> Iterator[jobs.Worker]:
    worker = jobs.Worker(library)
    yield worker
    worker.stop()


def use(monkeypatch: pytest.MonkeyPatch, judge: QueueJudge) -> QueueJudge:
    monkeypatch.setattr(jobs, "load", lambda name: judge)
    return judge


def ask(library: Library, trajectory_id: str) -> str:
    with library.database.write() as session:
        return job_queue.enqueue(session, "judge", trajectory_id, {"judge": "queue"})


def state_of(library: Library, job_id: str) -> dict[str, Any]:
    with library.database.read() as session:
        (state,) = job_queue.states(session, [job_id])
    return state


def judgements(library: Library) -> list[JudgementRow]:
    with library.database.read() as session:
        return list(session.scalars(select(JudgementRow).order_by(JudgementRow.created_utc)))


def wait_for(condition: Callable[[], bool]) -> None:
    tick = threading.Event()
    for _ in range(int(WAIT_S / 0.02)):
        if condition():
            return
        tick.wait(0.02)
    pytest.fail("it never came about")


def test_a_judge_job_leaves_a_judgement(library: Library, trajectory_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    label = StepLabel(0, "-", "nothing changed", 0.1)
    use(monkeypatch, QueueJudge(Judgement(outcome="incorrect", step_labels=(label,), raw="box")))
    job_id = ask(library, trajectory_id)
    jobs.run_one(library, job_id)
    (judgement,) = judgements(library)
    assert state_of(library, job_id)["state"] == "done"
    assert state_of(library, job_id)["result"] == {"judgement_id": judgement.id}
    assert (judgement.outcome, judgement.document["revision"]) == ("incorrect", 1)
    assert judgement.document["step_labels"] == [vars(label)]


def test_the_same_judge_does_not_judge_the_same_revision_twice(
    library: Library, trajectory_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = use(monkeypatch, QueueJudge(Judgement(outcome="correct")))
    first = ask(library, trajectory_id)
    jobs.run_one(library, first)
    second = ask(library, trajectory_id)
    jobs.run_one(library, second)
    assert judge.runs == 1
    assert state_of(library, first)["result"] == state_of(library, second)["result"]


def test_another_fingerprint_judges_again(
    library: Library, trajectory_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for fingerprint in ("f1", "f2"):
        use(monkeypatch, QueueJudge(Judgement(outcome="correct"), fingerprint=fingerprint))
        jobs.run_one(library, ask(library, trajectory_id))
    assert [judgement.fingerprint for judgement in judgements(library)] == ["f1", "f2"]


def test_the_same_work_is_queued_once(library: Library, trajectory_id: str) -> None:
    assert ask(library, trajectory_id) == ask(library, trajectory_id)


@pytest.mark.parametrize("failure", [ReviewerError("The weights are missing."), ValueError("odd")])
def test_a_failing_judge_says_why_and_can_be_asked_again(
    library: Library, trajectory_id: str, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    use(monkeypatch, QueueJudge(failure, Judgement(outcome="correct")))
    failed = ask(library, trajectory_id)
    jobs.run_one(library, failed)
    assert state_of(library, failed)["state"] == "failed"
    assert str(failure) in state_of(library, failed)["message"]
    assert str(failure) in (judgements(library)[0].error or "")
    again = ask(library, trajectory_id)
    jobs.run_one(library, again)
    assert state_of(library, again)["state"] == "done"


def test_progress_is_told_while_it_runs_and_a_cancel_stops_it(
    library: Library, trajectory_id: str, monkeypatch: pytest.MonkeyPatch, worker: jobs.Worker
) -> None:
    monkeypatch.setattr(jobs, "REPORT_EVERY_S", 0.0)
    cancelled = threading.Event()

    def judge_slowly(progress: Progress) -> Judgement:
        progress(1, 5, "step 1")
        assert cancelled.wait(WAIT_S)
        progress(2, 5, "step 2")
        return Judgement(outcome="correct")

    use(monkeypatch, QueueJudge(judge_slowly))
    job_id = ask(library, trajectory_id)
    worker.start()
    wait_for(lambda: state_of(library, job_id)["done"] == 1)
    told = state_of(library, job_id)
    assert (told["state"], told["total"], told["message"]) == ("running", 5, "step 1")
    with library.database.write() as session:
        assert job_queue.cancel(session, job_id)
    cancelled.set()
    worker.stop()
    assert state_of(library, job_id)["state"] == "cancelled"
    assert judgements(library) == []


def test_a_cancelled_job_never_begins(library: Library, trajectory_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    judge = use(monkeypatch, QueueJudge())
    job_id = ask(library, trajectory_id)
    with library.database.write() as session:
        job_queue.cancel(session, job_id)
        assert not job_queue.cancel(session, job_id)
    jobs.run_one(library, job_id)
    assert (judge.runs, state_of(library, job_id)["state"]) == (0, "cancelled")


def test_what_a_dead_worker_left_running_is_done_again(
    library: Library, trajectory_id: str, monkeypatch: pytest.MonkeyPatch, worker: jobs.Worker
) -> None:
    use(monkeypatch, QueueJudge(Judgement(outcome="correct")))
    job_id = ask(library, trajectory_id)
    with library.database.write() as session:
        assert job_queue.claim(session, job_id)
    worker.start()
    wait_for(lambda: state_of(library, job_id)["state"] == "done")


def test_the_worker_takes_the_oldest_first_and_wakes_at_once(
    library: Library, trajectory_id: str, monkeypatch: pytest.MonkeyPatch, worker: jobs.Worker
) -> None:
    monkeypatch.setattr(jobs, "POLL_S", WAIT_S)
    done: list[str] = []
    kinds = {kind: lambda _library, job, _progress: done.append(job.kind) or {} for kind in ("a", "b", "c")}
    monkeypatch.setattr(jobs, "KINDS", kinds)
    with library.database.write() as session:
        ids = [job_queue.enqueue(session, kind, None, {}) for kind in ("a", "b")]
    worker.start()
    wait_for(lambda: len(done) == 2)
    with library.database.write() as session:
        ids.append(job_queue.enqueue(session, "c", None, {}))
    worker.wake()
    wait_for(lambda: state_of(library, ids[2])["state"] == "done")
    assert done == ["a", "b", "c"]


def test_an_upload_goes_before_what_nobody_waits_for(library: Library, trajectory_id: str) -> None:
    judged = ask(library, trajectory_id)
    with library.database.write() as session:
        uploaded = job_queue.enqueue(session, "upload", None, {})
        assert job_queue.next_queued(session) == uploaded
        job_queue.cancel(session, uploaded)
        assert job_queue.next_queued(session) == judged


def test_what_a_judge_says_is_kept_as_json(
    library: Library, trajectory_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, QueueJudge(Judgement(outcome="correct", probability=float("nan"), raw="\0\ud800")))
    jobs.run_one(library, ask(library, trajectory_id))
    document = judgements(library)[0].document
    json.dumps(document, allow_nan=False, ensure_ascii=False).encode()
    assert document["probability"] is None


def test_an_upload_is_imported_and_the_bad_files_are_told(library: Library) -> None:
    files = library.uploads_folder / ("u" * 24) / "files"
    write_video(files / "a.mp4")
    (files / "b.mp4").write_bytes(b"\0\0\0\x20ftypisom" + b"\0" * 100)
    with library.database.write() as session:
        job_id = job_queue.enqueue(session, "upload", None, {"task": "Watch"}, job_id="u" * 24)
    jobs.run_one(library, job_id)
    told = state_of(library, job_id)
    assert (told["state"], told["message"]) == ("done", "1 imported, 1 refused")
    assert {record["task"] for record in told["result"]["records"]} == {"Watch", None}
    assert files.is_dir()


def test_an_upload_that_brings_nothing_new_is_removed(library: Library) -> None:
    for name in ("u" * 24, "v" * 24):
        write_video(library.uploads_folder / name / "files" / "a.mp4")
        with library.database.write() as session:
            job_queue.enqueue(session, "upload", None, {"task": "Watch"}, job_id=name)
        jobs.run_one(library, name)
    assert [folder.name for folder in library.uploads_folder.iterdir()] == ["u" * 24]


def test_examples_are_queued_once_and_only_into_an_empty_library(library: Library, trajectory_id: str) -> None:
    jobs.queue_examples(library)
    with library.database.read() as session:
        assert session.scalars(select(JobRow)).all() == []


def test_examples_are_not_queued_again(library: Library, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(jobs, "example_paths", lambda: [tmp_path])
    for _ in range(2):
        jobs.queue_examples(library)
    with library.database.read() as session:
        assert [job.kind for job in session.scalars(select(JobRow))] == ["examples"]


def test_an_unknown_judge_is_told_with_those_there_are() -> None:
    with pytest.raises(ReviewerError, match="No judge is called 'x'. Known judges: " + (", ".join(known()) or "none")):
        load("x")
