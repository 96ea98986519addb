"""Secrets are taken out of what is kept or shown: keys that are known, and what looks like one. Pure.

What it looks for by shape is what vendors document of their keys; the rest is known by name: the values of variables
whose names say that they hold a secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

HIDDEN = "[secret]"
_SECRET_NAME = re.compile(r"(key|token|secret|passw|credential|auth)", re.IGNORECASE)
_NO_SECRET_NAME = re.compile(r"(keyboard|monkey|token_count|max_tokens|_file$|_path$|_sock$|_dir$)", re.IGNORECASE)
_SHORTEST = 8
"""Shorter values of variables are words that stand everywhere, not secrets."""
_SHAPES = re.compile(
    r"""
    \b(?:sk|pk|rk|gsk|xai|pplx|hf|r8|key|nvapi|tgp|csk)[-_][A-Za-z0-9_\-]{16,}   # model vendors
    | \bgh[pousr]_[A-Za-z0-9]{20,} | \bgithub_pat_[A-Za-z0-9_]{20,} | \bglpat-[A-Za-z0-9_\-]{16,}
    | \bAKIA[0-9A-Z]{16}\b | \bAIza[0-9A-Za-z_\-]{30,} | \bxox[abposr]-[A-Za-z0-9\-]{10,}
    | \beyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]*                # JSON web tokens
    | -----BEGIN[ A-Z]*PRIVATE[ ]KEY-----.*?(?:-----END[ A-Z]*PRIVATE[ ]KEY-----|\Z)
    """,
    re.VERBOSE | re.DOTALL,
)
_BEARER = re.compile(r"\b(bearer|basic)\s+[A-Za-z0-9._~+/=\-]{8,}", re.IGNORECASE)
_NAMED = re.compile(
    r"""(?P<name>(?:api[-_ ]?key|access[-_ ]?key|secret|password|passwd|authorization|auth[-_ ]?token
    |access[-_ ]?token)["']?\s*[:=]\s*["']?)(?P<value>(?!bearer\b|basic\b)[^\s"',;&{}\[\]]{6,})""",
    re.IGNORECASE | re.VERBOSE,
)
_IN_ADDRESS = re.compile(r"(?P<scheme>\b[a-z][a-z0-9+.\-]*://)[^\s/@:]+:[^\s/@]+@", re.IGNORECASE)


def secrets_in(environ: Mapping[str, str]) -> frozenset[str]:
    """Values of variables whose names say that they are secret."""
    return frozenset(
        value.strip()
        for name, value in environ.items()
        if _SECRET_NAME.search(name) and not _NO_SECRET_NAME.search(name) and len(value.strip()) >= _SHORTEST
    )


def redacted(text: str, secrets: Iterable[str] = ()) -> str:
    """The text without these secrets and without what looks like one."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    text = _SHAPES.sub(HIDDEN, text)
    text = _BEARER.sub(rf"\1 {HIDDEN}", text)
    text = _NAMED.sub(rf"\g<name>{HIDDEN}", text)
    return _IN_ADDRESS.sub(rf"\g<scheme>{HIDDEN}@", text)
