"""Copies of messages are found, and nothing else is taken for one."""

from __future__ import annotations

from mmedge_ros.replay.repeated_messages import RepeatedMessages


def test_a_copy_is_found_and_counted_by_topic() -> None:
    repeated = RepeatedMessages()
    found = [repeated.is_repeated(*m) for m in [('/a', 1, b'x'), ('/a', 1, b'x'), ('/b', 1, b'x')]]
    assert found == [False, True, False]
    assert repeated.counts == {'/a': 1}


def test_another_stamp_or_other_bytes_make_another_message() -> None:
    repeated = RepeatedMessages()
    different = [('/a', 1, b'x'), ('/a', 2, b'x'), ('/a', 1, b'y'), ('/a', 1, b'xx')]
    assert not any(repeated.is_repeated(*m) for m in different)


def test_the_memory_is_bounded() -> None:
    repeated = RepeatedMessages()
    assert not any(repeated.is_repeated('/a', n, b'x') for n in range(1000))
    assert repeated.is_repeated('/a', 990, b'x')
    assert not repeated.is_repeated('/a', 0, b'x')
