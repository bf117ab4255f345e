"""The routes of a review: who may send what, and how each refusal is told."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from durability_server import review_app
from fastapi.testclient import TestClient
from rows import add_trajectory, fill_ledger

from db.session import Database
from reviewer import ledger

OP: dict[str, Any] = {"op_id": "a", "base_rev": 0, "type": "set_outcome", "value": "correct", "shown": []}
ANN = {"X-Reviewer": "ann"}


@pytest.fixture
def client(database: Database, trajectory_id: str) -> Iterator[TestClient]:
    with TestClient(review_app(database), base_url="http://localhost:7860") as client:
        yield client


@pytest.fixture
def ops_url(trajectory_id: str) -> str:
    return f"/api/trajectories/{trajectory_id}/ops"


def test_an_op_is_answered_with_the_review_and_kept(
    client: TestClient, ops_url: str, database: Database, trajectory_id: str
) -> None:
    answer = client.post(ops_url, json=OP, headers=ANN)
    assert answer.status_code == 200
    with database.read() as session:
        review = ledger.current_review(session, trajectory_id, "ann")
    assert answer.json() == {"op_id": "a", "rev": 1, "review": review}
    assert review["outcome"] == "correct"
    assert client.post(ops_url, json=OP, headers=ANN).json() == answer.json()


def test_a_stale_op_is_answered_with_the_present_review(client: TestClient, ops_url: str) -> None:
    first = client.post(ops_url, json=OP, headers=ANN).json()
    answer = client.post(ops_url, json=OP | {"op_id": "b"}, headers=ANN)
    assert answer.status_code == 409
    assert (answer.json()["rev"], answer.json()["review"]) == (1, first["review"])
    assert [op["op_id"] for op in answer.json()["ops_since"]] == ["a"]


def test_an_unknown_trajectory_is_404(client: TestClient) -> None:
    for path in ("none", "%00", "..%2f"):
        answer = client.post(f"/api/trajectories/{path}/ops", json=OP, headers=ANN)
        assert answer.status_code == 404
        assert client.get(f"/api/trajectories/{path}/history").status_code == 404


@pytest.mark.parametrize("name", ["ann", "Zoë 🙂 / 李", "100%", "a b"])
def test_the_reviewer_is_read_percent_encoded(client: TestClient, ops_url: str, name: str) -> None:
    answer = client.post(ops_url, json=OP, headers={"X-Reviewer": quote(name, safe="")})
    assert answer.json()["review"]["reviewer"] == name


def test_a_proxy_may_tell_the_host(client: TestClient, ops_url: str) -> None:
    headers = ANN | {"Origin": "https://reviewer.example", "X-Forwarded-Host": "reviewer.example"}
    assert client.post(ops_url, json=OP, headers=headers).status_code == 200


def test_one_name_in_two_unicode_forms_is_one_reviewer(client: TestClient, ops_url: str) -> None:
    client.post(ops_url, json=OP, headers={"X-Reviewer": quote("Zoe\u0308")})
    again = client.post(ops_url, json=OP | {"op_id": "b", "base_rev": 1}, headers={"X-Reviewer": quote("Zo\u00eb")})
    assert again.json()["rev"] == 2


@pytest.mark.parametrize("header", [None, "", "   ", "%20", "%ff", "a%00b", "a%0ab", "x" * 81, "Zo\u00eb"])
def test_a_request_without_a_usable_name_is_400(client: TestClient, ops_url: str, header: str | None) -> None:
    headers = {} if header is None else {"X-Reviewer": header.encode("latin-1")}
    answer = client.post(ops_url, json=OP, headers=headers)
    assert answer.status_code == 400
    assert "X-Reviewer" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("origin", "host", "status"),
    [
        (None, "localhost:7860", 200),
        ("http://localhost:7860", "localhost:7860", 200),
        ("http://LOCALHOST:7860", "localhost:7860", 200),
        ("https://reviewer.example", "reviewer.example", 200),
        ("https://reviewer.example", "reviewer.example:443", 200),
        ("http://localhost:7861", "localhost:7860", 403),
        ("http://localhost", "localhost:7860", 403),
        ("https://evil.example", "localhost:7860", 403),
        ("https://localhost:7860.evil.example", "localhost:7860", 403),
        ("https://evil.example@localhost:7860", "localhost:7860", 403),
        ("null", "localhost:7860", 403),
        ("", "localhost:7860", 403),
        ("http://[", "localhost:7860", 403),
    ],
)
def test_only_the_own_page_may_send(
    client: TestClient, ops_url: str, origin: str | None, host: str, status: int
) -> None:
    headers = ANN | {"Host": host} | ({} if origin is None else {"Origin": origin})
    assert client.post(ops_url, json=OP, headers=headers).status_code == status


@pytest.mark.parametrize(
    "content_type", [None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]
)
def test_a_body_not_declared_as_json_is_415(client: TestClient, ops_url: str, content_type: str | None) -> None:
    headers = ANN if content_type is None else ANN | {"Content-Type": content_type}
    answer = client.post(ops_url, content=json.dumps(OP), headers=headers)
    assert (answer.status_code, "application/json" in answer.json()["detail"]) == (415, True)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"text"',
        b"\xff\xfe",
        b'{"op_id": NaN}',
        b"[" * 100_000,
        b'{"base_rev": ' + b"9" * 5000 + b"}",
        json.dumps(OP).encode("utf-16"),
        json.dumps(OP | {"type": "put_span", "span_id": "s", "start_s": 0}).encode(),
        json.dumps(OP | {"value": "\ud800"}).encode(),
        json.dumps(OP | {"op_id": "\ud800"}).encode(),
        b'{"op_id": "a", "base_rev": 0, "type": "put_span", "span_id": "s", "start_s": 0, "end_s": 1e999}',
        b'{"\\ud800": 1, "op_id": "a", "base_rev": 0, "type": "submit"}',
    ],
)
def test_a_body_that_is_no_op_is_422_with_a_reason(client: TestClient, ops_url: str, body: bytes) -> None:
    answer = client.post(ops_url, content=body, headers=ANN | {"Content-Type": "application/json; charset=utf-8"})
    assert answer.status_code == 422
    assert isinstance(answer.json()["detail"], str)
    assert client.post(ops_url, json=OP, headers=ANN).json()["rev"] == 1


def test_a_body_over_the_limit_is_413_however_it_is_sent(client: TestClient, ops_url: str) -> None:
    def pieces() -> Iterator[bytes]:
        for _ in range(20):
            yield b" " * 100_000

    headers = ANN | {"Content-Type": "application/json"}
    for content in (b" " * 1_000_001, pieces()):
        answer = client.post(ops_url, content=content, headers=headers)
        assert (answer.status_code, "1,000,000 bytes" in answer.json()["detail"]) == (413, True)


def test_history_comes_in_pages_newest_first(client: TestClient, ops_url: str) -> None:
    for rev in range(5):
        client.post(ops_url, json=OP | {"op_id": str(rev), "base_rev": rev}, headers=ANN)
    history_url = ops_url.removesuffix("ops") + "history"
    pages = [
        client.get(history_url, params=params).json()["ops"]
        for params in ({"limit": "2"}, {"limit": "2", "before": "3"}, {"before": "1"})
    ]
    assert [[op["op_id"] for op in page] for page in pages] == [["4", "3"], ["2", "1"], ["0"]]
    for params in ({"limit": "0"}, {"limit": "x"}, {"limit": "100000"}, {"before": "none"}):
        answer = client.get(history_url, params=params)
        assert answer.status_code == 422
        assert next(iter(params)) in answer.json()["detail"]


def test_a_database_that_fails_is_503_and_named(database: Database, client: TestClient, ops_url: str) -> None:
    read_only = Database.open(f"sqlite:///file:{database.name}?mode=ro&uri=true")
    answer = TestClient(review_app(read_only)).post(ops_url, json=OP, headers=ANN)
    assert answer.status_code == 503
    assert "reviewer.db" in answer.json()["detail"]


@pytest.mark.speed
def test_an_op_costs_the_same_in_a_large_ledger(tmp_path: Path) -> None:
    clients, revs, times_s = [], [0, 2000], ([], [])
    for rev in revs:
        database = Database.open(f"sqlite:///{tmp_path / f'{rev}.db'}")
        with database.write() as session:
            add_trajectory(session, "open")
            if rev:
                fill_ledger(session, "open", "ann", rev)
                fill_ledger(session, add_trajectory(session, "rest"), "ann", 18_000)
        clients.append(TestClient(review_app(database)))
    for number in range(60):
        for which, client in enumerate(clients):
            op = OP | {"op_id": f"timed-{number}", "base_rev": revs[which], "value": ("correct", None)[number % 2]}
            start_s = time.perf_counter()
            answer = client.post("/api/trajectories/open/ops", json=op, headers=ANN)
            times_s[which].append(time.perf_counter() - start_s)
            revs[which] = answer.json()["rev"]
    assert revs == [60, 2060]
    empty_s, large_s = (statistics.median(times) for times in times_s)
    assert large_s < 2 * empty_s
