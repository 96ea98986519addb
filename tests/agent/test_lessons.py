"""Lessons: what is kept, what is dropped, and that they are rows."""

from __future__ import annotations

import os

import pytest
from agent_stores import postgres_url, store
from agent_worlds import a_task

from agent.store.fenced import FencedWriter
from agent.store.lessons import LessonBook, read_lessons
from agent.store.store import AgentStore
from agent.thinking.lessons import MOST, MOST_CHARACTERS, Kept, Learned, Lesson, keep

__all__ = ["postgres_url", "store"]  # fixtures

IDS = {f"s1-t{i}" for i in range(1, 40)}


def offered(text: str, *trials: int) -> Learned:
    return Learned(text=text, evidence=tuple(f"s1-t{i}" for i in trials))


def kept(known: list[Lesson], *more: Learned) -> Kept:
    number = max((one.number for one in known), default=0) + 1
    return keep(known, more, IDS, next_number=number, by="small", at=1.0)


def test_a_lesson_without_a_trial_that_exists_is_refused() -> None:
    found = kept([], offered("high rates diverge", 99), offered("nobody saw it"), offered("   ", 1))
    assert found.lessons == ()
    assert "there is no trial 's1-t99'" in found.refusals[0]
    assert "names no trial" in found.refusals[1]
    assert len(found.refusals) == 3


def test_the_same_sentence_again_takes_the_new_evidence_on() -> None:
    first = kept([], offered("High rates diverge", 1, 2))
    found = kept(list(first.lessons), offered("high rates  diverge", 2, 3))
    assert [(one.number, one.evidence) for one in found.lessons] == [(1, ("s1-t1", "s1-t2", "s1-t3"))]


def test_of_too_many_the_least_supported_go_first_and_of_equals_the_oldest() -> None:
    full = kept([], offered("weak and old", 1), *(offered(f"strong {i}", 1, 2) for i in range(MOST - 1)))
    found = kept(list(full.lessons), offered("weak and new", 3))
    assert [one.text for one in found.dropped] == ["weak and old"]
    again = kept(list(found.lessons), offered("well supported", 1, 2, 3))
    assert [one.text for one in again.dropped] == ["weak and new"]
    assert len(again.lessons) == MOST


def test_a_lesson_is_one_short_line() -> None:
    [lesson] = kept([], offered("a\nb " * 500, 1)).lessons
    assert len(lesson.text) <= MOST_CHARACTERS
    assert "\n" not in lesson.text


@pytest.fixture
def writer(store: AgentStore) -> FencedWriter:
    store.create_session(a_task())
    return FencedWriter(store, "s1", store.claim("s1", os.getpid()))


def test_lessons_survive_the_process_and_numbers_are_used_once(store: AgentStore, writer: FencedWriter) -> None:
    book = LessonBook(writer)
    book.offer([offered("weak", 1)], IDS, by="small")
    book.offer([offered(f"strong {i}", 1, 2) for i in range(MOST)], IDS, by="small")
    assert [one.number for one in read_lessons(store, "s1")] == list(range(2, MOST + 2))
    again = LessonBook(writer)
    again.offer([offered("best", 1, 2, 3)], IDS, by="doctor")
    assert read_lessons(store, "s1") == again.lessons()
    assert [one.number for one in again.lessons()][-1] == MOST + 2
    said = [line.text for line in store.activity("s1", 100)]
    assert "lesson 1 is dropped for better supported ones" in said
