"""Training: data sets from flights, the networks' training, and their export to bundles."""

from collections.abc import Callable

from mmedge_ros import MmedgeError

# Called with the share done (0..1), and with what is being done.
Report = Callable[[float, str], None]


class TrainingError(MmedgeError):
    """A set cannot be used, or a training cannot go on; the message names the remedy."""


def part_of(report: Report, begin: float, end: float) -> Report:
    """Return a report for a part of the whole, whose shares are 0..1 again."""
    return lambda share, words: report(begin + (end - begin) * share, words)
