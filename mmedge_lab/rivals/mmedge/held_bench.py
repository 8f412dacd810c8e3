"""Sweeps flights over every fixed configuration and the optimiser, and keeps what was flown."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.bundle_cases import RATES, REUSE
from mmedge_lab.judging.bundle_under_test import (
    BundleUnderTest,
    flight_digest,
    software_digest,
)
from mmedge_lab.judging.flight_bootstrap import flight_seeds
from mmedge_lab.judging.flight_cases import encoded_with_truth
from mmedge_lab.policies.policy_run import optimiser_loop
from mmedge_lab.rivals.mmedge.held_flight import Held, HeldFlight
from mmedge_lab.rivals.mmedge.held_report import STEPS, Condition, Flights, Sums, key_of
from mmedge_ros.configuration.configuration_space import LEVELS_FROM_CHEAPEST
from mmedge_ros.data_types import CAMERA
from mmedge_ros.replay.recording import Recording
from mmedge_ros.report.report_files import kept_content, write_files
from mmedge_ros.untrusted_files import shown

_PERCENT, _LEAST_SHARE = 100.0, 5.0


@dataclass(frozen=True)
class HeldBench:
    """What to fly: a bundle with service times, and conditions under a latency limit (s)."""

    bundle: BundleUnderTest
    conditions: tuple[Condition, ...]
    limit: float
    folder: Path

    def flights(
        self,
        folders: Sequence[Path],
        on_progress: Callable[[float], None],
        *,
        with_ours: bool = True,
    ) -> Flights:
        """Fly what is not kept from before.

        :raises EvaluationError: if a flight has no truth or a result cannot be written
        :raises ReplayError: if a flight cannot be read
        :raises EncodingError: if the bundle cannot be used
        """
        kept = []
        for number, folder in enumerate(folders):

            def report(share: float, number: int = number) -> None:
                on_progress((number + share) / len(folders))

            kept.append(self._flight(folder, report, with_ours))
        names = [held.name for held in self.configurations]
        return Flights(
            {n: {s: [k['held'][n][s] for k in kept] for s in self._shares} for n in names},
            {c.name: [k['ours'][c.name] for k in kept] for c in self.conditions}
            if with_ours
            else {},
            flight_seeds(folders),
        )

    @property
    def configurations(self) -> tuple[Held, ...]:
        """Every rate, level and reuse of the camera."""
        levels = self.bundle.encoders()[CAMERA].levels or LEVELS_FROM_CHEAPEST[:1]
        return tuple(
            Held(rate, level, reuse)
            for rate in RATES[CAMERA]
            for level in levels
            for reuse in REUSE
        )

    @property
    def _shares(self) -> tuple[str, ...]:
        shares = (share for condition in self.conditions for share in condition.shares)
        return tuple(dict.fromkeys(map(key_of, shares)))

    def _flight(
        self, folder: Path, on_progress: Callable[[float], None], with_ours: bool
    ) -> dict[str, Any]:
        about = f'{self.bundle.digest} {flight_digest(folder)} {self.limit:g}'
        held_path, ours_path = (self.folder / f'{folder.name}.{n}.json' for n in ('held', 'ours'))
        held_key = f'{about} {software_digest()}'
        ours_key = f'{about} {software_digest()} {self.conditions}'
        held: dict[str, dict[str, Sums]] = _read(held_path, held_key)
        ours: dict[str, list[Sums]] = _read(ours_path, ours_key)
        missing = [
            (one, share)
            for one in self.configurations
            for share in self._shares
            if share not in held.get(one.name, {})
        ]
        if not missing and (ours or not with_ours):
            on_progress(1.0)
            return {'held': held, 'ours': ours}
        flight = self._encoded(folder)
        for number, (one, share) in enumerate(missing):
            held.setdefault(one.name, {})[share] = flight.held(one, float(share) / _PERCENT)
            on_progress((number + 1) / len(missing))
        _write(held_path, held_key, held)
        if with_ours and not ours:
            for condition in self.conditions:
                shares = [share / _PERCENT for share in condition.shares]
                # A machine is profiled as it is when the flight begins; steps come unannounced.
                loop = optimiser_loop(self.bundle, self.limit, shares[0])
                ours[condition.name] = list(flight.adapted(loop, shares))
            _write(ours_path, ours_key, ours)
        return {'held': held, 'ours': ours}

    def _encoded(self, folder: Path) -> HeldFlight:
        encoders = self.bundle.encoders()
        levels = {m: encoder.levels or LEVELS_FROM_CHEAPEST for m, encoder in encoders.items()}
        with Recording(folder) as recording:
            flight = encoded_with_truth(
                recording, encoders, levels, lambda _: None, with_greys=True
            )
        return HeldFlight(flight, self.bundle, self.limit)


def _read(path: Path, key: str) -> dict[str, Any]:
    try:
        kept = json.loads(kept_content(path) or b'{}')
        return dict(kept['flown']) if kept['key'] == key else {}
    except (ValueError, KeyError, TypeError):
        return {}


def _write(path: Path, key: str, flown: Any) -> None:
    text = json.dumps({'key': key, 'flown': flown})
    write_files(path.parent, {path.name: text.encode()})


def conditions_of(shares: str, steps: str) -> tuple[Condition, ...]:
    """Return the conditions that options name: each share for itself, and the steps.

    :raises EvaluationError: for a share that cannot be
    """
    alone = [Condition(key_of(share), (share,)) for share in _percents(shares, '--shares')]
    return (*alone, Condition(STEPS, _percents(steps, '--steps')))


def first_of_seeds(folders: Sequence[Path]) -> tuple[Path, ...]:
    """Return the first flight of each seed."""
    first: dict[str, Path] = {}
    for folder, seed in zip(folders, flight_seeds(folders), strict=True):
        first.setdefault(seed, folder)
    return tuple(first.values())


def _percents(text: str, option: str) -> tuple[float, ...]:
    percents = []
    for part in text.split(','):
        try:
            value = float(part.strip().removesuffix('%'))
        except ValueError:
            value = math.nan
        if not _LEAST_SHARE <= value <= _PERCENT:
            raise EvaluationError(
                f'{option}: {shown(part)} is no share of the processor; write percent from '
                f'{_LEAST_SHARE:g} to 100, by commas'
            )
        percents.append(value)
    return tuple(percents)
