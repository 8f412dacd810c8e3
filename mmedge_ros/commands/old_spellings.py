"""Spellings of options that still work, for one release, and the hints that name the new ones.

Imports nothing but the standard library: it also serves before anything is installed.
"""

from __future__ import annotations

from collections.abc import Sequence

# By command: the old name and the new one. Version 0.2 drops them.
RENAMED = {
    'bench adaptation': {'--bundle': '--detector', '--flight': '--bag', '--limit': '--limits'},
    'bench contention': {'--limit': '--limits'},
    'bench optimizer': {'--limit': '--limits'},
    'evaluate-mot': {'--json': '--out'},
    'model evaluate': {'--json': '--out'},
    'profile': {'--limits': '--shares'},
    'radar simulate-board': {'--folder': '--out'},
    'train fusion': {'--processes': '--jobs', '--teacher': '--pseudo-labels'},
    'train gate': {'--samples': '--train'},
    'train predictor': {'--calibration': '--train', '--samples': '--replays'},
    'up': {'--transform': '--transforms', '--video': '--camera-file'},
}


def respelled(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the arguments of `mmedge` with new names of options, and a hint for each old one."""
    renamed = RENAMED.get(' '.join(arguments[:2])) or RENAMED.get(' '.join(arguments[:1])) or {}
    words, hints = list(arguments), []
    end = words.index('--') if '--' in words else len(words)
    for place, word in enumerate(words[:end]):
        name, equals, value = word.partition('=')
        if name in renamed:
            words[place] = f'{renamed[name]}{equals}{value}'
            hints.append(f'{name} is now {renamed[name]}; the old name goes with the next release')
    return words, list(dict.fromkeys(hints))
