"""Uploads: files are kept below their folder, whole, within limits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from runs_on_disk import write_video

from db.session import Database
from reviewer import jobs
from reviewer.library import Library
from reviewer.ui import library_routes, uploads
from reviewer.ui.http import tell_errors
from reviewer.ui.uploads import Limits, safe_path

JSON = {"Content-Type": "application/json"}


@pytest.fixture
def library(database: Database, tmp_path: Path) -> Library:
    return Library(database, tmp_path / "home")


@pytest.fixture
def client(library: Library) -> Iterator[TestClient]:
    app = FastAPI()
    tell_errors(app)
    app.include_router(library_routes.router(library, lambda: None))
    with TestClient(app, base_url="http://localhost:7860") as client:
        yield client


@pytest.fixture
def upload_id(client: TestClient) -> str:
    return str(client.post("/api/uploads", json={}).json()["upload_id"])


def put(client: TestClient, upload_id: str, path: str, body: bytes = b"x") -> Any:
    return client.put(f"/api/uploads/{upload_id}/files", params={"path": path}, content=body)


def test_an_upload_tells_its_limits(client: TestClient) -> None:
    answer = client.post("/api/uploads", json={}).json()
    assert answer["limits"] == vars(Limits())


@pytest.mark.parametrize(
    "path", ["a.txt", "run/№1 “x”/step 1.png", "Screenshot 3.00\u202fPM.png", ".../a", "-f", "a b/%2e%2e"]
)
def test_a_file_is_kept_under_its_path(client: TestClient, library: Library, upload_id: str, path: str) -> None:
    answer = put(client, upload_id, path, b"hello")
    assert (answer.status_code, answer.json()) == (200, {"path": path, "bytes": 5})
    assert (library.uploads_folder / upload_id / "files" / path).read_bytes() == b"hello"


@pytest.mark.parametrize(
    "path",
    ["", "/etc/passwd", "../a", "a/../../b", "a//b", "./a", "a/.", "a\0b", "a\nb", "a\\b", "x" * 256, "a/" * 40 + "b"],
)
def test_a_path_that_is_not_plain_is_refused(client: TestClient, library: Library, upload_id: str, path: str) -> None:
    assert put(client, upload_id, path).status_code == 422
    assert list((library.uploads_folder / upload_id / "files").iterdir()) == []


def test_a_lone_surrogate_is_no_plain_path() -> None:
    with pytest.raises(Exception, match="rename"):
        safe_path("a\ud800")


def test_the_same_file_again_replaces_the_first(client: TestClient, library: Library, upload_id: str) -> None:
    put(client, upload_id, "a.txt", b"first")
    put(client, upload_id, "a.txt", b"second")
    assert (library.uploads_folder / upload_id / "files" / "a.txt").read_bytes() == b"second"


def test_a_file_in_the_place_of_a_folder_is_refused(client: TestClient, upload_id: str) -> None:
    put(client, upload_id, "a/b")
    assert put(client, upload_id, "a").status_code == 409
    assert put(client, upload_id, "a/b/c").status_code == 409


def test_limits_are_refused_with_413_and_leave_nothing(
    client: TestClient, library: Library, upload_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = FastAPI()
    tell_errors(app)
    limited = uploads.Uploads(library.uploads_folder, Limits(file_bytes=10, upload_bytes=15, files=2))
    monkeypatch.setattr(library_routes, "Uploads", lambda folder: limited)
    app.include_router(library_routes.router(library, lambda: None))
    with TestClient(app) as small:
        assert put(small, upload_id, "a", b"x" * 11).status_code == 413
        assert put(small, upload_id, "a", b"x" * 10).status_code == 200
        assert put(small, upload_id, "b", b"x" * 6).status_code == 413
        assert put(small, upload_id, "b", b"x" * 5).status_code == 200
        assert put(small, upload_id, "c", b"").status_code == 413
    folder = library.uploads_folder / upload_id
    assert sorted(path.name for path in folder.rglob("*") if path.is_file()) == ["a", "b"]


@pytest.mark.parametrize("upload_id", ["none", "a" * 24, "..", "%2e%2e"])
def test_an_unknown_upload_is_404(client: TestClient, upload_id: str) -> None:
    assert put(client, upload_id, "a").status_code == 404
    assert client.post(f"/api/uploads/{upload_id}/import", json={}).status_code == 404


def test_a_foreign_page_may_not_upload(client: TestClient, upload_id: str) -> None:
    foreign = {"Origin": "https://evil.example"}
    assert client.post("/api/uploads", json={}, headers=foreign).status_code == 403
    url = f"/api/uploads/{upload_id}"
    assert client.put(f"{url}/files", params={"path": "a"}, content=b"x", headers=foreign).status_code == 403
    assert client.post(f"{url}/import", json={}, headers=foreign).status_code == 403


def test_an_upload_is_imported_once_however_often_it_is_asked(
    client: TestClient, library: Library, upload_id: str, tmp_path: Path
) -> None:
    put(client, upload_id, "a.mp4", write_video(tmp_path / "a.mp4").read_bytes())
    asked = [client.post(f"/api/uploads/{upload_id}/import", json={"task": "Watch"}).json() for _ in range(2)]
    assert asked == [{"job_id": upload_id}] * 2
    jobs.run_one(library, upload_id)
    (job,) = client.get("/api/jobs", params={"ids": upload_id}).json()["jobs"]
    assert job["state"] == "done"
    (record,) = job["result"]["records"]
    assert client.get(f"/api/trajectories/{record['id']}").json()["trajectory"]["task"] == "Watch"
