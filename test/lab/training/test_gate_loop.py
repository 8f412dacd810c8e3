"""Whole flights with a gate beside the same flights without one, and what is lost by it."""

from __future__ import annotations

import numpy as np
from hand_made_encoded_flight import encoded_flight
from hand_made_gates import always
from hand_made_truth import BOX, decided, film, moved, run, track, true_person

from mmedge_lab.judging.bundle_under_test import NOMINAL
from mmedge_lab.training.gate_loop import (
    FlightLoop,
    GatedRun,
    LoopSettings,
    ReferenceRun,
    encodes,
    held_people,
)
from mmedge_ros.core.data_types import CAMERA, RADAR, Configuration, ModalityConfiguration
from mmedge_ros.pipeline.pipeline_parameters import PipelineParameters
from mmedge_ros.report.accuracy_samples import PersonSamples
from mmedge_ros.report.report import decision_lines
from mmedge_ros.windows.audits import AuditParameters
from mmedge_ros.windows.skip_control import SkipParameters

SETTINGS = LoopSettings(
    Configuration(1, 0, (ModalityConfiguration(CAMERA, 30.0), ModalityConfiguration(RADAR, 20.0))),
    NOMINAL,
    PipelineParameters(skipping=SkipParameters(audits=AuditParameters(share=0.0))),
)


def test_a_gate_that_never_says_yes_changes_nothing() -> None:
    loop = FlightLoop(encoded_flight(lambda _: 2), SETTINGS)
    gated = loop.gated(always(0.0), 0.5)
    reference = loop.reference.record
    assert decision_lines(gated.record.decisions) == decision_lines(reference.decisions)
    assert len(reference.decisions) > 15
    assert not gated.early_ends_ns
    assert encodes(gated.record) == encodes(reference) > 0


def test_in_a_quiet_scene_early_decisions_lose_hardly_anything() -> None:
    loop = FlightLoop(encoded_flight(lambda _: 2), SETTINGS)
    gated = loop.gated(always(1.0), 0.5)
    early = [d for d in gated.record.decisions if d.window_end_ns in gated.early_ends_ns]
    assert len(early) > 10
    assert encodes(loop.reference.record) - encodes(gated.record) >= 20
    assert min(decision.latency for decision in early) < -0.2
    # And again, to the byte, with what is remembered of the flight and without.
    for again in (loop, FlightLoop(loop.flight, SETTINGS)):
        other = again.gated(always(1.0), 0.5)
        assert decision_lines(other.record.decisions) == decision_lines(gated.record.decisions)


def seen(overlaps: list[float], person: int = 1, begin: int = 0) -> PersonSamples:
    """One person every 10 ms from an instant on."""
    count = len(overlaps)
    stamps = (begin + np.arange(count)) * 10_000_000
    numbers, texts = np.zeros(count), np.zeros(count, np.str_)
    return PersonSamples(
        stamps,
        np.full(count, person),
        *(numbers,) * 3,
        np.array(overlaps),
        np.array(overlaps) >= 0.5,
        *(texts,) * 3,
    )


def test_who_was_in_view_for_a_second_is_held() -> None:
    held = held_people(seen([0.0] * 20 + [0.3] * 150))
    assert np.flatnonzero(held)[0] == 120
    assert held[120:].all()
    # The first miss after a second counts, and then it takes a second again.
    lost = held_people(seen([0.6] * 110 + [0.1] + [0.6] * 90))
    assert lost[110]
    assert not lost[111:].any()


def test_a_flight_loses_what_its_reference_shows_better() -> None:
    far = moved(BOX, 200.0)
    truth = film(lambda _: [true_person()], 2000)
    ends = range(0, 2001, 100)
    reference = run([decided(ms, track()) for ms in ends], truth)
    # For half a second its box is elsewhere.
    ours = run([decided(ms, track(box=far if 1500 <= ms < 2000 else BOX)) for ms in ends], truth)
    lost = ReferenceRun(reference).loss(GatedRun(ours, frozenset()))
    assert lost.people == 201
    assert (lost.iou, lost.held, lost.missed) == (50.0, 101, 50)
    # What is published between decisions is shown, too.
    ours.updates = [decided(ms, track()) for ms in range(1550, 2000, 100)]
    assert ReferenceRun(reference).loss(GatedRun(ours, frozenset())).iou == 25.0
