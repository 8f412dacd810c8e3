"""What counts as found in a flight memory, and how answers become figures."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hand_made_moments import HEADER, memory_of, view
from typer.testing import CliRunner

from mmedge_lab.commands.main import lab_app
from mmedge_lab.judging import EvaluationError, memory_truth
from mmedge_lab.judging.memory_bench import (
    GIVES_UP,
    MEAN_COLOUR,
    OURS,
    RANDOM,
    MemoryJudge,
    Rival,
    RivalMemory,
    rivals_of,
)
from mmedge_lab.judging.memory_flights import RememberedFlight
from mmedge_lab.judging.memory_truth import NOBODY, RememberedObject
from mmedge_lab.simulation.appearance import COLOURS, MoverLook
from mmedge_lab.simulation.flight import FlightDescription, kept_flight
from mmedge_ros.core.data_types import FloatArray
from mmedge_ros.memory.moment import Vectors
from mmedge_ros.memory.query import ParsedQuery


class View(NamedTuple):
    """A view of a track, whom it shows, and its vector; see `looking`."""

    track: int
    owner: int
    vector: FloatArray
    label: str = 'car'


def car(colour: str) -> MoverLook:
    return MoverLook('car', colour)


def looking(colour: str, sure: float = 1.0) -> FloatArray:
    """The vector of what looks as if it had a colour."""
    vector = np.zeros(len(COLOURS), np.float32)
    vector[COLOURS.index(colour)] = sure
    return vector


class ByColour:
    """Rates views by the value of the colour that is asked for."""

    def scores(self, query: ParsedQuery, vectors: Vectors) -> FloatArray:
        wanted = [COLOURS.index(value) for _, value in query.subject.attributes]
        return np.asarray(vectors[:, wanted].sum(axis=1), float)


def remembered(
    folder: Path,
    name: str,
    looks: Mapping[int, MoverLook],
    views: Sequence[View],
    seed: str = '1',
    light: str = 'day',
) -> RememberedFlight:
    """A flight with these movers, all of them in view, and these views, a second apart."""
    items = [
        view(one.track, 1.0 + number, vector=one.vector, label=one.label)
        for number, one in enumerate(views)
    ]
    with memory_of(folder / f'{name}.memory', *items) as memory:
        table = memory.table()
    return RememberedFlight(
        name=name,
        seed=seed,
        light=light,
        scenario=f'street_{light}_near',
        cast=f'cast of {seed}',
        objects=tuple(
            RememberedObject(name, seed, light, n, look, 40.0) for n, look in looks.items()
        ),
        looks=looks,
        table=table,
        owners={
            int(number): one.owner for number, one in zip(table.integers['id'], views, strict=True)
        },
        colours=np.zeros((len(table), 24), np.float32),
    )


def rival_of(*flights: RememberedFlight, name: str = 'ours') -> Rival:
    """What embeds flights as their memories do."""
    memories = {f.name: RivalMemory(f.name, HEADER, f.table) for f in flights}
    return Rival(name, ByColour(), memories)


def crowd(count: int, *first: str) -> dict[int, MoverLook]:
    """Looks of cars of these colours, numbered from 1, and of other things to fill a gallery."""
    looks = {number: car(colour) for number, colour in enumerate(first, 1)}
    filling = [MoverLook('dog', 'brown')] * (count - len(first))
    return looks | dict(enumerate(filling, len(first) + 1))


MODELS = Path(__file__).resolve().parents[3] / 'models'
RED, BLUE = looking('red'), looking('blue')


def test_flights_are_remembered_and_asked_for_what_they_saw(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One flight is no gallery in which three in a hundred are anybody.
    monkeypatch.setattr(memory_truth.questions, '__defaults__', (0.5,))
    about = FlightDescription('street_day_near', 5, 0.6)
    kept_flight(tmp_path / 'set/street_day_near_5', about, lambda _: None)
    # Of a flight of another set that had this name, and is gone.
    stale = tmp_path / 'out/memories/street_day_near_5/street_day_near_5'
    stale.parent.mkdir(parents=True)
    stale.symlink_to(tmp_path / 'gone')
    arguments = ['search', str(tmp_path / 'set'), '--out', str(tmp_path / 'out')]
    result = CliRunner().invoke(lab_app, ['bench', *arguments], env={'NO_COLOR': '1'})
    assert result.exit_code == 0, result.output
    content = json.loads((tmp_path / 'out/search.json').read_text())
    tables = {
        table['title']: {row['name']: row['values'] for row in table['rows']}
        for table in content['tables']
    }
    words = tables['in words']
    assert set(words) == {OURS, MEAN_COLOUR, RANDOM}
    assert words[OURS]['hit_1']['value'] > words[RANDOM]['hit_1']['value']
    assert tables['in words, by light']['day'] == words[OURS]
    assert tables['what it costs']['built']['bytes']['value'] > 100.0
    assert set(tables['looked at until found']) == {
        'thumbnails, then pictures',
        'a picture a second',
    }


def judge_of(*flights: RememberedFlight) -> MemoryJudge:
    return MemoryJudge({flight.name: flight for flight in flights})


def answers(folder: Path, colours: tuple[str, ...], *views: View) -> dict[str, tuple[bool, bool]]:
    """Whether cars of colours, numbered from 1, are found first and among the first ten."""
    flight = remembered(folder, 'flight', crowd(40, *colours), views)
    judge, rival = judge_of(flight), rival_of(flight)
    return {one.question.text: judge.words(rival, one) for one in judge.asked_in_words()}


def test_a_moment_whose_view_lies_on_what_looks_so_is_a_hit(tmp_path: Path) -> None:
    found = answers(tmp_path, ('red', 'blue'), View(1, 1, RED), View(2, 2, BLUE))
    assert found == {'red car': (True, True), 'blue car': (True, True)}


def test_what_was_never_detected_is_asked_for_and_missed(tmp_path: Path) -> None:
    found = answers(tmp_path, ('red', 'blue'), View(1, 1, RED))
    assert found == {'red car': (True, True), 'blue car': (False, False)}


def test_the_views_of_a_track_take_one_place_and_the_eleventh_is_too_late(tmp_path: Path) -> None:
    right = View(11, 1, looking('red', 0.5))
    one_track = [View(1, NOBODY, RED) for _ in range(12)]
    for number, wrong, found in (
        (1, one_track, True),
        (2, [View(track, NOBODY, RED) for track in range(1, 10)], True),
        (3, [View(track, NOBODY, RED) for track in range(1, 11)], False),
    ):
        seen = answers(tmp_path / str(number), ('red',), *wrong, right)
        assert seen['red car'] == (False, found)


def test_words_for_several_objects_count_once(tmp_path: Path) -> None:
    flight = remembered(tmp_path, 'f', crowd(100, 'red', 'red', 'blue'), [View(1, 2, RED)])
    judge, rival = judge_of(flight), rival_of(flight)
    asked = judge.asked_in_words()
    weights = [(one.question.text, one.weight) for one in asked]
    assert weights == [('blue car', 1.0), ('red car', 0.5), ('red car', 0.5)]
    assert judge.sums(judge.words, rival, asked) == [{'asked': 2.0, 'one': 1.0, 'ten': 1.0}]


def test_galleries_in_which_no_words_single_anything_out_are_refused(tmp_path: Path) -> None:
    flight = remembered(tmp_path, 'flight', crowd(33, 'red'), [View(1, 1, RED)])
    with pytest.raises(EvaluationError, match='galleries of 33 objects'):
        judge_of(flight).asked_in_words()


def test_lots_are_drawn_again_and_again_for_a_random_order(tmp_path: Path) -> None:
    views = [View(track, 1 if track == 1 else NOBODY, RED) for track in range(1, 21)]
    flight = remembered(tmp_path, 'flight', crowd(40, 'red'), views)
    rival, rng, judge = rival_of(flight, name=RANDOM), np.random.default_rng(4), judge_of(flight)
    rival.scorer.scores = lambda _query, vectors: rng.random(len(vectors))  # type: ignore[method-assign]
    (sums,) = judge.sums(judge.words, rival, judge.asked_in_words())
    assert 0.2 < sums['ten'] < 0.8


def test_an_example_is_looked_for_among_the_flights_of_another_light(tmp_path: Path) -> None:
    looks = {1: car('red'), 2: car('red'), 3: car('blue')}
    day = remembered(tmp_path, 'day', looks, [View(1, 1, RED), View(2, 3, BLUE)])
    views = [View(1, 2, RED + 0.5 * BLUE), View(2, 1, RED)]
    night = remembered(tmp_path, 'night', looks, views, light='night')
    others = [
        remembered(tmp_path, f'{light}_2', {1: car('red')}, [View(1, 1, RED)], '2', light)
        for light in ('day', 'night')
    ]
    judge, rival = judge_of(day, night, *others), rival_of(day, night, *others)
    found = {
        (one.target.flight, one.target.id, one.gallery): judge.example(rival, one)
        for one in judge.examples()
    }
    # Of 2 in the day, and of 3 at night, there is no view to show.
    assert set(found) == {
        ('day', 1, ('night', 'night_2')),
        ('day', 3, ('night', 'night_2')),
        ('night', 1, ('day', 'day_2')),
        ('night', 2, ('day', 'day_2')),
        ('day_2', 1, ('night_2', 'night')),
        ('night_2', 1, ('day_2', 'day')),
    }
    assert found['day', 1, ('night', 'night_2')][1]
    # It looks the same and is another car; and this one has no view at night.
    assert found['night', 2, ('day', 'day_2')] == (False, False)
    assert found['day', 3, ('night', 'night_2')] == (False, False)


def test_thumbnails_are_counted_in_the_order_of_the_answer_then_pictures(tmp_path: Path) -> None:
    looks = {1: car('red'), 2: car('blue'), 3: car('green'), 4: car('white')}
    views = [
        View(1, 1, RED),
        View(2, 2, looking('blue', 0.5)),
        View(3, 1, BLUE),  # red, but taken for blue
    ]
    flight = remembered(tmp_path, 'flight', looks, views)
    seconds = {1: 40, 2: 7, 3: 0, 4: 9}
    seen = tuple(one._replace(scrubbed=seconds[one.id]) for one in flight.objects)
    flight = replace(flight, objects=seen)
    # What no picture at a whole second shows is not asked for; white has no view.
    found = list(judge_of(flight).scrubbed(rival_of(flight), flight))
    assert found == [(2, 7), (1, 40), (GIVES_UP + 9, 9)]


def test_each_rival_has_its_vectors_and_lots_compare_nothing(tmp_path: Path) -> None:
    made = remembered(tmp_path, 'flight', {1: car('red')}, [View(1, 1, np.ones(8))] * 2)
    flight = replace(made, colours=np.full((2, 24), 0.25, np.float32))
    rivals = rivals_of([flight], MODELS / 'flight_people')
    tables = {rival.name: rival.memories['flight'].table() for rival in rivals}
    firsts = {name: float(table.vectors[0, 0]) for name, table in tables.items()}
    assert firsts == pytest.approx({OURS: 1.0, MEAN_COLOUR: 0.25, RANDOM: 1.0}, abs=0.01)
    compared = {name: table.taps(np.array([0, 1])) for name, table in tables.items()}
    assert compared[MEAN_COLOUR].shape == (2, 24)
    assert not np.allclose(*compared[RANDOM])
    with pytest.raises(EvaluationError, match='has no recogniser'):
        rivals_of([flight], MODELS / 'fused_people')
