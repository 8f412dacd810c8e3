"""When a choice becomes a configuration, with an id, an instant it holds from, and a reason."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mmedge_ros.adaptation.caps_policy import NO_CAPS, Caps
from mmedge_ros.adaptation.configuration_choice import (
    ChoiceParameters,
    ChosenConfiguration,
    ConfigurationChoice,
)
from mmedge_ros.adaptation.configuration_space import ConfigurationSpace
from mmedge_ros.adaptation.predicted_latency import LatencyModel, PredictedLatency
from mmedge_ros.adaptation.steadiness import Steadiness
from mmedge_ros.core.data_types import NS_PER_S, Configuration, ModalityConfiguration
from mmedge_ros.core.parameter import group

BoolArray = NDArray[np.bool_]

# A configuration that replaces one that is too slow keeps this share of the limit, if any does.
_CAREFUL = 0.9


@dataclass(frozen=True)
class ChangeRulesParameters:
    """When a choice becomes a configuration."""

    # A configuration is announced so much earlier than it holds (s): every node has it when the
    # first unit arrives that is taken under it.
    lead: float = 0.02
    control: ChoiceParameters = group(ChoiceParameters)


class ChangeRules:
    """Makes numbered configurations of choices.

    :param window: length of a window (s); a configuration holds at least as long, so that no
        window has more than two
    """

    def __init__(
        self,
        space: ConfigurationSpace,
        latency: LatencyModel,
        window: float,
        parameters: ChangeRulesParameters | None = None,
    ) -> None:
        self._window_ns = round(window * NS_PER_S)
        self._parameters = parameters or ChangeRulesParameters()
        self._space = space
        self._latency = latency
        self._choice = ConfigurationChoice(space.grid, self._parameters.control)
        self.steadiness = Steadiness()
        self._reasons: tuple[str, ...] = ()
        self.current: Configuration | None = None

    def step(
        self,
        now_ns: int,
        monotonic: float,
        accuracy: ArrayLike,
        limit: float,
        caps: Caps = NO_CAPS,
        within: BoolArray | None = None,
        power: Caps = NO_CAPS,
    ) -> Configuration | None:
        """Return a new configuration, or None while the present one stays.

        Also new when only the reasons of the caps have changed, so that they are published.

        :param now_ns: on the ROS clock
        :param monotonic: s
        :param accuracy: (size,) predicted, 0..1
        :param limit: latency limit, s; NaN for none
        :param within: (size,) what may be chosen, beside the caps
        :param power: more caps, of which the tighter hold; their reasons are not used
        """
        if not self._may_change(now_ns):
            return None
        limit = math.inf if math.isnan(limit) else limit
        predicted = self._latency.predict(monotonic)
        allowed = self._space.allowed(caps) & self._space.allowed(power)
        if within is not None and (allowed & within).any():
            allowed = allowed & within
        before = self.current
        chosen = self._chosen(predicted, accuracy, limit, allowed, monotonic)
        parts = self._space.parts(chosen.index)
        if before is not None and before.modalities == parts and self._reasons == caps.reasons:
            return None
        self._reasons = caps.reasons
        self.current = Configuration(
            id=1 if before is None else before.id + 1,
            effective_from_ns=now_ns + round(self._parameters.lead * NS_PER_S),
            modalities=parts,
            latency_limit=limit if math.isfinite(limit) else math.nan,
            predicted_latency=chosen.latency if math.isfinite(chosen.latency) else math.nan,
            predicted_accuracy=_at(accuracy, chosen.index),
            reason=_reason(chosen, parts, before, limit, caps),
        )
        return self.current

    def _chosen(
        self,
        predicted: PredictedLatency,
        accuracy: ArrayLike,
        limit: float,
        allowed: BoolArray,
        now: float,
    ) -> ChosenConfiguration:
        """Return the choice; a change that is not forced may have to wait."""
        chosen = self._choice.best(predicted, accuracy, limit, allowed)
        before = self._choice.current
        if before is None or chosen.index == before:
            self.steadiness.content()
        elif chosen.forced or self.steadiness.allows(now):
            self.steadiness.changed(chosen.forced, now)
            if chosen.forced and chosen.feasible:
                # What is known of a machine that just got slower is not the worst of it.
                careful = self._choice.best(predicted, accuracy, _CAREFUL * limit, allowed)
                chosen = careful if careful.feasible else chosen
        else:
            only = np.zeros_like(allowed)
            only[before] = True
            chosen = self._choice.best(predicted, accuracy, limit, only)
        self._choice.use(chosen.index)
        return chosen

    def _may_change(self, now_ns: int) -> bool:
        """Whether the present configuration has held long enough, or time itself went back."""
        if self.current is None:
            return True
        held = now_ns - self.current.effective_from_ns
        lead = round(self._parameters.lead * NS_PER_S)
        return held >= self._window_ns or held < -lead


def _at(accuracy: ArrayLike, index: int) -> float:
    try:
        return float(np.asarray(accuracy, np.float64)[index])
    except (TypeError, ValueError, IndexError):
        return math.nan


def _reason(
    chosen: ChosenConfiguration,
    parts: tuple[ModalityConfiguration, ...],
    before: Configuration | None,
    limit: float,
    caps: Caps,
) -> str:
    """Return why this is the configuration."""
    words = list(caps.reasons)
    milliseconds = f'{1e3 * limit:.0f} ms'
    if chosen.choice.caps_ignored:
        words.append('the caps leave nothing and are ignored')
    if not math.isfinite(chosen.latency):
        words.append('no latency is known, the cheapest')
    elif chosen.choice.violation > 0.0:
        over = f'{1e3 * chosen.choice.violation:.0f} ms'
        words.append(f'nothing keeps {milliseconds}; this breaks it least, by {over}')
    elif not chosen.feasible:
        words.append(f'keeps {milliseconds} only with {100 * chosen.certainty:.0f} %, the most')
    elif limit == math.inf:
        words.append('the most accurate, no latency limit')
    else:
        words.append(f'the most accurate that keeps {milliseconds}')
    if before is not None and before.modalities != parts:
        words.append(f'instead of {_changes(before, parts)}')
    return '; '.join(words)


def _changes(before: Configuration, parts: tuple[ModalityConfiguration, ...]) -> str:
    """Name the parts that were different before."""
    changed = [before.of(part.modality) for part in parts if before.of(part.modality) != part]
    return ', '.join(part.words() for part in changed)
