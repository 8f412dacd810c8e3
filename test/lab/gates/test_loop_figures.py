"""Figures of a flight with a gate are kept as plain values."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hand_made_gate_figures import flight
from hypothesis import given
from hypothesis import strategies as st

from mmedge_ros.lab.gates.loop_figures import plain_figures, read_plain_figures
from mmedge_ros.skipping import SkippingError


def test_figures_that_were_kept_are_the_same() -> None:
    figures = flight(early=30, differing=2)
    kept = json.loads(json.dumps(plain_figures(figures)))
    result = read_plain_figures(kept)
    assert plain_figures(result) == plain_figures(figures)
    assert result.outcome == figures.outcome
    assert result.windows == figures.windows


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
    del plain['windows']
    with pytest.raises(SkippingError, match='windows'):
        read_plain_figures(plain)
