"""The API's contract: every answer is an envelope, every error says what to do, nobody unknown gets in."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from lab import Lab, key, lab, spec, until

from runtime_client.models import Envelope, ErrorBody

JOBS = "/v1/jobs"


def error_of(answer: object) -> ErrorBody:
    envelope = Envelope[object].model_validate_json(answer.content)  # type: ignore[attr-defined]
    assert envelope.data is None
    assert envelope.error is not None
    return envelope.error


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nothing/here", 404, "no_such_path"),
        ("GET", "/v1/jobs/", 404, "no_such_path"),
        ("DELETE", "/v1/jobs", 405, "method_not_allowed"),
        ("GET", "/v1/jobs/j999", 404, "no_such_job"),
        ("GET", "/v1/jobs/j999/logs", 404, "no_such_job"),
        ("GET", "/v1/jobs/j999/metrics", 404, "no_such_job"),
        ("GET", "/v1/jobs/j999/explain", 404, "no_such_job"),
        ("GET", f"/v1/jobs/j{'9' * 300}", 404, "no_such_job"),
        ("GET", f"/v1/jobs/{'%F0%9F%98%80' * 100}/logs", 404, "no_such_job"),
        ("POST", f"/v1/jobs/j{'9' * 300}/cancel", 404, "no_such_job"),
        ("POST", "/v1/jobs/j999/cancel", 404, "no_such_job"),
        ("GET", "/v1/jobs?limit=many", 422, "invalid_value"),
        ("GET", "/v1/jobs?state=runing", 422, "invalid_value"),
        ("GET", "/v1/jobs?before=17", 422, "invalid_value"),
        ("GET", "/v1/runs/nothing", 404, "no_such_run"),
        ("GET", "/v1/events?since=-1", 422, "invalid_value"),
        ("PUT", "/v1/runs/x/artifacts/../up", 404, "no_such_path"),
    ],
)
def test_every_refusal_is_an_envelope(shared: Lab, method: str, path: str, status: int, code: str) -> None:
    answer = shared.http.request(method, path, headers=shared.auth)
    assert (answer.status_code, error_of(answer).code) == (status, code)


@pytest.mark.parametrize(
    ("body", "code", "path", "words"),
    [
        (b"{", "invalid_json", None, "not JSON"),
        (b"[]", "invalid_value", None, "dictionary"),
        (b'{"command": "true"}', "missing_key", "experiment_name", "required"),
        (
            b'{"experiment_name": "a", "command": "true", "compute": {"num_acelerators": 2}}',
            "unknown_key",
            "compute.num_acelerators",
            "did you mean num_accelerators?",
        ),
        (
            b'{"experiment_name": "a", "command": "true", "compute": {"num_accelerators": 0}}',
            "invalid_value",
            "compute.num_accelerators",
            "it is 0",
        ),
        (
            b'{"experiment_name": "a", "command": "true", "priority_class": "urgent"}',
            "unknown_priority_class",
            "priority_class",
            "critical, normal, exploratory",
        ),
        (
            b'{"experiment_name": "a", "command": "true", "compute": {"num_accelerators": 3}}',
            "infeasible",
            "compute.num_accelerators",
            "asks for 3 devices; the cluster has 2 cpu on local",
        ),
        (
            b'{"experiment_name": "a", "command": "true", "compute": {"accelerator_type": "GPU_2xH100", '
            b'"num_accelerators": 3}}',
            "not_whole_groups",
            "compute.num_accelerators",
            "multiple of 2",
        ),
        (
            b'{"experiment_name": "a", "command": "true", "mlflow_parent_run_id": "no"}',
            "unknown_run",
            "mlflow_parent_run_id",
            "no run 'no'",
        ),
        (
            b'{"experiment_name": "a", "command": "true", "environment": {"python": "python"}}',
            "not_absolute",
            "environment.python",
            "'python' is not an absolute path",
        ),
        (
            b'{"experiment_name": "a", "command": "true", "metric_sources": [{"kind": "json_lines", "pat": "x"}]}',
            "unknown_key",
            "metric_sources.0.pat",
            "did you mean path?",
        ),
    ],
)
def test_a_bad_spec_is_refused_with_path_and_what_is_allowed(
    shared: Lab, body: bytes, code: str, path: str | None, words: str
) -> None:
    answer = shared.http.post(JOBS, content=body, headers={**shared.auth, "Content-Type": "application/json"})
    error = error_of(answer)
    assert (answer.status_code, error.code, error.path) == (422, code, path)
    assert words in error.message
    assert not error.retryable


@pytest.mark.parametrize(
    ("more", "path"),
    [
        ('"tags": {"a": "\\ud800"}', None),
        ('"parameters": {"a": NaN}', None),
        ('"parameters": {"a": ' + "[" * 5000 + "]" * 5000 + "}", None),
        ('"command": "tr\\u0000ue"', "command"),
        ('"env_variables": {"A=B": "x"}', "env_variables"),
        ('"env_variables": {"A": "\\u0000"}', "env_variables"),
        ('"session": {"session_id": "s", "fence": 9223372036854775808}', "session.fence"),
        ('"timeout_minutes": 1e999', "timeout_minutes"),
    ],
)
def test_what_could_not_be_started_or_shown_again_is_refused(shared: Lab, more: str, path: str | None) -> None:
    body = '{"experiment_name": "a", "command": "true", ' + more + "}"
    answer = shared.http.post(JOBS, content=body, headers={**shared.auth, "Content-Type": "application/json"})
    assert (answer.status_code, error_of(answer).path) == (422, path)
    assert shared.client.jobs(limit=1000) == []


def test_a_value_too_long_for_the_store_is_the_callers_to_mend(shared: Lab) -> None:
    body = {"experiment_name": "e" * 300, "run_name": "r", "idempotency_token": "t"}
    answer = shared.http.post("/v1/runs", json=body, headers=shared.auth)
    assert (answer.status_code, error_of(answer).kind) == (422, "invalid")
    assert "300 characters; at most 250" in error_of(answer).message


def test_a_bug_is_an_envelope_too(tmp_path: Path) -> None:
    with lab(tmp_path) as made:

        async def explode() -> None:
            raise ZeroDivisionError("planted")

        made.server.app.add_api_route("/v1/explode", explode)
        answer = made.http.get("/v1/explode", headers=made.auth)
        assert answer.status_code == 500
        assert error_of(answer).kind == "fault"


@pytest.mark.parametrize(
    ("authorization", "status", "code"),
    [
        (None, 401, "no_token"),
        ("Bearer", 401, "no_token"),
        ("Basic abc", 401, "no_token"),
        ("Bearer wrong", 401, "wrong_token"),
        ("Bearer j1.1." + "0" * 64, 401, "wrong_token"),
    ],
)
@pytest.mark.parametrize("path", ["/v1/info", "/v1/jobs", "/v1/events", "/v1/runs/x", "/nothing", "/openapi.json"])
def test_only_the_owner_gets_in(shared: Lab, authorization: str | None, status: int, code: str, path: str) -> None:
    headers = {} if authorization is None else {"Authorization": authorization}
    answer = shared.http.get(path, headers=headers)
    assert (answer.status_code, error_of(answer).code) == (status, code)


def test_health_needs_no_token(shared: Lab) -> None:
    assert shared.http.get("/v1/health").status_code == 200


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:1", 200),
        ("localhost", 200),
        ("[::1]:7070", 200),
        ("127.8.8.8", 200),
        ("evil.example", 403),
        ("localhost.evil.example", 403),
        ("127.0.0.1@evil.example", 403),
        ("", 403),
    ],
)
def test_only_loopback_host_names_are_served(shared: Lab, host: str, status: int) -> None:
    answer = shared.http.get("/v1/health", headers={"Host": host})
    assert answer.status_code == status


def test_a_configured_host_name_is_served(tmp_path: Path) -> None:
    with lab(tmp_path, allowed_hosts=("Lab.example",)) as made:
        assert made.http.get("/v1/health", headers={"Host": "lab.example:80"}).status_code == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost:1", "https://127.0.0.1:1"])
def test_pages_of_other_sites_may_not_call(shared: Lab, origin: str) -> None:
    answer = shared.http.post(JOBS, json={}, headers={**shared.auth, "Origin": origin})
    assert (answer.status_code, error_of(answer).code) == (403, "origin_not_allowed")


def test_a_page_of_the_same_host_may_call(shared: Lab) -> None:
    assert shared.http.get("/v1/info", headers={**shared.auth, "Origin": shared.server.url}).status_code == 200


def test_an_attempt_token_reaches_the_gateway_and_nothing_else(tmp_path: Path) -> None:
    with lab(tmp_path) as made:
        job = made.client.submit(spec())
        order = until(lambda: made.engine.attempts.get(key(job.job_id))).order
        bearer = {"Authorization": f"Bearer {order.attempt_token}"}
        assert order.tracking_url == made.server.url
        assert made.http.post("/api/2.0/mlflow/runs/create", json={}, headers=bearer).status_code == 200
        for path in ("/v1/info", "/v1/jobs", "/v1/runs/" + job.run_id):
            answer = made.http.get(path, headers=bearer)
            assert (answer.status_code, error_of(answer).code) == (403, "attempt_token")


def test_the_gateway_refuses_who_has_no_token(shared: Lab) -> None:
    assert shared.http.post("/api/2.0/mlflow/runs/create", json={}).status_code == 401


def test_a_body_that_is_too_large_is_refused(tmp_path: Path) -> None:
    with lab(tmp_path, max_body_bytes=1000) as made:
        announced = made.http.post(JOBS, content=b"x" * 1001, headers=made.auth)
        assert (announced.status_code, error_of(announced).code) == (413, "too_large")

        def pieces() -> object:
            yield from (b"x" * 600, b"x" * 600)

        json_type = {**made.auth, "Content-Type": "application/json"}
        unannounced = made.http.post(JOBS, content=pieces(), headers=json_type)  # type: ignore[arg-type]
        assert (unannounced.status_code, error_of(unannounced).code) == (413, "too_large")


def test_key_files_are_private(shared: Lab) -> None:
    config = shared.server.config
    for path in (config.token_path, config.secret_path, config.home / "runtime.db"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_api_describes_itself(shared: Lab) -> None:
    schema = shared.http.get("/openapi.json", headers=shared.auth).json()
    assert {"/v1/jobs", "/v1/jobs/batch", "/v1/jobs/{job_id}/cancel", "/v1/events", "/v1/runs"} <= set(schema["paths"])
