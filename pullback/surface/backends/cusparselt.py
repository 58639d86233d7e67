"""cuSPARSELt: absent."""

from __future__ import annotations


def is_available() -> bool:
    return False


def version() -> int | None:
    return None


def get_max_alg_id() -> int | None:
    return None
