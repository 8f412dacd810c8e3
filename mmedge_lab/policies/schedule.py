"""What a scheduling policy did: units encoded when, decisions from which of them, when published.

A schedule holds no content of units, so that one check suits every policy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from mmedge_ros.core.data_types import NS_PER_S, Configuration

# Modality and sequence.
UnitKey: TypeAlias = tuple[str, int]


class Arrival(NamedTuple):
    """A unit as the recording has it: ``available_ns`` is when its last byte was received."""

    modality: str
    sequence: int
    stamp_ns: int
    available_ns: int

    @property
    def unit(self) -> UnitKey:
        return self.modality, self.sequence


class Encoding(NamedTuple):
    """One run of an encoder; a policy that recomputes has several of the same unit.

    ``window_end_ns`` is the window it was made for, None where any window may use it.
    """

    modality: str
    sequence: int
    level: str
    begin_ns: int
    end_ns: int
    window_end_ns: int | None = None

    @property
    def unit(self) -> UnitKey:
        return self.modality, self.sequence


class Use(NamedTuple):
    """A unit that a decision was made from."""

    modality: str
    sequence: int
    level: str

    @property
    def unit(self) -> UnitKey:
        return self.modality, self.sequence


@dataclass(frozen=True)
class PlannedDecision:
    """The decision of one window.

    ``decide_ns`` is when the decision's own work (aggregation, fusion, tracking) began, all
    ``uses`` being ready by then; ``published_ns`` when it ended. ``skipped`` and ``imputed`` name
    modalities that were let rest or made up.
    """

    window_end_ns: int
    decide_ns: int
    published_ns: int
    uses: tuple[Use, ...]
    configuration: Configuration
    skipped: tuple[str, ...] = ()
    imputed: tuple[str, ...] = ()

    @property
    def latency(self) -> float:
        """Publication minus window end, s; negative when decided early."""
        return (self.published_ns - self.window_end_ns) / NS_PER_S


@dataclass(frozen=True)
class Schedule:
    """All that a policy did in one flight.

    ``decisions`` in the order of their window ends; ``dropped`` are the ends of windows that
    got none. There is one server for each modality and one for decisions; ``alone``, each window
    has servers of its own, which are idle when it comes.
    """

    policy: str
    decisions: tuple[PlannedDecision, ...]
    encodings: tuple[Encoding, ...]
    dropped: tuple[int, ...] = ()
    alone: bool = False
