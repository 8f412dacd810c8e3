"""Options that several commands share."""

from __future__ import annotations

import math

import pytest
import typer

from mmedge_ros.commands.options import option


def test_nan_is_within_no_bounds_whatever_click_holds_of_it() -> None:
    bounded = option('--rate', 'HZ', 'pictures per second', min=1.0)
    with pytest.raises(typer.BadParameter, match='nan'):
        bounded.callback(math.nan)
    assert bounded.callback(2.0) == 2.0
    assert bounded.callback(None) is None
    assert option('--any', 'N', 'anything').callback is None
