from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmedge_ros.adaptation import ConfigurationError
from mmedge_ros.adaptation.caps_policy import Caps
from mmedge_ros.adaptation.configuration_space import (
    Axis,
    ConfigurationGrid,
    ConfigurationSpace,
    ModalityOptions,
)
from mmedge_ros.core.data_types import ModalityConfiguration

LEVELS = ('small', 'medium', 'large')


def space() -> ConfigurationSpace:
    return ConfigurationSpace(
        [
            ModalityOptions('camera', (10.0, 20.0, 30.0), LEVELS),
            ModalityOptions('radar', (5.0, 10.0, 20.0), LEVELS, device='gpu'),
        ]
    )


def test_two_modalities_of_three_rates_and_levels_make_81_configurations() -> None:
    assert len(space()) == 81
    assert space().parts(0) == (
        ModalityConfiguration('camera', 10.0, 'small', 'cpu'),
        ModalityConfiguration('radar', 5.0, 'small', 'gpu'),
    )
    assert space().parts(80)[0] == ModalityConfiguration('camera', 30.0, 'large', 'cpu')


def test_any_number_of_modalities_is_possible() -> None:
    for count in (1, 3, 5):
        names = [f'sensor {n}' for n in range(count)]
        made = ConfigurationSpace([ModalityOptions(m, (1.0, 2.0), ('a',)) for m in names])
        assert len(made) == 2**count


def test_a_configuration_finds_its_number() -> None:
    for index in range(81):
        assert space().index_of(space().parts(index)) == index
    assert space().index_of([]) is None
    assert space().index_of([ModalityConfiguration('camera', 11.0, 'small')]) is None


def test_caps_leave_what_is_at_most_as_fast_and_as_large() -> None:
    allowed = space().allowed(Caps({'camera': 20.0}, {'radar': 'small'}))
    kept = [space().parts(index) for index in range(81) if allowed[index]]
    assert len(kept) == 2 * 3 * 3 * 1
    assert all(camera.rate <= 20.0 and radar.level == 'small' for camera, radar in kept)


def reusing() -> ConfigurationSpace:
    camera = ModalityOptions('camera', (10.0, 30.0), LEVELS, reuse=(6, 3, 1))
    return ConfigurationSpace([camera, ModalityOptions('radar', (5.0, 20.0), ('',))])


def test_reuse_is_chosen_with_every_rate_and_level_the_most_of_it_the_cheapest() -> None:
    made = reusing()
    assert len(made) == 2 * 3 * 3 * 2
    assert made.parts(0)[0] == ModalityConfiguration('camera', 10.0, 'small', 'cpu', 6)
    assert made.parts(len(made) - 1)[0] == ModalityConfiguration('camera', 30.0, 'large')
    assert [made.index_of(made.parts(n)) for n in range(len(made))] == list(range(len(made)))
    assert made.index_of([replace(part, reuse=2) for part in made.parts(0)]) is None


def test_caps_say_nothing_of_reuse() -> None:
    made = reusing()
    allowed = made.allowed(Caps({'camera': 10.0}, {'camera': 'small'}))
    kept = [made.parts(n)[0] for n in range(len(made)) if allowed[n]]
    assert {part.reuse for part in kept} == {1, 3, 6}
    assert {(part.rate, part.level) for part in kept} == {(10.0, 'small')}


@pytest.mark.parametrize('reuse', [(), (1, 2), (2, 2), (3, 0), (11, 1)])
def test_a_reuse_that_is_none_is_refused(reuse: tuple[int, ...]) -> None:
    with pytest.raises(ConfigurationError, match='camera: a reuse of'):
        ModalityOptions('camera', (10.0,), LEVELS, reuse=reuse)


def test_the_cheapest_stays_allowed_whatever_the_caps() -> None:
    allowed = space().allowed(Caps({'camera': 0.0, 'radar': -1.0}, {'camera': 'small'}))
    assert {space().parts(i)[0].rate for i in range(81) if allowed[i]} == {10.0}


@given(st.floats(allow_nan=True), st.text(max_size=8))
def test_no_cap_ever_leaves_nothing(rate: float, level: str) -> None:
    caps = Caps({'camera': rate, 'nose': rate}, {'radar': level})
    assert space().allowed(caps)[0]


@pytest.mark.parametrize(
    ('levels', 'cap', 'kept'),
    [
        (('small', 'large'), 'medium', 1),
        (('medium', 'large'), 'small', 1),
        (('small', 'medium'), 'large', 2),
        (('medium',), 'small', 1),
        (('nano', 'base', 'huge'), 'medium', 2),
        (('nano', 'base', 'huge', 'giant'), 'medium', 2),
        (('nano', 'base'), 'small', 1),
        (('nano', 'base'), 'large', 2),
        (('nano', 'base'), 'whatever', 2),
        (('small', 'large'), '', 2),
    ],
)
def test_a_cap_on_a_level_that_is_not_there_holds_to_the_next_cheaper_one(
    levels: tuple[str, ...], cap: str, kept: int
) -> None:
    options = ModalityOptions('camera', (10.0,), levels)
    allowed = ConfigurationSpace([options]).allowed(Caps(levels={'camera': cap}))
    assert allowed.tolist() == [True] * kept + [False] * (len(levels) - kept)


def test_other_caps_are_not_answered_with_those_before() -> None:
    subject = space()
    for rate, level in ((20.0, 'small'), (10.0, 'small'), (10.0, 'large'), (20.0, 'small')):
        caps = Caps({'camera': rate}, {'radar': level})
        assert subject.allowed(caps).tolist() == space().allowed(caps).tolist()


@pytest.mark.parametrize(
    ('rates', 'levels', 'words'),
    [
        ((math.nan,), ('s',), 'a rate of nan Hz'),
        ((0.0,), ('s',), 'a rate of 0.0 Hz'),
        ((1e9,), ('s',), 'a rate of 1000000000.0 Hz'),
        ((20.0, 10.0), ('s',), 'the lowest first'),
        ((10.0, 10.0), ('s',), 'list every rate once'),
        ((10.0,), (), 'has no values'),
        ((), ('s',), 'has no values'),
        ((10.0,), ('s', 's'), 'lists a value twice'),
    ],
)
def test_a_space_that_is_none_is_refused(
    rates: tuple[float, ...], levels: tuple[str, ...], words: str
) -> None:
    with pytest.raises(ConfigurationError, match=words):
        ConfigurationSpace([ModalityOptions('camera', rates, levels)])


def test_without_a_modality_there_is_nothing_to_choose() -> None:
    with pytest.raises(ConfigurationError, match='at least one thing'):
        ConfigurationSpace([])


def grid() -> ConfigurationGrid:
    return ConfigurationGrid([Axis('size', ('s', 'm', 'l')), Axis('rate', ('10', '20'))])


def test_the_last_axis_varies_fastest() -> None:
    labels = [grid().labels(index) for index in range(4)]
    assert labels == [('s', '10'), ('s', '20'), ('m', '10'), ('m', '20')]


def test_a_number_and_its_places_belong_together() -> None:
    for index in range(len(grid())):
        assert grid().index(grid().places[index].tolist()) == index


@pytest.mark.parametrize(
    ('axes', 'words'),
    [
        ([], 'at least one thing'),
        ([Axis('a', ())], "'a' has no values"),
        ([Axis('a', ('x', 'x'))], "'a' lists a value twice"),
        ([Axis('a', ('x',)), Axis('a', ('y',))], "'a' is listed twice"),
        ([Axis(str(n), tuple('0123456789')) for n in range(6)], '1000000 configurations are too'),
    ],
)
def test_a_grid_that_cannot_be_searched_is_refused(axes: list[Axis], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        ConfigurationGrid(axes)
