"""What a bundle's gate saves and loses, beside a lower rate of the camera and reuse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from mmedge_lab.judging.bench import (
    Bench,
    BenchRequest,
    Figure,
    Results,
    Row,
    Subject,
    Sums,
    UnmeasuredError,
    total_of,
)
from mmedge_lab.judging.bundle_under_test import BundleUnderTest
from mmedge_lab.judging.judged_flight import bundle_about, bundle_of
from mmedge_lab.training.certificate import FlightLoss
from mmedge_lab.training.gate_loop import FlightLoop, Never
from mmedge_lab.training.gate_training import GateSetting, flown, open_loop
from mmedge_ros.core.data_types import CAMERA
from mmedge_ros.pipeline.pipeline_parameters import DECISION
from mmedge_ros.windows.bundle_gate import BundleGate, bundle_gate

GATE, BOTH = 'gate', 'gate on reuse 2'
# Of the camera's usual rate; every n-th picture is encoded, and others are followed.
LOWER = {f'camera at {share} of 30 Hz': share / 30 for share in (24, 20, 15)}
REUSE = {f'reuse {reuse}': reuse for reuse in (2, 3)}
LOWER_ALIKE, REUSE_ALIKE = 'lower rate, as many encodes', 'reuse, as many encodes'
_FIGURES = {
    'saved': Figure('encodes saved, %', 'saved', 'encodes', 1, scale=100.0),
    'lost': Figure('streaming IoU lost, points', 'iou', 'people', 2, scale=100.0),
    'missed': Figure('more missed, points', 'missed', 'held', 2, scale=100.0),
    'early_lost': Figure('lost without truth', 'early_lost', 'early', 2),
}


@dataclass(frozen=True)
class _GateLoops:
    """The loops of a flight, by rate and reuse of the camera."""

    usual: FlightLoop
    gate: BundleGate | None
    loops: dict[tuple[float, int], FlightLoop] = field(default_factory=dict)

    def at(self, rate: float, reuse: int) -> FlightLoop:
        if (rate, reuse) == (1.0, 1):
            return self.usual
        changed = self.usual.settings.changed(CAMERA, rate, reuse)
        return self.loops.setdefault((rate, reuse), FlightLoop(self.usual.flight, changed))


def _opened(
    bundle: BundleUnderTest, level: str, seconds: float, subject: Subject, *_: object
) -> _GateLoops:
    gate = bundle_gate(bundle.folder)
    strategy = DECISION if gate is None else gate.strategy
    setting = GateSetting(bundle, strategy, flown(bundle, level, strategy), seconds)
    return _GateLoops(open_loop(subject.flight, setting, with_greys=True), gate)


def bench(
    request: BenchRequest, *, level: str = 'medium', delta: float = 0.01, seconds: float = 0.0
) -> Bench:
    """Fly a bundle's gate in closed loop beside other ways to encode as few pictures.

    :param level: of the camera
    :param delta: the promise whose threshold is flown
    :param seconds: so much of each flight; 0: all of it
    """
    bundle, subjects = bundle_of(request.detector), request.flights()
    rows = (
        Row(GATE, partial(_gated, delta, 1), f'threshold certified to lose at most {delta:g}'),
        Row(BOTH, partial(_gated, delta, 2), 'the same on top of reuse'),
        *(Row(name, partial(_without_gate, rate, 1)) for name, rate in LOWER.items()),
        *(Row(name, partial(_without_gate, 1.0, reuse)) for name, reuse in REUSE.items()),
    )
    return Bench(
        'A gate beside other ways to save encodes',
        tuple(rows),
        _FIGURES,
        subjects,
        partial(_opened, bundle, level, seconds),
        references=(LOWER_ALIKE, REUSE_ALIKE),
        key=f'{bundle.digest} {level} {delta:g} {seconds:g}',
        about={**bundle_about(bundle, subjects), 'level': level},
        derive=as_many_encodes,
    )


def _gated(delta: float, reuse: int, of: _GateLoops) -> Sums:
    certified = None if of.gate is None else of.gate.certified(delta)
    if of.gate is None or certified is None:
        raise UnmeasuredError(
            f'the bundle has no gate that is certified to lose at most {delta:g}; make one with '
            '`mmedge lab train gate`'
        )
    run = of.at(1.0, reuse).gated(of.gate.gate, certified.threshold)
    return _plain(of.usual.reference.loss(run))


def _without_gate(rate: float, reuse: int, of: _GateLoops) -> Sums:
    return _plain(of.usual.reference.loss(of.at(rate, reuse).gated(Never(), 1.0)))


def _plain(loss: FlightLoss) -> dict[str, float]:
    return {name: float(value) for name, value in loss._asdict().items()}


def as_many_encodes(results: Results) -> Mapping[Row, Sequence[Sums]]:
    """Mix the rows of another way that save a little less and a little more than the gate.

    Saving nothing loses nothing.
    """
    if not any(results.get(GATE, ())):
        return {}
    made = {}
    for name, others in ((LOWER_ALIKE, LOWER), (REUSE_ALIKE, REUSE)):
        known = [results[other] for other in others if other in results]
        if known:
            made[Row(name)] = _mixed(results[GATE], known)
    return made


def _mixed(gate: Sequence[Sums], others: Sequence[Sequence[Sums]]) -> list[Sums]:
    saved = [0.0, *(sum(total_of(of, 'saved') for of in row) for row in others)]
    order = np.argsort(saved)
    place = sum(total_of(of, 'saved') for of in gate)

    def at(flight: int, column: str) -> float:
        values = np.array([0.0, *(row[flight][column] for row in others)], np.float64)
        return float(np.interp(place, np.array(saved)[order], values[order]))

    same = ('people', 'held', 'encodes')
    return [
        {**{name: own[name] for name in same}, **{n: at(k, n) for n in ('saved', 'iou', 'missed')}}
        for k, own in enumerate(gate)
    ]
