"""A process that runs for long keeps its memory, and a restarted one is soon there."""

from __future__ import annotations

import subprocess
import sys

# Tuples of generators fill Python's list of spare ones, 2000 of each length.
LATER = """
import gc, sys
from mmedge_ros.ros import process_memory
sys.stdout.write(' ')
process_memory.settle()
def blocks():
    before = sys.getallocatedblocks()
    for length in range(4, 9):
        for _ in range(1000):
            tuple(place for place in range(length))
    return sys.getallocatedblocks() - before
grown = blocks()
process_memory.let_go()
print(grown, len(gc.get_objects()), blocks())
"""


def test_what_python_keeps_for_later_is_let_go_and_modules_are_not_looked_at() -> None:
    run = subprocess.run([sys.executable, '-c', LATER], capture_output=True, text=True, check=True)
    grown, looked_at, again = map(int, run.stdout.split())
    assert looked_at < 500
    # What was let go fills again: without that it would have been full.
    assert grown > 3000
    assert abs(again - grown) < 500


def test_fusion_is_there_again_before_what_is_slow_to_load() -> None:
    words = "import sys, mmedge_ros.ros.nodes.fusion; print('scipy' in sys.modules)"
    run = subprocess.run([sys.executable, '-c', words], capture_output=True, text=True, check=True)
    assert run.stdout == 'False\n'
