"""Checks are run beside one another: one that hangs or breaks does not take the others along."""

from __future__ import annotations

import threading

from mmedge_ros.preflight.finding import Finding, State, examine, note, ok


def test_findings_come_by_section_in_the_order_of_the_checks() -> None:
    found = examine({'b': lambda: [ok('x', 'good')], 'a': list, 'c': list}, 5.0)
    assert list(found) == ['b', 'a', 'c']
    assert found['b'] == [ok('x', 'good')]
    assert found['a'] == []


def test_a_check_that_hangs_becomes_a_finding_and_the_others_are_kept() -> None:
    ended = threading.Event()
    threads = []

    def hang() -> list[Finding]:
        threads.append(threading.current_thread())
        ended.wait(60.0)
        return []

    found = examine({'USB': hang, 'disk': lambda: [note('disk', 'full')]}, 0.1)
    ended.set()
    assert threads[0].daemon  # or the program could not end
    assert found['disk'] == [note('disk', 'full')]
    assert [(f.subject, f.state) for f in found['USB']] == [('USB', State.WRONG)]
    assert 'dmesg' in found['USB'][0].remedy


def test_a_check_that_breaks_down_becomes_a_note_with_the_error() -> None:
    found = examine({'radar': lambda: [ok('x', str(1 // 0))]}, 5.0)
    assert found['radar'][0].state is State.NOTE
    assert 'ZeroDivisionError' in found['radar'][0].words
