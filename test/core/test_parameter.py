"""Parameters: declared once, checked by type and bounds."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmedge_ros.core.parameter import (
    ParameterError,
    build,
    declared,
    group,
    parameter,
    unknown_name_message,
)


@dataclass(frozen=True)
class Gate:
    """An inner group."""

    width: float = parameter(0.5, 'how wide', 'm', 0.0, 2.0)


@dataclass(frozen=True)
class Filter:
    """A middle group."""

    gate: Gate = group(Gate)
    order: int = parameter(3, 'how many', '', 1, 9)


@dataclass(frozen=True)
class Options:
    """One of everything."""

    rate: float = parameter(10.0, 'how often', 'Hz', 0.0, 100.0)
    loud: bool = parameter(False, 'whether to shout')
    mode: str = parameter('fast', 'how', choices=('fast', 'safe'))
    path: str = parameter('', 'where')
    names: tuple[str, ...] = parameter(('a',), 'who')
    shifts: tuple[float, ...] = parameter((0.0, 1.0), 'how far', 'm', -1.0, 1.0)
    nobody: tuple[str, ...] = parameter((), 'who else')
    free: float = parameter(0.0, 'without bounds')
    filter: Filter = group(Filter)


@dataclass(frozen=True)
class Nothing:
    """Takes no parameters."""


NAMES = [
    'rate',
    'loud',
    'mode',
    'path',
    'names',
    'shifts',
    'nobody',
    'free',
    'filter.gate.width',
    'filter.order',
]


def test_without_values_every_default_holds() -> None:
    assert build(Options, {}) == Options()


def test_parameters_are_listed_in_order_with_dotted_names() -> None:
    found = declared(Options)
    assert [item.name for item in found] == NAMES
    width = found[-2]
    assert (width.default, width.bounds.unit) == (0.5, 'm')
    assert (width.bounds.minimum, width.bounds.maximum) == (0.0, 2.0)
    assert width.bounds.description == 'how wide'


def test_values_reach_their_fields_however_deep() -> None:
    found = build(
        Options,
        {'filter.gate.width': 1.5, 'filter.order': 4, 'mode': 'safe', 'names': ['b', 'c']},
    )
    assert found.filter == Filter(Gate(1.5), 4)
    assert (found.mode, found.names) == ('safe', ('b', 'c'))
    assert found.rate == 10.0


def test_what_is_built_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        build(Options, {}).rate = 1.0  # type: ignore[misc]


def test_a_whole_number_is_a_float_where_one_is_wanted() -> None:
    found = build(Options, {'rate': 7})
    assert found.rate == 7.0
    assert isinstance(found.rate, float)


@pytest.mark.parametrize('value', [0.0, 100.0, 0, 100])
def test_limits_are_inclusive(value: float) -> None:
    assert build(Options, {'rate': value}).rate == value


@pytest.mark.parametrize(
    ('name', 'value'),
    [
        ('rate', -0.001),
        ('rate', 100.001),
        ('filter.order', 0),
        ('filter.order', 10),
        ('filter.gate.width', 2.1),
        ('shifts', [0.0, 1.5]),
    ],
)
def test_a_value_beyond_its_limits_is_refused_with_the_limits(name: str, value: Any) -> None:
    with pytest.raises(ParameterError, match=r'the limits are') as caught:
        build(Options, {name: value})
    assert repr(name) in str(caught.value)


@pytest.mark.parametrize(
    ('name', 'value'),
    [
        ('rate', 'ten'),
        ('rate', True),
        ('rate', None),
        ('rate', float('nan')),
        ('rate', float('inf')),
        ('free', float('nan')),
        ('free', float('-inf')),
        ('free', 10**400),
        ('rate', [1.0]),
        ('loud', 1),
        ('loud', 'yes'),
        ('filter.order', 3.0),
        ('filter.order', True),
        ('filter.order', '3'),
        ('mode', 3),
        ('path', False),
        ('path', None),
        ('names', 'abc'),
        ('names', {'a': 1}),
        ('names', [1, 2]),
        ('names', [None]),
        ('names', None),
        ('nobody', [3]),
        ('shifts', ['0']),
    ],
)
def test_a_value_of_another_type_is_refused_with_what_it_must_be(name: str, value: Any) -> None:
    with pytest.raises(ParameterError, match='must be a') as caught:
        build(Options, {name: value})
    assert repr(name) in str(caught.value)
    assert len(str(caught.value)) < 300


def test_a_choice_must_be_one_of_those() -> None:
    with pytest.raises(ParameterError, match='choose one of fast, safe'):
        build(Options, {'mode': 'quick'})


@pytest.mark.parametrize(
    ('name', 'meant'),
    [
        ('rat', 'rate'),
        ('filter.gate.with', 'filter.gate.width'),
        ('gate.width', 'filter.gate.width'),
        ('filter', 'filter.order'),
        ('', None),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(name: str, meant: str | None) -> None:
    with pytest.raises(ParameterError, match='unknown parameter') as caught:
        build(Options, {name: 1})
    if meant is not None:
        assert repr(meant) in str(caught.value)


def test_what_takes_no_parameters_says_so() -> None:
    with pytest.raises(ParameterError, match='this takes no parameters'):
        build(Nothing, {'rate': 1})
    assert 'rate' in unknown_name_message('rate', [])


@given(
    st.sampled_from(NAMES),
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(max_size=20),
        st.binary(max_size=20),
        st.lists(st.one_of(st.integers(), st.floats(), st.text(max_size=5)), max_size=3),
        st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
    ),
)
def test_any_value_is_taken_within_its_bounds_or_refused(name: str, value: Any) -> None:
    try:
        found = build(Options, {name: value})
    except ParameterError:
        return
    assert 0.0 <= found.rate <= 100.0
    assert 1 <= found.filter.order <= 9
    assert isinstance(found.loud, bool)
    assert found.mode in ('fast', 'safe')
    assert all(isinstance(n, str) for n in found.names)
