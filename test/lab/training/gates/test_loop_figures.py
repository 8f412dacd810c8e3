"""What a flight lost with a gate, and how its figures are kept."""

from __future__ import annotations

import contextlib
import json
import math
from typing import Any

import numpy as np
import pytest
from hand_made_gate_figures import flight
from hand_made_truth import BOX, decided, film, moved, run, track, true_person
from hypothesis import given
from hypothesis import strategies as st

from mmedge_lab.training.gates.closed_loop import GatedRun
from mmedge_lab.training.gates.loop_figures import (
    ReferenceFlight,
    held_people,
    plain_figures,
    read_plain_figures,
    saved,
)
from mmedge_ros.report.accuracy_samples import PersonSamples, joined_people
from mmedge_ros.skipping import SkippingError
from mmedge_ros.skipping.skip_control import SkipControl, SkipParameters


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


def test_who_was_out_of_the_picture_is_held_a_second_later() -> None:
    parts = [seen([0.6] * 90), seen([0.6] * 150, begin=95), seen([0.6] * 130, person=2)]
    held = held_people(joined_people(parts))
    assert not held[:190].any()
    assert held[190:240].all()
    assert held[240:].sum() == 30


def test_a_flight_loses_what_its_reference_shows_better() -> None:
    far = moved(BOX, 200.0)
    truth = film(lambda _: [true_person()], 2000)
    ends = range(0, 2001, 100)
    reference = run([decided(ms, track()) for ms in ends], truth)
    # For half a second its box is elsewhere.
    ours = run([decided(ms, track(box=far if 1500 <= ms < 2000 else BOX)) for ms in ends], truth)
    status = GatedRun(ours, (), SkipControl(SkipParameters(), 0.5).status, ())
    found = ReferenceFlight(reference).figures(status)
    assert found.loss.people == 201
    assert (found.loss.iou, found.loss.held, found.loss.missed) == (50.0, 101, 50)
    assert found.shown_lost == 10.0
    # What is published between decisions is shown, too.
    ours.updates = [decided(ms, track()) for ms in range(1550, 2000, 100)]
    between = ReferenceFlight(reference).figures(status)
    assert between.loss.iou == 25.0
    assert between.shown_lost == 5.0


def test_figures_that_were_kept_are_the_same() -> None:
    figures = flight(0.01, 0.3, missed=2)
    assert read_plain_figures(json.loads(json.dumps(plain_figures(figures)))) == figures
    nothing = plain_figures(flight(early=0)) | {'early_by': None}
    assert math.isnan(read_plain_figures(nothing).early_by)


@given(
    st.dictionaries(
        st.sampled_from(list(plain_figures(flight()))),
        st.one_of(st.none(), st.integers(), st.text(), st.lists(st.text(), max_size=3)),
        min_size=1,
    )
)
def test_what_is_no_figures_is_an_error_of_ours_or_read(wrong: dict[str, Any]) -> None:
    plain = {**plain_figures(flight()), **wrong}
    # Nothing else comes out of it.
    with contextlib.suppress(SkippingError):
        assert plain_figures(read_plain_figures(plain)).keys() == plain.keys()


def test_what_lacks_a_part_is_refused() -> None:
    plain = plain_figures(flight())
    del plain['loss']
    with pytest.raises(SkippingError, match='loss'):
        read_plain_figures(plain)


def test_what_is_saved_is_a_share_of_the_references_encodes() -> None:
    assert saved([flight(saved=0.1), flight(saved=0.3)]) == pytest.approx(0.2)
    assert math.isnan(saved([]))
