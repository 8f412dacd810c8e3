"""Clusters of moving returns."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmedge_ros.tracking import return_placement
from mmedge_ros.tracking.return_placement import cluster_returns


def clusters(rows: list[tuple[float, ...]], link: float = 0.7) -> list[list[int]]:
    """Indices of each cluster of (x, y, z, velocity)."""
    table = np.array(rows, float).reshape(-1, 4)
    return [m.tolist() for m in cluster_returns(table[:, :3], table[:, 3], link)]


def test_near_returns_with_like_velocities_are_one_cluster() -> None:
    assert clusters([(5, 0, 0, 1), (5.3, 0.3, 0, 1.2), (5, 0.5, 0, 0.8)]) == [[0, 1, 2]]


def test_a_chain_of_neighbours_is_one_cluster() -> None:
    assert clusters([(5 + 0.6 * n, 0, 0, 1) for n in range(6)]) == [[0, 1, 2, 3, 4, 5]]


def test_places_apart_are_clusters_apart_in_the_order_of_their_first_return() -> None:
    rows = [(9, 0, 0, 1), (5, 0, 0, 1), (9.1, 0, 0, 1), (5.1, 0, 0, 1)]
    assert clusters(rows) == [[0, 2], [1, 3]]


def test_people_side_by_side_are_kept_apart_by_their_speed() -> None:
    rows = [(5, 0, 0, 1.5), (5, 0.1, 0, 1.4), (5, 0.3, 0, -1.5), (5, 0.4, 0, -1.4)]
    assert clusters(rows) == [[0, 1], [2, 3]]


def test_the_height_separates_nothing() -> None:
    assert clusters([(5, 0, -1, 1), (5, 0, 2, 1)]) == [[0, 1]]


def test_a_return_alone_is_a_cluster() -> None:
    assert clusters([(5, 0, 0, 1), (9, 0, 0, 1), (9.1, 0, 0, 1)]) == [[0], [1, 2]]


def test_without_returns_there_are_no_clusters() -> None:
    assert clusters([]) == []


def test_a_cloud_as_dense_as_a_lidars_is_clustered() -> None:
    places = np.random.default_rng(1).uniform([1, -2, 0], [5, 2, 2], (2000, 3))
    (members,) = cluster_returns(places, np.ones(2000), 0.7)
    assert len(members) == 2000


@pytest.mark.parametrize('link', [0.3, 1.0])
@given(
    rows=st.lists(st.tuples(*[st.floats(-3, 3)] * 4), max_size=12),
)
def test_clusters_are_the_connected_parts(link: float, rows: list[tuple[float, ...]]) -> None:
    result = clusters(rows, link)
    assert sorted(i for members in result for i in members) == list(range(len(rows)))
    place = np.array([(x, y, 0.5 * v) for x, y, _, v in rows]).reshape(-1, 3)
    label = {i: n for n, members in enumerate(result) for i in members}
    for i in range(len(rows)):
        for j in range(i):
            if np.linalg.norm(place[i] - place[j]) <= link - 1e-9:
                assert label[i] == label[j]
    for members in result:
        reached = {members[0]}
        while True:
            near = {
                j
                for i in reached
                for j in members
                if np.linalg.norm(place[i] - place[j]) <= link + 1e-9
            }
            if near <= reached:
                break
            reached |= near
        assert reached == set(members)


def test_of_many_returns_the_same_are_near_as_of_few(monkeypatch: pytest.MonkeyPatch) -> None:
    places = np.random.default_rng(5).uniform(0.0, 9.0, (200, 4)).tolist()
    compared = clusters(places)
    monkeypatch.setattr(return_placement, '_MOST_COMPARED', 0)
    assert len(compared) > 5
    assert clusters(places) == compared
