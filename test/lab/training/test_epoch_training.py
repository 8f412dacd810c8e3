"""What of a training in epochs needs no torch: learning rates, and batches made ahead."""

from __future__ import annotations

import threading

import pytest

from mmedge_lab.training.epoch_training import learning_rate_share, made_ahead


def test_a_learning_rate_rises_and_then_falls_to_its_end() -> None:
    shares = [learning_rate_share(step, 1000, 50) for step in range(1000)]
    assert shares[:50] == sorted(shares[:50])
    assert shares[49] == 1.0
    assert shares[49:] == sorted(shares[49:], reverse=True)
    assert shares[-1] == pytest.approx(0.02, abs=1e-4)


def test_a_learning_rate_that_is_held_does_not_depend_on_the_length_until_it_falls() -> None:
    short, long = ([learning_rate_share(s, n, 50, 600) for s in range(n)] for n in (1000, 3000))
    assert short[:601] == long[:601]
    assert set(short[50:601]) == {1.0}
    assert short[-1] == pytest.approx(0.02, abs=1e-3)
    assert long[-1] == pytest.approx(0.02, abs=1e-3)


@pytest.mark.parametrize('threads', [1, 3])
def test_batches_made_ahead_keep_their_order(threads: int) -> None:
    makers = set()

    def make(number: int) -> int:
        makers.add(threading.current_thread().name)
        return number

    assert list(made_ahead(make, 20, threads)) == list(range(20))
    assert len(makers) <= threads
