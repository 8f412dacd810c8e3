"""Lets a language model describe decisions, and says how much of their time that takes.

The result of a consumer of decisions is late if the decision or the consumer is. From the time
that its sentences take, and the limit of a user for both together, follows what is left to
perception (MMEdge, 6.5.4); harder kinds of questions leave less of it (6.6.3). Questions that are
asked once claim nothing, and no decision is described while one is answered.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mmedge_ros.adaptation.latency_budget import LatencyDemand
from mmedge_ros.core.data_types import Decision
from mmedge_ros.core.parameter import ParameterError, parameter
from mmedge_ros.core.untrusted_files import printable
from mmedge_ros.questions.language_model import (
    IsCancelled,
    LanguageModel,
    OnPhase,
    Phase,
    ReadyModel,
)
from mmedge_ros.questions.model_client import ModelError, never
from mmedge_ros.questions.model_prompt import description_messages

# So many sentences of a kind count, so few are enough, and this quantile of theirs is announced.
# They are few, because perception itself makes them slow, and what it does changes.
_COUNTED, _ENOUGH, _UPPER = 16, 5, 0.95
# How long what is announced holds (s).
_LEASE = 2.0
# A sentence in work for so many times what they take is none that comes.
_OVERDUE = 2.0
# s: what loading and a sentence may take, and how long a model that failed is left alone.
_LOADING, _LONGEST_SENTENCE, _RETRY = 120.0, 30.0, 5.0
_LONGEST_WORDS = 300
# The name of a figure, and the end of that of a kind.
NEWEST, TAKES = 'newest sentence (ms)', ' takes (ms, 95 %)'


class DescribedKind(NamedTuple):
    """A kind of question: what is asked of every decision, and the tokens of an answer."""

    task: str
    tokens: int


# NuScenes-QA's kinds, the harder ones later.
KINDS = {
    'scene': DescribedKind('Say in one short sentence what is going on.', 32),
    'existence': DescribedKind('Say in one word whether a person is there.', 8),
    'count': DescribedKind('Say in a few words how many objects of each kind there are.', 12),
    'object': DescribedKind('Name in a few words the fastest object.', 16),
    'status': DescribedKind('Say in one short sentence what each object is doing.', 32),
    'comparison': DescribedKind(
        'Say in one short sentence which two objects are closest together, and which is faster.',
        40,
    ),
}


@dataclass(frozen=True)
class DescribeParameters:
    """Which sentences a language model makes of decisions, and how late they may be."""

    kinds: tuple[str, ...] = parameter(
        (),
        'kinds of questions that the model answers in turn, each in a sentence about the newest '
        f'decision: {", ".join(KINDS)}; empty describes nothing',
    )
    total_limit: float = parameter(
        0.0,
        'time from the end of a window to the sentence about it; what the model leaves of it is '
        'the latency limit of the optimiser. 0 leaves that limit as it is',
        's',
        0.0,
        60.0,
    )


@dataclass
class DescribeCounts:
    """Sentences, those within the limit of the user, and decisions that were not described.

    ``newest`` is the time (s) from the end of a window to the sentence that was made last.
    """

    sentences: int = 0
    in_time: int = 0
    newest: float = math.nan
    skipped: int = 0


class Describer:
    """Describes the newest decision whenever the model is free; the others are skipped.

    For questions that are asked once it is the `LanguageModel`: they go first.

    :param on_sentence: takes each sentence, in a thread of this class
    :param monotonic: seconds
    :param start: runs what it is given elsewhere
    :raises ParameterError: for a kind that there is not
    """

    def __init__(
        self,
        model: LanguageModel,
        parameters: DescribeParameters,
        on_sentence: Callable[[str], None],
        *,
        monotonic: Callable[[], float] = time.monotonic,
        start: Callable[[Callable[[], None]], None] | None = None,
    ) -> None:
        for kind in parameters.kinds:
            if kind not in KINDS:
                raise ParameterError(
                    f'describe.kinds: {printable(kind)[:40]!r} is none of {", ".join(KINDS)}'
                )
        self._model, self._parameters, self._on_sentence = model, parameters, on_sentence
        self._monotonic, self._start = monotonic, start or _in_thread
        self._times = {kind: deque[float](maxlen=_COUNTED) for kind in parameters.kinds}
        self._turn = threading.Condition()
        self._busy = self._is_closed = False
        self._questions = self._number = 0
        self._begun = 0.0
        self._retry_at = -math.inf
        self.counts = DescribeCounts()
        self.problem = ''

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of questions that decisions are described by; empty for none."""
        return self._parameters.kinds

    def offer(self, decision: Decision, waited: float = 0.0) -> bool:
        """Describe a decision unless there is something else to do; say whether that begins.

        :param waited: s since it was published
        """
        kinds = self._parameters.kinds
        with self._turn:
            now = self._monotonic()
            if not kinds or self._is_closed:
                return False
            if self._busy or self._questions or now < self._retry_at:
                self.counts.skipped += 1
                return False
            self._busy, self._begun = True, now - waited
        kind = kinds[self._number % len(kinds)]
        self._start(lambda: self._describe(decision, kind))
        return True

    def upper(self, kind: str) -> float:
        """Return the upper quantile of the time (s) from a decision to a sentence of a kind.

        NaN before there were enough of them.
        """
        return self._quantile(kind, _UPPER)

    def demands(self) -> list[LatencyDemand]:
        """Return the latency demands to announce now, one for each kind; none if of no use.

        So it is while a question is answered, where the model fails or hangs, and where most
        sentences alone take longer than they may.
        """
        limit = self._parameters.total_limit
        with self._turn:
            if self._questions or self.problem or self._is_closed:
                return []
            upper = {kind: self.upper(kind) for kind in self._parameters.kinds}
            worked = self._monotonic() - self._begun if self._busy else 0.0
        if worked > _OVERDUE * max(upper.values(), default=0.0):
            return []
        return [
            LatencyDemand(f'describing: {kind}', seconds, limit, _LEASE)
            for kind, seconds in upper.items()
            if self._quantile(kind, 0.5) < limit
        ]

    def missing(self) -> list[str]:
        """Say what is wrong with the model."""
        limit = self._parameters.total_limit
        slow = [kind for kind in self.kinds if self._quantile(kind, 0.5) >= limit > 0.0]
        words = [f'most sentences ({kind}) take longer alone than {limit:g} s' for kind in slow]
        return [*([self.problem] if self.problem else []), *words]

    def figures(self) -> dict[str, object]:
        """Return what diagnostics show of it."""
        return {
            'sentences': self.counts.sentences,
            'sentences in time': self.counts.in_time,
            NEWEST: round(1e3 * self.counts.newest, 1),
            'decisions not described': self.counts.skipped,
            **{f'{kind}{TAKES}': round(1e3 * self.upper(kind), 1) for kind in self.kinds},
        }

    @contextmanager
    def serving(
        self, deadline: float, on_phase: OnPhase, is_cancelled: IsCancelled = never
    ) -> Iterator[ReadyModel]:
        """Serve a question that is asked once; see `LanguageModel`."""
        with self._turn:
            self._questions += 1
            try:
                left = max(deadline - self._monotonic(), 0.0)
                if not self._turn.wait_for(lambda: not self._busy, left):
                    raise ModelError('the model was at work on something else by the deadline')
            except BaseException:
                self._questions -= 1
                raise
            self._busy, self._begun = True, self._monotonic()
        try:
            with self._model.serving(deadline, on_phase, is_cancelled) as ready:
                yield ready
        finally:
            with self._turn:
                self._questions -= 1
            self._free()

    def close(self) -> None:
        """Stop describing and announcing."""
        self._is_closed = True

    def _describe(self, decision: Decision, kind: str) -> None:
        try:
            words = self._sentence(decision, kind)
        except ModelError as err:
            self.problem = str(err)
            self._retry_at = self._monotonic() + _RETRY
        else:
            if words and not self._is_closed:
                self.problem = ''
                self._on_sentence(words)
        finally:
            self._free()

    def _sentence(self, decision: Decision, kind: str) -> str:
        """Return a sentence; '' for that with which a model warms up: its decision is old by then.

        :raises ModelError: if there is none
        """
        task, tokens = KINDS[kind]
        is_loaded = False

        def on_phase(phase: Phase) -> None:
            nonlocal is_loaded
            if phase is Phase.LOADING:
                # Nothing is announced before it works again.
                is_loaded, self.problem = True, 'the model is being loaded'

        longest = max(_LONGEST_SENTENCE, self._parameters.total_limit)
        with self._model.serving(self._monotonic() + _LOADING + longest, on_phase) as ready:
            messages = description_messages(decision, task)
            until = self._monotonic() + longest
            said = ready.ask(messages, until, bound=False, most_tokens=tokens)
        words = printable(said.text)[:_LONGEST_WORDS]
        if not words:
            raise ModelError('the model said nothing of a decision')
        if is_loaded:
            return ''
        taken = self._monotonic() - self._begun
        self._times[kind].append(taken)
        self._number += 1
        self.counts.sentences += 1
        self.counts.newest = decision.latency + taken
        self.counts.in_time += self.counts.newest <= self._parameters.total_limit
        return words

    def _quantile(self, kind: str, share: float) -> float:
        times = list(self._times.get(kind, ()))
        return float(np.quantile(times, share)) if len(times) >= _ENOUGH else math.nan

    def _free(self) -> None:
        with self._turn:
            self._busy = False
            self._turn.notify_all()


def _in_thread(work: Callable[[], None]) -> None:
    threading.Thread(target=work, name='describing', daemon=True).start()
