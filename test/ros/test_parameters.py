"""Parameters of nodes: declared once, described, and checked before anything is built."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
import rclpy
from rclpy.node import Node

from mmedge_ros.core.parameter import ParameterError, declared, group, parameter
from mmedge_ros.ros.parameters import declare, descriptor_of


@dataclass(frozen=True)
class Limits:
    """Nested parameters."""

    speed: float = parameter(2.0, 'how fast', 'm/s', 0.0, 10.0)


@dataclass(frozen=True)
class Everything:
    """One parameter of each kind."""

    height: float = parameter(1.5, 'how tall', 'm', minimum=0.5)
    count: int = parameter(3, 'how many', '', 1, 9)
    ready: bool = parameter(False, 'whether')
    colour: str = parameter('red', 'which', choices=('red', 'green'))
    names: tuple[str, ...] = parameter((), 'who')
    places: tuple[str, ...] = parameter(('here', 'there'), 'where')
    limits: Limits = group(Limits)


@contextmanager
def node_given(*arguments: str) -> Iterator[Node]:
    options = [word for argument in arguments for word in ('-p', argument)]
    node = rclpy.create_node('subject', cli_args=['--ros-args', *options])
    yield node
    node.destroy_node()


def declared_on(*arguments: str) -> Everything:
    with node_given(*arguments) as node:
        return declare(node, Everything)


@pytest.mark.usefixtures('ros')
class TestValues:
    @pytest.mark.parametrize('given', [(), ('use_sim_time:=true',)], ids=['nothing', 'the clock'])
    def test_defaults_are_those_of_the_dataclass(self, given: tuple[str, ...]) -> None:
        assert declared_on(*given) == Everything()

    def test_values_from_outside_take_their_place(self) -> None:
        given = declared_on(
            'height:=1.75',
            'count:=4',
            'ready:=true',
            'colour:=green',
            'names:=[ann, bob]',
            'limits.speed:=3.5',
        )
        assert given == Everything(1.75, 4, True, 'green', ('ann', 'bob'), limits=Limits(3.5))

    @pytest.mark.parametrize('written', ['[]', "['']", '[""]'])
    def test_an_empty_list_can_be_written_with_and_without_a_text(self, written: str) -> None:
        given = declared_on(f'names:={written}', f'places:={written}')
        assert (given.names, given.places) == ((), ())

    @pytest.mark.parametrize(
        ('argument', 'words'),
        [
            ('heigth:=1.0', ("'heigth'", "'height'")),
            ('speed:=1.0', ("'speed'", "'limits.speed'")),
            ('use_sim_timer:=true', ("'use_sim_timer'",)),
            ('height:=tall', ("'height'", "'tall'")),
            ('height:=true', ("'height'", 'True')),
            ('height:=.nan', ("'height'", 'nan')),
            ('height:=0.25', ("'height'", '0.25 m', '0.5')),
            ('count:=2.5', ("'count'", '2.5')),
            ('count:=10', ("'count'", '10', '9')),
            ('ready:=1', ("'ready'", '1')),
            ('colour:=blue', ("'colour'", "'blue'", 'red, green')),
            ('names:=ann', ("'names'", "'ann'")),
            ('names:=[1, 2]', ("'names'", '1, 2')),
            ('limits.speed:=11', ("'limits.speed'", '11', '10.0')),
        ],
    )
    def test_what_does_not_fit_is_refused_with_its_name_and_value(
        self, argument: str, words: tuple[str, ...]
    ) -> None:
        with pytest.raises(ParameterError) as caught:
            declared_on(argument)
        assert all(word in str(caught.value) for word in words), str(caught.value)

    @pytest.mark.parametrize(
        ('name', 'value', 'reason'),
        [
            ('count', 4, ''),
            ('use_sim_time', True, 'start the node with use_sim_time'),
            ('use_sim_time', False, 'start the node with use_sim_time'),
        ],
    )
    def test_neither_a_parameter_nor_the_clock_can_be_changed_while_the_node_runs(
        self, name: str, value: object, reason: str
    ) -> None:
        with node_given() as node:
            declare(node, Everything)
            (result,) = node.set_parameters([rclpy.parameter.Parameter(name, value=value)])
            assert not result.successful
            assert reason in result.reason
            assert not node.get_parameter('use_sim_time').value
            assert node.get_clock().now().nanoseconds > 0


class TestDescriptors:
    def test_they_carry_description_unit_and_range(self) -> None:
        found = {item.name: descriptor_of(item) for item in declared(Everything)}
        speed = found['limits.speed']
        assert (speed.description, speed.read_only) == ('how fast [m/s]', True)
        (speeds,) = speed.floating_point_range
        assert (speeds.from_value, speeds.to_value) == (0.0, 10.0)
        (counts,) = found['count'].integer_range
        assert (counts.from_value, counts.to_value) == (1, 9)
        (heights,) = found['height'].floating_point_range
        assert (heights.from_value, heights.to_value) == (0.5, float('inf'))
        assert found['colour'].additional_constraints == 'one of: red, green'
