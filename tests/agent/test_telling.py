"""Messages go out through real servers on loopback; one that refuses or hangs costs a bounded time and no secret."""

from __future__ import annotations

import email
import email.policy
import json
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from loopback_servers import mail_sink, nobody, silence, webhook

from agent.notices.notice import Notice
from agent.notices.sending import scrubbed
from agent.notices.telling import Delivery, tell
from agent.report.night.sample import SWEEP, sample_night
from agent.sweeps.morning import tell_of
from agent.sweeps.sweep import Notification

NOTICE = Notice(title="digits-nightly-n3: regression", body="val_accuracy got worse: -0.01 ‹b›\nReport: /x.html")
SECRET = "hunter2secret"


def send(*urls: str, folder: Path = Path("/"), timeout_s: float = 30.0) -> tuple[Delivery, ...]:
    return tell([(Notification(url=url), NOTICE) for url in urls], folder=folder, timeout_s=timeout_s)


@pytest.mark.acceptance
def test_a_webhook_is_told_and_one_that_refuses_is_tried_twice():
    with ExitStack() as servers:
        port, came = servers.enter_context(webhook())
        closed = servers.enter_context(nobody())
        told, refused, away, unknown = send(
            f"json://ada:{SECRET}@127.0.0.1:{port}/{SECRET}",
            f"json://127.0.0.1:{port}/refuse/{SECRET}",
            f"json://ada:{SECRET}@127.0.0.1:{closed}/{SECRET}",
            f"nothing{SECRET}",
        )
    assert told == Delivery(address=f"json://127.0.0.1:{port}", outcome="sent")
    assert [path for path, _ in came].count(f"/refuse/{SECRET}") == 2
    (body,) = (json.loads(body) for path, body in came if path == f"/{SECRET}")
    assert (body["title"], body["message"]) == (NOTICE.title, NOTICE.body)
    assert (refused.outcome, away.outcome, unknown.outcome) == ("failed", "failed", "invalid")
    assert "500" in refused.detail
    assert not any(SECRET in one.words for one in (told, refused, away, unknown))


@pytest.mark.acceptance
def test_a_mail_is_told_in_plain_text():
    with mail_sink() as (port, mails):
        (told,) = send(f"mailto://127.0.0.1:{port}?from=night@example.org&to=ada@example.org&mode=insecure&format=text")
    assert told.is_sent, told
    (mail,) = (email.message_from_string(text, policy=email.policy.default) for text in mails)
    assert mail["subject"] == NOTICE.title
    assert mail["to"] == "ada@example.org"
    assert mail.get_body(("plain",)).get_content().splitlines()[0] == NOTICE.body.splitlines()[0]


@pytest.mark.acceptance
def test_a_server_that_never_answers_costs_the_time_limit_once_and_leaves_no_process():
    with silence() as port, webhook() as (open_port, _):
        begun = time.monotonic()
        hung, told = send(
            f"mailto://ada:{SECRET}@127.0.0.1:{port}?from=a@example.org&to=b@example.org&mode=insecure",
            f"json://127.0.0.1:{open_port}/",
            timeout_s=8.0,
        )
        took_s = time.monotonic() - begun
    assert hung == Delivery(address="mailto://...", outcome="hung")
    assert hung.words == "mailto://...: not told, no answer in time"
    assert told.is_sent
    assert took_s < 12.0
    assert not [p for p in psutil.Process().children(recursive=True) if p.status() != psutil.STATUS_ZOMBIE]


def test_an_address_in_a_file_that_others_can_read_is_told_and_warned_of(tmp_path):
    file = tmp_path / "address"
    with webhook() as (port, came):
        file.write_text(f"json://127.0.0.1:{port}/\nsomething else\n")
        file.chmod(0o644)
        (told,) = tell([(Notification(url_file="address"), NOTICE)], folder=tmp_path)
    assert told.is_sent
    assert told.warning == f"others can read {file}: chmod 600 {file}"
    assert len(came) == 1


@pytest.mark.parametrize(
    ("text", "why"), [(None, "No such file"), ("\njson://a\n", "first line"), (b"\xff\xfe", "UTF-8")]
)
def test_an_address_file_that_has_none_is_said(tmp_path, text, why):
    file = tmp_path / "address"
    if text is not None:
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
    (lost,) = tell([(Notification(url_file="address"), NOTICE)], folder=tmp_path)
    assert lost.outcome == "invalid"
    assert why in lost.words


def test_nothing_of_an_address_but_its_machine_is_left_in_a_complaint():
    url = "json://ada:pa%24%24word@example.org:80/t0ken/room?key=s3cret"
    text = "could not reach example.org: ada:pa%24%24word pa$$word t0ken s3cret"
    said = scrubbed(text, url)
    assert "example.org" in said
    assert not any(part in said for part in ("pa%24%24word", "pa$$word", "t0ken", "s3cret"))


def test_only_those_are_told_who_want_to_know():
    report = sample_night(n_nights=2)
    sweep = SWEEP.model_copy(update={"notify": (Notification(url="nothing", on=("failure",)),)})
    night = replace(report.night, sweep_json=sweep.model_dump_json())
    assert tell_of(night, report.summary, report=None) == ()


def test_a_sweep_of_another_version_tells_nobody_and_says_so():
    report = sample_night(n_nights=2)
    (said,) = tell_of(replace(report.night, sweep_json="{}"), report.summary, report=None)
    assert said.startswith("nobody was told")
