"""How much is looked at until something is found: thumbnails of an answer, or the recording.

Each flight is asked for everything that it had in view, in words. Thumbnails are looked at in the
order of the answer; who scrubs looks at one picture for each second of the flight, from its begin.
Who has not found it among the first thumbnails scrubs after that.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mmedge_lab.judging.memory_cases import RememberedFlight
from mmedge_lab.judging.memory_judging import Asked, moments_of, shows
from mmedge_lab.judging.memory_rivals import Rival
from mmedge_lab.judging.memory_truth import Question, SeenObject, words_of

GIVES_UP = 20


class Sought(NamedTuple):
    """What was looked at until something of a flight was found: by asking, and by scrubbing.

    ``place`` of the first thumbnail that shows it, from 1; 0 where none of the first does.
    """

    flight: str
    text: str
    place: int
    scrubbed: int

    @property
    def asked(self) -> int:
        """How much is looked at by who asks first."""
        return self.place or GIVES_UP + self.scrubbed


def sought(flights: Sequence[RememberedFlight], rival: Rival) -> list[Sought]:
    """Ask each flight for everything that a picture at a whole second shows."""
    found = []
    for flight in flights:
        alike: dict[str, list[SeenObject]] = defaultdict(list)
        for one in flight.objects:
            if one.scrubbed:
                alike[words_of(one.look)].append(one)
        for text, objects in sorted(alike.items()):
            asked = Asked((flight.name,), Question(text, tuple(objects)), objects[0], 1.0)
            places = [
                place
                for place, moment in enumerate(moments_of(rival, asked, GIVES_UP), 1)
                if shows(moment, asked.question, flight)
            ]
            first = min(one.scrubbed for one in objects)
            found.append(Sought(flight.name, text, min(places, default=0), first))
    return found


def scrubbing_figures(found: Sequence[Sought]) -> dict[str, Any]:
    """Return the figures of a report."""
    asked = np.array([one.asked for one in found])
    scrubbed = np.array([one.scrubbed for one in found])
    return {
        'questions': len(found),
        'thumbnails_at_most': GIVES_UP,
        'found_among_thumbnails': sum(one.place > 0 for one in found),
        'asking': {'median': float(np.median(asked)), 'mean': float(asked.mean())},
        'scrubbing': {'median': float(np.median(scrubbed)), 'mean': float(scrubbed.mean())},
        'sought': [one._asdict() for one in found],
    }
