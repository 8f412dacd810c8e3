"""Sentences about inputs while a graph runs: what is missing and why, and that it has come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mmedge_ros.preflight.graph_view import ODOMETRY, TopicView
from mmedge_ros.preflight.input_checks import (
    CONTENTS,
    Reason,
    remedy_for,
    sends_nothing,
    why_missing,
)

# s. Long enough for nodes to find one another; together with the start of a graph less than six.
PATIENCE = 3.5
_REPEAT = 60.0
_MOST_REMARKS = 20


class InputsNow(NamedTuple):
    """What is known of the inputs at one instant.

    ``present``: names of those whose units take part in decisions; ``idle``: of those for which a
    node has waited in vain; ``failures``: why those that reach the machine cannot be used, by
    name; ``degraded``: what decisions do without.
    """

    views: Mapping[str, TopicView]
    others: Mapping[str, str]
    present: frozenset[str] = frozenset()
    idle: frozenset[str] = frozenset()
    failures: Mapping[str, str] = {}
    degraded: Sequence[str] = ()


class InputReport:
    """Decides what is to be said: once for each reason, and again after a minute.

    :param now: s, of a monotonic clock
    """

    def __init__(self, now: float) -> None:
        self._begun = now
        self._present_at: dict[str, float] = {}
        self._said: dict[str, tuple[str, float]] = {}
        self._remarks: set[str] = set()

    def update(self, inputs: InputsNow, now: float) -> list[str]:
        """Return what is to be said now."""
        sentences = []
        for name, view in inputs.views.items():
            if name in inputs.present:
                self._present_at[name] = now
                if self._said.pop(name, None) is not None:
                    sentences.append(f'{CONTENTS[name][0]} arrive on {view.topic}')
            elif now - self._present_at.get(name, self._begun) >= PATIENCE:
                is_silent = name in inputs.idle or name in self._present_at
                reason = _reason(name, view, inputs, is_silent)
                if reason is not None and self._is_due(name, reason.words, now):
                    self._said[name] = reason.words, now
                    sentences.append(f'no {CONTENTS[name][0]}: {"; ".join(filter(None, reason))}')
        return sentences + self._new_remarks(inputs.degraded)

    def _is_due(self, name: str, words: str, now: float) -> bool:
        said, at = self._said.get(name, ('', now))
        return words != said or now - at >= _REPEAT

    def _new_remarks(self, degraded: Sequence[str]) -> list[str]:
        # Odometry is an input, and reported as one. What follows a colon may change for ever.
        reasons = {text.partition(':')[0]: text for text in degraded}
        new = [r for r in reasons if not r.startswith('no odometry') and r not in self._remarks]
        new = new[: _MOST_REMARKS - len(self._remarks)]
        self._remarks.update(new)
        texts = [reasons[reason] for reason in new]
        return ['; '.join(filter(None, (text, remedy_for(text)))) for text in texts]


def _reason(name: str, view: TopicView, inputs: InputsNow, is_silent: bool) -> Reason | None:
    """Say why an input does not come; None while its subscriber is still starting."""
    if name in inputs.failures:
        return Reason(inputs.failures[name], '')
    reason = why_missing(name, view, inputs.others)
    if reason is not None and name == ODOMETRY:
        return Reason(f'{reason.words}, so that tracks move with the drone', reason.remedy)
    if reason is None and is_silent:
        return sends_nothing(view)
    return reason
