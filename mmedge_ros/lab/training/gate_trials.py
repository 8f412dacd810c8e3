"""What a flight is replayed with: the gate at every threshold, and the rules beside it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mmedge_ros.lab.gates.closed_loop import FlightLoop
from mmedge_ros.lab.gates.figures_file import plain_figures, read_figures
from mmedge_ros.lab.gates.gate_file import gate_bytes
from mmedge_ros.lab.gates.loop_figures import FlightFigures, flight_figures
from mmedge_ros.lab.gates.rule_rivals import AtRandom, MaxScore
from mmedge_ros.lab.training import TrainingError
from mmedge_ros.lab.training.gate_flights import GateFlight, write_whole
from mmedge_ros.skipping import SkippingError
from mmedge_ros.skipping.gate import EarlyDecisionClassifier, Gate
from mmedge_ros.skipping.gate_features import GateFeatures

Tell = Callable[[float], None]
GATE, MAX_SCORE, RANDOM, AUDITED = 'gate', 'max_score', 'random', 'audited'
# Evenly spaced logits from 0.993 to 0.38, 0.5 among them; fixed before any flight is looked at.
THRESHOLDS: tuple[float, ...] = tuple(
    float(1.0 / (1.0 + np.exp(-logit))) for logit in np.linspace(5.0, -0.5, 12)
)
# From hardly ever to nearly always: one of each will save about as much as the gate.
RANDOM_SHARES = (0.02, 0.05, 0.12, 0.3)
SCORES = (0.9, 0.8, 0.7, 0.6)
_LARGEST_FILE = 50 << 20


class Trial(NamedTuple):
    """A rule at a threshold; of one rule those with larger values save less.

    ``value`` is what tells trials of a rule apart: a threshold, or 1 - the share of yeses.
    """

    rule: str
    value: float
    classifier: EarlyDecisionClassifier
    threshold: float

    @property
    def key(self) -> str:
        return f'{self.rule} {self.value:.6f}'


def gate_trials(gate: Gate, thresholds: Sequence[float] = THRESHOLDS) -> list[Trial]:
    """Return the gate at all thresholds."""
    return [Trial(GATE, threshold, gate, threshold) for threshold in thresholds]


def rival_trials(seed: int = 0) -> list[Trial]:
    """Return the rules the gate is compared with."""
    scores = [Trial(MAX_SCORE, score, MaxScore(), score) for score in SCORES]
    chances = [Trial(RANDOM, 1.0 - s, AtRandom(s, seed), 0.5) for s in RANDOM_SHARES]
    return [*scores, *chances]


def audited_trial(gate: Gate, threshold: float) -> Trial:
    """Return the gate at one threshold, for flights in which windows are audited."""
    return Trial(AUDITED, threshold, gate, threshold)


def gate_name(gate: Gate) -> str:
    """Return what tells a gate from any other."""
    return hashlib.sha256(gate_bytes(gate)).hexdigest()[:12]


@dataclass
class _Listening:
    """Passes features on to a classifier, and keeps the largest confidence."""

    classifier: EarlyDecisionClassifier
    surest: float = 0.0

    def confidence(self, features: GateFeatures, end_ns: int) -> float:
        confidence = self.classifier.confidence(features, end_ns)
        self.surest = max(self.surest, confidence)
        return confidence


def try_all(task: GateFlight, trials: Sequence[Trial], name: str, tell: Tell) -> None:
    """Replay a flight in closed loop with every trial; what is there already is kept.

    :param name: tells gates apart
    :raises TrainingError: if the results cannot be read or written
    """
    path = task.trials_path(name)
    known = _read(path) if path.is_file() else {}
    todo = [trial for trial in trials if trial.key not in known]
    if todo:
        loop = FlightLoop(task.encoded(), task.settings())
        reference = loop.reference()
        quiet: dict[str, tuple[float, dict[str, Any]]] = {}
        for place, trial in enumerate(sorted(todo, key=lambda t: (t.rule, -t.value))):
            # Where nothing was sure enough, nothing that asks for more than was heard does else.
            surest, plain = quiet.get(trial.rule, (np.inf, {}))
            if not surest < trial.threshold:
                listening = _Listening(trial.classifier)
                run = loop.gated(listening, trial.threshold)
                plain = plain_figures(flight_figures(run, reference))
                if not run.early and trial.rule != RANDOM:
                    quiet[trial.rule] = listening.surest, plain
            known[trial.key] = plain
            write_whole(path, json.dumps(known).encode())
            tell((place + 1) / len(todo))
    tell(1.0)


def tried(task: GateFlight, trials: Sequence[Trial], name: str) -> dict[str, FlightFigures]:
    """Read what `try_all` found, by key of the trial.

    :raises TrainingError: if something is missing
    """
    path = task.trials_path(name)
    known = _read(path)
    try:
        return {trial.key: read_figures(known[trial.key]) for trial in trials}
    except (KeyError, SkippingError) as err:
        raise TrainingError(f'{path} lacks {err}; delete it and replay the flight again') from err


def _read(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > _LARGEST_FILE:
            raise TrainingError(f'{path} is too large for outcomes; delete it')
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as err:
        raise TrainingError(f'{path} cannot be read ({err}); delete it and replay again') from err
    if not isinstance(content, dict):
        raise TrainingError(f'{path} holds no outcomes; delete it and replay again')
    return content
