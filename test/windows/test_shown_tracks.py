"""Who was shown, and how well the present could have been foretold: against plain definitions."""

from __future__ import annotations

import pytest
from hand_made_states import boxed, state, track
from hypothesis import given
from hypothesis import strategies as st

from mmedge_ros.core.data_types import Box
from mmedge_ros.geometry.box_overlap import overlap
from mmedge_ros.windows.shown_tracks import ShownHistory, StateFacts, state_facts

MS = 1_000_000
# Ids, each with where it is and where it goes (px, px/s).
PEOPLE = st.dictionaries(
    st.integers(1, 3), st.tuples(st.integers(0, 60), st.integers(-200, 200)), max_size=3
)
# Of any order, and so near that nothing is forgotten yet.
INSTANTS = st.lists(st.tuples(st.integers(0, 1000), PEOPLE), min_size=1, max_size=12)


def shown(at_ms: int, people: dict[int, tuple[float, float]]) -> StateFacts:
    tracks = [
        track(number, boxed(x, rates=(right, 0.5 * right, 0.0, 0.0)))
        for number, (x, right) in people.items()
    ]
    return state_facts(state(at_ms * MS, *tracks))


def remembered(instants: list) -> ShownHistory:
    history = ShownHistory()
    for at_ms, people in instants:
        history.add(shown(at_ms, people))
    return history


def expected_box(x: float, right: float, seconds: float) -> Box:
    return boxed(x + seconds * right, 240.0 + seconds * 0.5 * right).box()


def standing(history: ShownHistory, at_ms: int, x: float = 100.0) -> None:
    """a picture of a standing person."""
    facts = shown(at_ms, {1: (x, 0.0)})
    history.learn(facts)
    history.add(facts)


@given(INSTANTS, st.integers(0, 1000), PEOPLE, st.integers(0, 600))
def test_hindsight_is_the_worst_fit_of_what_was_expected(
    instants: list, now_ms: int, people: dict, lead_ms: int
) -> None:
    known = [(at_ms, then) for at_ms, then in instants if at_ms <= now_ms - lead_ms]
    at_ms, then = known[-1] if known else instants[0]
    expected = 1.0
    if then.keys() == people.keys():
        seconds = (now_ms - at_ms) / 1000.0
        expected = max(
            (
                1.0 - overlap(expected_box(*then[n], seconds), expected_box(*people[n], 0.0))
                for n in people
            ),
            default=0.0,
        )
    result = remembered(instants).hindsight(shown(now_ms, people), lead_ms * MS)
    assert result == pytest.approx(expected)


@given(INSTANTS, st.integers(0, 1500))
def test_changes_are_counted_among_the_instants_of_the_last_third_of_a_second(
    instants: list, now_ms: int
) -> None:
    changed = [
        place > 0 and people.keys() != instants[place - 1][1].keys()
        for place, (_, people) in enumerate(instants)
    ]
    lately = [
        change
        for change, (at_ms, _) in zip(changed, instants, strict=True)
        if now_ms - at_ms <= 300
    ]
    assert remembered(instants).changes(now_ms * MS) == sum(lately[1:])


def test_tracks_shown_at_an_instant_are_known_for_a_second() -> None:
    assert ShownHistory().people_at(0) == {}
    history = remembered([(at_ms, {at_ms: (0.0, 0.0)}) for at_ms in range(0, 1600, 100)])
    assert set(history.people_at(1450 * MS)) == {1400}
    assert set(history.people_at(500 * MS)) == {500}
    # Before that, the first that are known.
    assert set(history.people_at(200 * MS)) == {500}


def test_without_earlier_tracks_hindsight_is_right_about_empty_scenes_only() -> None:
    assert ShownHistory().hindsight(shown(0, {}), 0) == 0.0
    assert ShownHistory().hindsight(shown(0, {1: (0.0, 0.0)}), 0) == 1.0


def test_what_is_usual_is_that_of_the_nearest_lead() -> None:
    history = ShownHistory()
    # Every fifth picture, a person is suddenly elsewhere: seldom seen in hindsight of 30 ms.
    for number in range(60):
        standing(history, number * 33, 100.0 + 200.0 * (number // 5 % 2))
    errors = [history.usual(lead_ms * MS)[1] for lead_ms in (30, 60, 100, 180)]
    assert errors == sorted(errors)
    assert len(set(errors)) == 4
    for between_ms, near, far in ((45, 30, 60), (80, 60, 100), (140, 100, 180)):
        assert history.usual(between_ms * MS) == history.usual(near * MS)
        assert history.usual(between_ms * MS + 1) == history.usual(far * MS)
    assert history.usual(-5 * MS) == history.usual(30 * MS)
    assert history.usual(5000 * MS) == history.usual(180 * MS)


def test_what_is_usual_is_a_running_mean() -> None:
    history = ShownHistory()
    for number in range(1, 11):
        standing(history, number * 33, 300.0 * number)
        assert history.usual(30 * MS) == pytest.approx((1.0 - 0.5 * 0.9**number,) * 2)
    calm = ShownHistory()
    for number in range(1, 11):
        standing(calm, number * 33)
    # Nobody was known before the first.
    assert calm.usual(180 * MS) == pytest.approx((0.55 * 0.9**9,) * 2)


def test_a_track_is_shown_as_the_tracker_would_show_it() -> None:
    crowd = [track(number, boxed()) for number in range(7, 60)]
    facts = state_facts(
        state(
            5,
            track(1, boxed()),
            track(2, boxed(), confirmed=False),
            track(3, boxed(), support=1),
            track(4),
            track(5, confirmed=False),
            track(6),
            *crowd,
        )
    )
    assert [t.track.id for t in facts.with_box[:4]] == [1, 2, 3, 7]
    assert [t.track.id for t in facts.people[:2]] == [1, 7]
    assert (facts.stamp_ns, facts.unseen, facts.emerging) == (5, 2, 1)
    assert facts.people[0].corners == boxed().box()
    # A flood of tracks is read in part.
    assert len(facts.with_box) == 37
