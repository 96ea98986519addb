"""What can go wrong with a candidate: its own fault, or the machine's."""

from __future__ import annotations


class CandidateFailed(Exception):
    """It crashed, hung, or answered what is no answer. The trial has no value: a scorer lets this end it."""


class NotConfined(Exception):
    """This machine can not shut the candidate off; nothing of it has run. The message says what to do."""


class NotUsable(Exception):
    """What training left is no plain file of a bearable size. The trial has no value: a scorer lets this end it."""


class Malformed(ValueError):
    """Bytes that are no message."""
