"""The flight that questions are asked about while it goes on: its decisions and its memory."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from mmedge_ros.core.data_types import CAMERA, NS_PER_S, STANDBY, Configuration, Decision
from mmedge_ros.geometry.ego_motion import EgoState
from mmedge_ros.questions import QuestionError
from mmedge_ros.questions.answer import Answer
from mmedge_ros.questions.grammar import read_question
from mmedge_ros.questions.looks import pictures_of_views, with_looks
from mmedge_ros.questions.model_prompt import PromptPicture
from mmedge_ros.questions.observations import ObservationLog
from mmedge_ros.questions.selection import KnownFlight

# About 14 MB: 25 minutes with a dozen tracks ten times a second, then coarser (`ObservationLog`).
_MOST_ROWS = 200_000
# The newest decision is the present for so long.
_PRESENT_NS = NS_PER_S
# One picture confirms nobody.
_ENOUGH_PICTURES = 3
_PRESENT = re.compile(r"\b(?:is|are|does|do|has|have)\b|\w's\b")


class LiveFlight:
    """Takes decisions in one thread, and answers in others.

    :param now_ns: the time of the stamps
    :param wake: wakes a camera that stands by
    :param labels: those that are detected; none: any
    :param memory: folder of the flight memory; None without one
    :param detector: bundle that the memory may have been made with, see `with_looks`
    """

    def __init__(
        self,
        now_ns: Callable[[], int],
        wake: Callable[[], None],
        labels: tuple[str, ...] = (),
        memory: Path | None = None,
        detector: str = '',
    ) -> None:
        self.pictures_seen = self.woken = 0
        # Why looks were not known at the last question; '' where they were.
        self.problem = ''
        self._now_ns, self._wake = now_ns, wake
        self._labels, self._memory, self._detector = labels, memory, detector
        self._log = ObservationLog(_MOST_ROWS)
        self._lock = threading.Lock()
        self._newest_picture_ns = 0
        self._stands_by = False

    @property
    def rows(self) -> int:
        """How many rows are kept: decisions, and tracks of each."""
        return len(self._log)

    def add(self, decision: Decision, ego: EgoState | None = None) -> None:
        """Take in a decision, and where the drone was then.

        :raises ValueError: if it cannot be kept
        """
        with self._lock:
            self._log.add(decision, ego)
        picture_ns = decision.newest_ns.get(CAMERA, 0)
        if picture_ns not in (0, self._newest_picture_ns):
            self.pictures_seen += 1
            self._newest_picture_ns = picture_ns

    def configured(self, configuration: Configuration) -> None:
        """Note whether the camera stands by."""
        self._stands_by = configuration.of(CAMERA).rate == STANDBY

    def awaited(self, question: str) -> Callable[[], bool] | None:
        """Wake a camera that stands by for a question about now; see `question_worker.Flight`."""
        if not self._stands_by or not is_about_now(question, self._labels):
            return None
        self.woken += 1
        enough = self.pictures_seen + _ENOUGH_PICTURES
        self._wake()
        return lambda: self.pictures_seen >= enough

    def known(self) -> KnownFlight:
        """Return what is known now."""
        now_ns = self._now_ns()
        with self._lock:
            observations = self._log.observations(now_ns)
        if len(observations.stamps_ns) and now_ns < observations.stamps_ns[-1] + _PRESENT_NS:
            observations = replace(observations, now_ns=0)
        known = KnownFlight(observations, labels=self._labels)
        if self._memory is not None:
            known = with_looks(known, self._memory, self._detector)
        self.problem = ', '.join(known.problems)
        return known

    def pictures(self, answer: Answer) -> Sequence[PromptPicture]:
        """Return thumbnails of what an answer is about; none without a memory."""
        return [] if self._memory is None else pictures_of_views(self._memory, answer)


def is_about_now(question: str, labels: Sequence[str] = ()) -> bool:
    """Whether a question is about the present; one that cannot be read may be."""
    try:
        read = read_question(question, labels)
    except QuestionError:
        return True
    is_present = _PRESENT.search(question.casefold()) is not None
    return read.span.last is not None or (read.span.is_whole and is_present)
