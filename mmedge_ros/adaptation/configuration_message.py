"""When a choice is announced as a configuration: its number, the instant it holds from, why."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from mmedge_ros.adaptation.optimizer import Choice
from mmedge_ros.adaptation.sensing_bounds import SensingLimits
from mmedge_ros.core.data_types import CAMERA, NS_PER_S, Configuration, ModalityConfiguration

STANDING_BY = 'the camera stands by'


class ConfigurationMessages:
    """Numbers configurations, and knows whether one is news and may be said already.

    :param lead: s by which a configuration is announced before it holds
    :param window: length of a window (s); a configuration holds at least as long, so that no
        window has more than two
    """

    def __init__(self, lead: float, window: float) -> None:
        self._lead_ns, self._window_ns = round(lead * NS_PER_S), round(window * NS_PER_S)
        self.current: Configuration | None = None

    def may_change(self, now_ns: int) -> bool:
        """Whether the present configuration has held long enough, or time itself went back."""
        if self.current is None:
            return True
        held_ns = now_ns - self.current.effective_from_ns
        return held_ns >= self._window_ns or held_ns < -self._lead_ns

    def issued(
        self, wanted: Configuration, bounds: SensingLimits, now_ns: int
    ) -> Configuration | None:
        """Return what is wanted, within bounds, under a new number; None if it holds already.

        Also new when only the reasons have changed, so that they are published. It waits until it
        `may_change`, unless the camera is to begin or end its rest.
        """
        parts = bounds.held(wanted.modalities)
        reason = f'{STANDING_BY}; {wanted.reason}' if bounds.stands_by else wanted.reason
        before = self.current
        if before is not None and (before.modalities, before.reason) == (parts, reason):
            return None
        rested = before is not None and before.of(CAMERA).rate < 0.0
        if rested is bounds.stands_by and not self.may_change(now_ns):
            return None
        self.current = replace(
            wanted,
            id=1 if before is None else before.id + 1,
            effective_from_ns=now_ns + self._lead_ns,
            modalities=parts,
            reason=reason,
        )
        return self.current


def reason_of(
    chosen: Choice,
    parts: Sequence[ModalityConfiguration],
    before: Sequence[ModalityConfiguration],
    limit: float,
    caps: Sequence[str],
) -> str:
    """Return why a choice is made.

    :param parts: what is chosen, and ``before`` what was, modality by modality
    :param limit: latency limit, s
    :param caps: reasons why no more was to choose from
    """
    words = list(caps)
    milliseconds = f'{1e3 * limit:.0f} ms'
    if chosen.caps_ignored:
        words.append('the caps leave nothing and are ignored')
    if not math.isfinite(chosen.latency):
        words.append('no latency is known, the cheapest')
    elif chosen.violation > 0.0:
        over = f'{1e3 * chosen.violation:.0f} ms'
        words.append(f'nothing keeps {milliseconds}; this breaks it least, by {over}')
    elif not chosen.feasible:
        words.append(f'keeps {milliseconds} only with {100 * chosen.certainty:.0f} %, the most')
    elif limit == math.inf:
        words.append('the most accurate, no latency limit')
    else:
        words.append(f'the most accurate that keeps {milliseconds}')
    changed = [old.words() for old, new in zip(before, parts, strict=True) if old != new]
    if changed:
        words.append(f'instead of {", ".join(changed)}')
    return '; '.join(words)
