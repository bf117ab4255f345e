"""The server: the library's routes, and the whole of it as a process."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
import tomllib
import urllib.error
import urllib.request
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from conftest import free_port
from fastapi import FastAPI
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image
from runs_on_disk import line, write_osworld, write_video

from db.session import Database
from reviewer import __version__
from reviewer.intake import import_paths
from reviewer.judges import DEFAULT_JUDGE, known
from reviewer.library import Library
from reviewer.ui.server import PREFIX, build_api, build_page, mounted, static_folder

ROOT = Path(__file__).parent.parent
START_S = 60.0
ADA = {"X-Reviewer": "ada"}


@pytest.fixture
def library(database: Database, tmp_path: Path) -> Library:
    return Library(database, tmp_path / "home")


@pytest.fixture
def client(library: Library) -> Iterator[TestClient]:
    with TestClient(build_api(library, lambda: None), base_url="http://localhost:7860") as client:
        yield client


@pytest.fixture
def record(library: Library, tmp_path: Path) -> dict[str, Any]:
    """The import record of a run with a video of five pictures in a second."""
    run = write_osworld(tmp_path / "in", [line(1, "pyautogui.click(32, 18)"), line(2, "DONE")])
    write_video(run / "recording.mp4")
    (record,) = import_paths(library, [run], task="Click")
    return record


@pytest.fixture
def shown(client: TestClient, record: dict[str, Any]) -> dict[str, Any]:
    return dict(client.get(f"/api/trajectories/{record['id']}", headers=ADA).json())


def media_url(shown: dict[str, Any]) -> str:
    return str(shown["media"]["url"]).removeprefix(PREFIX)


def test_the_list_answers_a_page_and_all_ids(client: TestClient, record: dict[str, Any]) -> None:
    answer = client.get("/api/trajectories", params={"ids": 1, "problems": "no", "judge_outcome": ""}).json()
    assert (answer["total"], answer["ids"]) == (1, [record["id"]])
    assert answer["items"][0]["task"] == "Click"
    assert "ids" not in client.get("/api/trajectories").json()


@pytest.mark.parametrize(
    "query",
    [
        *("sort=colour", "order=up", "judge_outcome=x", "review=x", "offset=-1", "limit=100000"),
        *(f"offset={2**63}", f"offset={10**22}", f"offset={'9' * 5000}", f"limit={10**22}", f"search={'x' * 6000}"),
    ],
)
def test_a_query_the_list_does_not_know_is_422(client: TestClient, query: str) -> None:
    answer = client.get(f"/api/trajectories?{query}")
    assert answer.status_code == 422
    assert query.split("=")[0] in answer.json()["detail"]


def test_choices_tell_what_to_filter_by_and_whether_more_is_coming(client: TestClient, record: dict[str, Any]) -> None:
    choices = client.get("/api/choices").json()
    assert choices == {
        "formats": ["osworld"],
        "agents": choices["agents"],
        "judges": list(known()),
        "recipes": ["jsonl"],
        "importing": False,
    }


def test_the_review_is_the_asking_reviewers_own(client: TestClient, record: dict[str, Any]) -> None:
    url = f"/api/trajectories/{record['id']}"
    op = {"op_id": "a", "base_rev": 0, "type": "set_outcome", "value": "correct", "shown": []}
    assert client.post(f"{url}/ops", json=op, headers=ADA).status_code == 200
    assert client.get(url, headers=ADA).json()["review"]["outcome"] == "correct"
    assert client.get(url).json()["review"]["status"] == "unreviewed"
    assert client.get("/api/trajectories", headers=ADA).json()["items"][0]["review"]["outcome"] == "correct"


def test_an_unknown_trajectory_is_404(client: TestClient) -> None:
    assert client.get("/api/trajectories/none").status_code == 404
    assert client.post("/api/trajectories/none/judge", json={"judge": DEFAULT_JUDGE}, headers=ADA).status_code in (
        400,
        404,
    )
    body = {"base_version": 1, "pins": [], "shift_s": 0}
    assert client.post("/api/trajectories/none/alignment", json=body, headers=ADA).status_code == 404


def test_media_are_served_whole_and_in_ranges(client: TestClient, shown: dict[str, Any]) -> None:
    whole = client.get(media_url(shown))
    assert whole.status_code == 200
    assert whole.headers["content-type"] == "video/mp4"
    assert whole.headers["x-content-type-options"] == "nosniff"
    assert whole.headers["cache-control"].startswith("private")
    for asked, expected in (("bytes=10-19", whole.content[10:20]), ("bytes=-5", whole.content[-5:])):
        part = client.get(media_url(shown), headers={"Range": asked})
        assert (part.status_code, part.content) == (206, expected)
    assert client.get(media_url(shown), headers={"Range": "bytes=999999999-"}).status_code == 416
    assert client.head(media_url(shown)).headers["content-length"] == str(len(whole.content))


def test_screenshots_are_served_as_what_they_are(client: TestClient, shown: dict[str, Any]) -> None:
    url = shown["trajectory"]["observations"][1]["url"].removeprefix(PREFIX)
    answer = client.get(url)
    assert answer.headers["content-type"] == "image/png"
    assert Image.open(BytesIO(answer.content)).size == (64, 36)


@pytest.mark.parametrize("media_id", ["none", "..%2f..%2fetc%2fpasswd", "%00"])
def test_unknown_media_are_404(client: TestClient, media_id: str) -> None:
    assert client.get(f"/media/{media_id}").status_code == 404
    assert client.get(f"/media/{media_id}/picture?at_s=0").status_code == 404


def test_media_that_are_gone_are_told(client: TestClient, record: dict[str, Any], shown: dict[str, Any]) -> None:
    for picture in Path(record["source"]).glob("*.png"):
        picture.unlink()
    answer = client.get(shown["trajectory"]["observations"][1]["url"].removeprefix(PREFIX))
    assert answer.status_code == 404
    assert "import its folder again" in answer.json()["detail"]


def test_a_picture_is_the_one_shown_at_that_time(client: TestClient, shown: dict[str, Any]) -> None:
    for at_s, shade in ((0.0, 0), (0.5, 80), (99.0, 160)):
        answer = client.get(f"{media_url(shown)}/picture", params={"at_s": at_s})
        assert answer.headers["content-type"] == "image/jpeg"
        assert Image.open(BytesIO(answer.content)).convert("L").getpixel((32, 18)) == pytest.approx(shade, abs=6)
    small = client.get(f"{media_url(shown)}/picture", params={"at_s": 0, "width_px": 32})
    assert Image.open(BytesIO(small.content)).size == (32, 18)


@pytest.mark.parametrize("at_s", ["", "x", "nan", "inf", "-1", "1e300", "1e10"])
def test_a_picture_at_no_time_is_422(client: TestClient, shown: dict[str, Any], at_s: str) -> None:
    assert client.get(f"{media_url(shown)}/picture", params={"at_s": at_s}).status_code == 422


def test_a_correction_is_a_new_version_with_its_author(client: TestClient, shown: dict[str, Any]) -> None:
    url = f"/api/trajectories/{shown['trajectory']['id']}/alignment"
    body = {"base_version": 1, "pins": [{"step_index": 1, "at_s": 0.75}], "shift_s": 0}
    answer = client.post(url, json=body, headers=ADA)
    assert answer.status_code == 200
    assert (answer.json()["version"], answer.json()["author"], answer.json()["step_at_s"][1]) == (2, "ada", 0.75)
    stale = client.post(url, json=body, headers=ADA)
    assert stale.status_code == 409
    assert stale.json()["alignment"] == answer.json()


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"base_version": "1"},
        {"base_version": 1, "shift_s": "x"},
        {"base_version": 1, "shift_s": 1e300},
        {"base_version": 1, "pins": {}},
        {"base_version": 1, "pins": [1]},
        {"base_version": 1, "pins": [{"step_index": True, "at_s": 0}]},
        {"base_version": 1, "pins": [{"step_index": 99, "at_s": 0}]},
        {"base_version": 1, "pins": [{"step_index": -1, "at_s": 0}]},
    ],
)
def test_a_correction_that_fits_nothing_is_refused(client: TestClient, shown: dict[str, Any], body: Any) -> None:
    url = f"/api/trajectories/{shown['trajectory']['id']}/alignment"
    assert client.post(url, json=body, headers=ADA).status_code in (400, 422)
    assert client.get(url.removesuffix("/alignment")).json()["alignment"]["version"] == 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"shift_s": 1e8}, "cannot move by 1e+08 s"),
        ({"shift_s": 1e300}, "shift_s is too large"),
        ({"pins": [{"step_index": 0, "at_s": 1e300}]}, "at_s is too large"),
        ({"pins": [{"step_index": 0, "at_s": 1.5}]}, "inside the video"),
        ({"pins": [{"step_index": 10**30, "at_s": 0}]}, "There is no step"),
    ],
)
def test_a_correction_out_of_the_video_is_422_with_the_reason(
    client: TestClient, shown: dict[str, Any], change: dict[str, Any], words: str
) -> None:
    url = f"/api/trajectories/{shown['trajectory']['id']}/alignment"
    answer = client.post(url, json={"base_version": 1} | change, headers=ADA)
    assert (answer.status_code, words in answer.json()["detail"]) == (422, True)


def test_a_correction_that_changes_nothing_is_no_new_version(client: TestClient, shown: dict[str, Any]) -> None:
    url = f"/api/trajectories/{shown['trajectory']['id']}/alignment"
    moved = {"base_version": 1, "pins": [{"step_index": 1, "at_s": 0.75}], "shift_s": 0}
    answer = client.post(url, json=moved, headers=ADA).json()
    for change in ({}, {"shift_s": 0.0}, {"pins": moved["pins"]}):
        again = client.post(url, json={"base_version": 2} | change, headers=ADA)
        assert (again.status_code, again.json()) == (200, answer)


LARGE = st.integers(-(10**40), 10**40)
ODD = st.one_of(LARGE.map(str), st.floats().map(str), st.text(max_size=20), st.just("9" * 4400), st.just("1e999"))
QUERIES = {
    "/api/trajectories": (
        *("search", "source", "agent", "judge_outcome", "review", "problems"),
        *("sort", "order", "offset", "limit", "ids"),
    ),
    "/api/trajectories/{id}/history": ("before", "limit"),
    "/api/jobs": ("ids",),
    "{picture}": ("at_s", "width_px"),
}


@given(
    st.sampled_from(sorted(QUERIES)).flatmap(lambda path: st.tuples(st.just(path), st.sampled_from(QUERIES[path]))), ODD
)
@settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_query_brings_the_server_down(
    client: TestClient, shown: dict[str, Any], asked: tuple[str, str], value: str
) -> None:
    path = asked[0].format(id=shown["trajectory"]["id"], picture=f"{media_url(shown)}/picture")
    params = {"at_s": "0", "ids": "0"} | {asked[1]: value}
    assert client.get(path, params=params).status_code in (200, 400, 404, 422)


@given(
    st.dictionaries(
        st.sampled_from(["base_version", "shift_s", "pins", "base_rev", "step_index", "start_s", "end_s", "type"]),
        st.one_of(
            LARGE, st.floats(allow_nan=False, allow_infinity=False), st.none(), st.just([{"step_index": 10**30}])
        ),
    )
)
@settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_number_in_a_body_brings_the_server_down(
    client: TestClient, record: dict[str, Any], body: dict[str, Any]
) -> None:
    url = f"/api/trajectories/{record['id']}"
    span = {"op_id": "o", "base_rev": 0, "type": "put_span", "span_id": "s", "start_s": 0, "end_s": 1} | body
    for path, document in ((f"{url}/alignment", {"base_version": 0} | body), (f"{url}/ops", span)):
        assert client.post(path, json=document, headers=ADA).status_code in (200, 400, 409, 422)


@pytest.mark.parametrize(
    "path", ["trajectories?search=%00", "trajectories?source=%00", "trajectories/%00", "jobs?ids=%00", "choices%00"]
)
def test_a_character_no_text_column_holds_is_refused_or_unknown(
    any_database: Database, tmp_path: Path, path: str
) -> None:
    library = Library(any_database, tmp_path / "home")
    with TestClient(build_api(library, lambda: None), base_url="http://localhost:7860") as client:
        assert client.get(f"/api/{path}").status_code in (200, 404, 422)


def test_a_foreign_page_may_not_write(client: TestClient, record: dict[str, Any]) -> None:
    foreign = ADA | {"Origin": "https://evil.example"}
    for path in (f"trajectories/{record['id']}/alignment", f"trajectories/{record['id']}/judge", "jobs/x/cancel"):
        assert client.post(f"/api/{path}", json={}, headers=foreign).status_code == 403


def test_an_unknown_judge_is_refused_with_those_there_are(client: TestClient, record: dict[str, Any]) -> None:
    answer = client.post(f"/api/trajectories/{record['id']}/judge", json={"judge": "oracle"})
    assert answer.status_code == 400
    assert "oracle" in answer.json()["detail"]


@pytest.mark.skipif(not known(), reason="no judge runs here")
def test_asking_a_judge_queues_a_job(client: TestClient, record: dict[str, Any]) -> None:
    job_id = client.post(f"/api/trajectories/{record['id']}/judge", json={"judge": known()[0]}).json()["job_id"]
    (job,) = client.get("/api/jobs", params={"ids": f"{job_id},none"}).json()["jobs"]
    assert (job["state"], job["trajectory_id"]) == ("queued", record["id"])
    assert client.get("/api/trajectories").json()["items"][0]["judge"]["state"] == "queued"
    assert client.post(f"/api/jobs/{job_id}/cancel", json={}).json()["state"] == "cancelled"
    assert client.post("/api/jobs/none/cancel", json={}).status_code == 404


def test_an_export_is_downloaded_as_a_zip_that_imports_again(
    client: TestClient, record: dict[str, Any], tmp_path: Path
) -> None:
    answer = client.get("/api/export/jsonl")
    assert answer.headers["content-type"] == "application/zip"
    assert "attachment" in answer.headers["content-disposition"]
    archive = tmp_path / "export.zip"
    archive.write_bytes(answer.content)
    other = Library(Database.open(f"sqlite:///{tmp_path / 'other.db'}"), tmp_path / "other")
    assert [found["id"] for found in import_paths(other, [archive])] == [record["id"]]
    other.database.close()
    assert client.get("/api/export/parquet").status_code == 400


def test_modules_are_served_fresh_and_unchanged_ones_without_a_body(client: TestClient) -> None:
    answer = client.get("/static/main.js?v=1")
    assert answer.headers["content-type"].startswith(("application/javascript", "text/javascript"))
    assert answer.headers["cache-control"] == "no-cache"
    assert client.get("/static/main.js", headers={"If-None-Match": answer.headers["etag"]}).status_code == 304
    assert client.get("/static/../server.py").status_code == 404


@pytest.mark.parametrize("root_path", ["", "/app"])
def test_everything_is_found_behind_a_proxy_that_strips_its_prefix(library: Library, root_path: str) -> None:
    app = FastAPI(routes=[mounted(build_api(library, lambda: None))])
    with TestClient(app, root_path=root_path) as client:
        for path in ("/api/trajectories", "/static/main.js"):
            assert client.get(PREFIX + path).status_code == 200


def test_the_page_is_a_constant_element_without_any_text_of_a_trajectory() -> None:
    (element,) = [block for block in build_page().blocks.values() if hasattr(block, "html_template")]
    assert element.html_template == '<div class="reviewer-root"></div>'
    assert "main.js" in element.js_on_load


def test_requirements_of_the_space_are_those_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert (ROOT / "requirements.txt").read_text().split() == project["dependencies"]


def test_the_readme_carries_what_a_space_needs() -> None:
    front = (ROOT / "README.md").read_text().split("---")[1]
    values = dict(item.split(": ", 1) for item in front.strip().splitlines() if ": " in item)
    assert (values["sdk"], values["app_file"], values["license"]) == ("gradio", "app.py", "apache-2.0")
    assert re.fullmatch(r'"?6\.\d+\.\d+"?', values["sdk_version"])
    assert len(values["short_description"]) <= 60


@contextmanager
def served(command: list[str], home: Path, port: int, **environment: str) -> Iterator[str]:
    """Run ``command`` as a server on ``port``; gives its address once the page answers."""
    log = home.parent / "server.log"
    url = f"http://127.0.0.1:{port}"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, "serve", "--port", str(port)],
            env={**os.environ, "REVIEWER_HOME": str(home), **environment},
            cwd=home.parent,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        deadline_s = time.monotonic() + START_S
        while not log.read_text().startswith(f"Trajectory Reviewer: {url}\n"):
            if process.poll() is not None or time.monotonic() > deadline_s:
                pytest.fail(f"the server did not start: {log.read_text()}")
            time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        process.wait(START_S)
    assert "Traceback" not in log.read_text()


def fetch(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=30) as answer:
        return bytes(answer.read())


def await_examples(url: str) -> list[dict[str, Any]]:
    """The worklist once the example runs are all in."""
    deadline_s = time.monotonic() + 2 * START_S
    while json.loads(fetch(f"{url}{PREFIX}/api/choices"))["importing"]:
        assert time.monotonic() < deadline_s, "the examples did not load"
        time.sleep(0.2)
    return list(json.loads(fetch(f"{url}{PREFIX}/api/trajectories?limit=500"))["items"])


def test_a_first_start_answers_at_once_and_loads_the_examples(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "reviewer"]
    with served(command, tmp_path / "home", free_port(), PYTHONPATH=str(ROOT)) as url:
        page = fetch(f"{url}/").decode()
        assert "<title>Trajectory Reviewer</title>" in page or "Trajectory Reviewer" in page
        assert b"export" in fetch(f"{url}{PREFIX}/static/main.js")
        items = await_examples(url)
        assert len(items) == len(list((ROOT / "examples" / "runs").rglob("traj.jsonl")))
        assert all(item["task"] for item in items)
        assert fetch(f"{url}{items[0]['thumbnail_url']}").startswith(b"\xff\xd8")
    with served(command, tmp_path / "home", free_port(), PYTHONPATH=str(ROOT)) as url:
        assert len(await_examples(url)) == len(items)


def test_a_taken_port_is_told_with_the_fix(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        result = subprocess.run(
            [sys.executable, "-m", "reviewer", "serve", "--port", str(port), "--no-examples"],
            env={**os.environ, "REVIEWER_HOME": str(tmp_path / "home"), "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=START_S,
            check=False,
        )
    assert result.returncode == 2
    assert str(port) in result.stderr
    assert "--port" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.long
@pytest.mark.skipif("REVIEWER_LONG" not in os.environ, reason="long")
def test_an_installed_wheel_works_as_the_tree_does(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--outdir", tmp_path, ROOT], check=True, capture_output=True
    )
    (wheel,) = tmp_path.glob(f"trajectory_reviewer-{__version__}-*.whl")
    venv.create(tmp_path / "venv", with_pip=True, system_site_packages=False)
    python = tmp_path / "venv" / "bin" / "python"
    # The packages it needs are those the tests run with; only the reviewer itself comes from the wheel.
    packages = next(folder for folder in map(Path, sys.path) if (folder / "gradio").is_dir())
    site = next((tmp_path / "venv" / "lib").glob("python*/site-packages"))
    (site / "needed.pth").write_text(f"{packages}\n")
    subprocess.run([python, "-m", "pip", "install", "--no-deps", "--no-index", wheel], check=True, capture_output=True)
    with served([str(tmp_path / "venv" / "bin" / "reviewer")], tmp_path / "home", free_port()) as url:
        assert b"Trajectory Reviewer" in fetch(f"{url}/")
        names = [path.name for path in static_folder().iterdir() if path.is_file()]
        assert all(fetch(f"{url}{PREFIX}/static/{name}") for name in names)
        assert len(await_examples(url)) == len(list((ROOT / "examples" / "runs").rglob("traj.jsonl")))
