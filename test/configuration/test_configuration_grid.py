from __future__ import annotations

import pytest

from mmedge_ros.configuration import ConfigurationError
from mmedge_ros.configuration.configuration_grid import Axis, ConfigurationGrid


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
