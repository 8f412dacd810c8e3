"""Counting what went wrong, by reason, in bounded memory."""

from __future__ import annotations

from collections import Counter

_MOST_REASONS = 50
_OTHER_REASONS = 'other reasons'


def count_failure(failures: Counter[str], reason: str) -> bool:
    """Count a reason and say whether it is a new one.

    Of ever new reasons only the first are told apart, so that memory stays bounded.
    """
    if reason not in failures and len(failures) >= _MOST_REASONS:
        reason = _OTHER_REASONS
    failures[reason] += 1
    return failures[reason] == 1


def unexpected(error: Exception) -> str:
    """Put an error nobody foresaw into words."""
    return f'unexpected {type(error).__name__}: {error}'
