"""What a recogniser is taught of an object: its class with its colour, and its attributes.

A class is a label with a colour, such as ``person red``: it is what recurs. Attributes are what is
said of it besides.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from mmedge_lab.simulation.appearance import COLOURS, MoverLook
from mmedge_lab.simulation.world import LABELS

_NO_YES = ('no', 'yes')
# The attributes of a recogniser and their values; of the first, the colour, it is the class.
ATTRIBUTES: Mapping[str, tuple[str, ...]] = {
    'bottom': COLOURS,
    'backpack': _NO_YES,
    'child': _NO_YES,
}
CLASSES = tuple(f'{label} {colour}' for label in LABELS for colour in COLOURS)
UNKNOWN = -1


class LabelFacts(NamedTuple):
    """Numbers of `CLASSES` and of the values of `ATTRIBUTES`; -1 where there is nothing to say."""

    kind: int
    bottom: int
    backpack: int
    child: int


def facts_of(look: MoverLook) -> LabelFacts:
    """Return what is true of an object that looks so."""
    kind = CLASSES.index(f'{look.label} {look.colour}')
    if not look.wears:
        return LabelFacts(kind, UNKNOWN, UNKNOWN, UNKNOWN)
    child = int(look.child) if look.label == 'person' else UNKNOWN
    return LabelFacts(kind, COLOURS.index(look.bottom), int(look.backpack), child)


def label_of(name: str) -> str:
    """Return the label of a class, such as person of ``person red``."""
    return name.split(' ', maxsplit=1)[0]


def colour_of(name: str) -> str:
    """Return the colour of a class, such as red of ``person red``; '' where it names none."""
    return name.partition(' ')[2]
