"""How many typed questions about simulated flights are answered rightly.

What is right is what is answered from true tracks; a fixed answer says how much is right without
looking.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from mmedge_lab.judging.bench import Bench, BenchRequest, Figure, Row, Subject, Sums, flights_about
from mmedge_lab.judging.bundle_under_test import NOMINAL
from mmedge_lab.judging.judged_flight import simulated_flight, simulated_truth
from mmedge_lab.judging.question_truth import (
    TrueQuestion,
    known_when,
    owners_of,
    track_of,
    true_observations,
    true_questions,
)
from mmedge_lab.worker_processes import OnShare
from mmedge_ros.core.device_profile import write_profile
from mmedge_ros.encoding.bundle.default_model import default_detector
from mmedge_ros.encoding.bundle.manifest import MANIFEST
from mmedge_ros.encoding.bundle.weights import sha256_of
from mmedge_ros.questions.answering import answer
from mmedge_ros.questions.observed_flight import observe_flight
from mmedge_ros.questions.question import Kind
from mmedge_ros.questions.selection import KnownFlight
from mmedge_ros.replay.recording import Recording

OURS, FIXED = 'our tracks', 'a fixed answer'
ALL = 'all'
# Questions of each kind about each flight.
EACH = 5

_FIGURES = {
    **{of: Figure(of, f'{of} right', f'{of} asked') for of in (*(k.value for k in Kind), ALL)},
    'refused': Figure('refused', 'refused', f'{ALL} asked'),
}


class AskedFlight(NamedTuple):
    """A flight as it was perceived, with questions about true objects."""

    ours: KnownFlight
    owners: dict[int, int]
    questions: list[TrueQuestion]


def _asked(
    bundle: Path, profile: Path, subject: Subject, _: Sequence[Row], on_share: OnShare
) -> AskedFlight:
    """Replay a flight with a bundle, and make questions about it."""
    flight = str(subject.flight)
    simulated_flight(subject.flight)
    seen = observe_flight(flight, str(bundle), lambda share, _: on_share(share), str(profile))
    with Recording(subject.flight) as recording:
        truth = simulated_truth(recording)
    ours = KnownFlight(seen.observations, labels=seen.labels)
    true = true_observations(truth, ours.observations.stamps_ns)
    owners = owners_of(ours.observations, true)
    asked = true_questions(true, known_when(ours.observations, owners), subject.name, EACH)
    return AskedFlight(ours, owners, asked)


def bench(request: BenchRequest, *, profile: str = '') -> Bench:
    """Ask typed questions about flights, as they were perceived.

    :param profile: device profile of the service times; nominal ones without it
    """
    folder, subjects = default_detector(request.detector or 'flight_people'), request.flights()
    times = Path(profile) if profile else request.out / 'nominal.yaml'
    if not profile:
        request.out.mkdir(parents=True, exist_ok=True)
        write_profile(NOMINAL, times)
    return Bench(
        'Typed questions answered rightly, by kind',
        tuple(Row(name, partial(answered, name)) for name in (OURS, FIXED)),
        _FIGURES,
        subjects,
        partial(_asked, folder, times),
        references=(FIXED,),
        key=f'{sha256_of(folder / MANIFEST)} {sha256_of(times)} {EACH}',
        about={
            **flights_about(subjects),
            'bundle': folder.name,
            'profile': times.name,
        },
    )


def answered(name: str, flight: AskedFlight) -> Sums:
    """Count the questions that a row answers rightly, by kind."""
    sums = Counter[str]({figure.above: 0 for figure in _FIGURES.values()})
    for one in flight.questions:
        is_right, is_refused = _judged(name, one, flight)
        for of in (one.question.kind.value, ALL):
            sums[f'{of} asked'] += 1
            sums[f'{of} right'] += is_right
        sums['refused'] += is_refused
    sums.update({figure.below: 0 for figure in _FIGURES.values()})
    return {column: float(count) for column, count in sums.items()}


def _judged(name: str, one: TrueQuestion, flight: AskedFlight) -> tuple[bool, bool]:
    """Say whether an answer is right, and whether there is none."""
    if name == FIXED:
        return _is_fixed(one), False
    ours, owners = flight.ours, flight.owners
    asked = one.of_tracks(partial(track_of, ours.observations, owners, one))
    said = answer(asked, ours)
    return one.is_right(said.value, owners), bool(said.refused)


def _is_fixed(one: TrueQuestion) -> bool:
    """Whether "yes", "one", "it stands still" or the first that is named is right."""
    if one.names_objects:
        return one.right in one.question.tracks[:1]
    return one.right in (1, 'person', 'still')  # "yes" is 1
