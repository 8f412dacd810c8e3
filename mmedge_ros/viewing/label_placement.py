"""Where the label of each box lies, so that it covers nothing a person wants to see.

Areas are in whole pixels; x1 and y1 are outside.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

# A label further from its box than so many of its own heights could belong to another one.
_ROWS = 6


class Area(NamedTuple):
    """A rectangle; empty where x1 <= x0 or y1 <= y0."""

    x0: int
    y0: int
    x1: int
    y1: int

    def shared(self, other: Area) -> int:
        """Return how many pixels lie in both."""
        across = min(self.x1, other.x1) - max(self.x0, other.x0)
        down = min(self.y1, other.y1) - max(self.y0, other.y0)
        return max(across, 0) * max(down, 0)


class Label(NamedTuple):
    """Where a label lies, and which of its texts has room there."""

    text: int
    area: Area


def place_labels(
    width: int,
    height: int,
    boxes: Sequence[Area],
    sizes: Sequence[Sequence[tuple[int, int]]],
    others: Sequence[Area] = (),
) -> list[Label | None]:
    """Place the labels of boxes in a picture of that size, in their order.

    A label lies in the picture and covers neither its own box nor another label. It covers
    other boxes only where every place does, and then as little of them as can be; a shorter
    text comes before that. None where no place is left.

    :param sizes: width and height of each label's texts, the longest first
    :param others: boxes without a label, which are not to be covered either
    """
    taken: list[Area] = []
    labels: list[Label | None] = []
    for place, box in enumerate(boxes):
        seen = [*boxes[:place], *boxes[place + 1 :], *others]
        label = _place(Area(0, 0, width, height), box, sizes[place], seen, taken)
        labels.append(label)
        if label is not None:
            taken.append(label.area)
    return labels


def _place(
    picture: Area,
    box: Area,
    sizes: Sequence[tuple[int, int]],
    seen: Sequence[Area],
    taken: Sequence[Area],
) -> Label | None:
    best, least = None, picture.x1 * picture.y1 + 1
    for text, size in enumerate(sizes):
        for area in _places(picture, box, *size):
            if area.shared(box) or any(area.shared(label) for label in taken):
                continue
            covered = sum(area.shared(other) for other in seen)
            if not covered:
                return Label(text, area)
            if covered < least:
                best, least = Label(text, area), covered
    return best


def _places(picture: Area, box: Area, width: int, height: int) -> Iterator[Area]:
    """Areas of that size around a box and within the picture, best first."""
    if width > picture.x1 or height > picture.y1:
        return
    left, right = box.x0, box.x1 - width
    top = min(max(box.y0, picture.y0), picture.y1)
    beside = [(box.x1, top), (box.x0 - width, top)]
    for row in range(_ROWS):
        above, below = min(box.y0, picture.y1) - (row + 1) * height, box.y1 + row * height
        corners = [(x, y) for y in (above, below) for x in (left, right)]
        # Beside the box comes after the places that touch its upper and lower edge.
        for x, y in [*corners, *((x, y + row * height) for x, y in beside)]:
            x0 = min(max(x, picture.x0), picture.x1 - width)
            area = Area(x0, y, x0 + width, y + height)
            if picture.y0 <= area.y0 and area.y1 <= picture.y1:
                yield area
