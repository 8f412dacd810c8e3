"""Ways to recognise a stream of crops with less work, on outputs that were kept of the stages.

Each says of a crop what it is, how many stages would have run for that, and what it took besides.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.rivals.smtm.printed_semantic_memory import PrintedSemanticMemory
from mmedge_lab.rivals.smtm.subject import KeptOutputs
from mmedge_ros.encoding.classifier_description import odds
from mmedge_ros.encoding.hot_classes import HotClasses
from mmedge_ros.encoding.semantic_memory import (
    SemanticCentres,
    SemanticMemory,
    SemanticMemoryParameters,
)

# The error above which the flying memory becomes stricter is twice what its thresholds allow.
_AUDITED = 2.0
_NEVER_MOVED = 10**12


class LookAnswer(NamedTuple):
    """What a method says of a crop.

    ``stages`` ran (0: none), of whose work a share ``reused`` was spared; ``seconds`` were spent
    besides.
    """

    label: int
    stages: int
    seconds: float = 0.0
    reused: float = 0.0


class Method(Protocol):
    """Recognises the crops of one stream, one after another."""

    def look(self, row: int, track: int) -> LookAnswer:
        """Recognise the crop of a row of the kept outputs, of an object with a track id."""

    @property
    def bytes(self) -> int:
        """What it remembers, in bytes."""


class FullRuns:
    """Runs every crop through."""

    def __init__(self, kept: KeptOutputs) -> None:
        self._whole = kept.whole
        self._stages = len(kept.stage_seconds)
        # What making vectors of taps takes, up to each.
        self._pooling = np.cumsum(kept.pooling_seconds)

    @property
    def bytes(self) -> int:
        return 0

    def look(self, row: int, track: int) -> LookAnswer:  # noqa: ARG002 the id does not matter
        """Return what the whole classifier says."""
        return LookAnswer(int(self._whole[row]), self._stages)


class PrintedRecall(FullRuns):
    """The semantic memory as the paper prints it.

    :param learns: False keeps the centres as they were fitted
    """

    def __init__(
        self,
        kept: KeptOutputs,
        centres: SemanticCentres,
        tau: float,
        hot: HotClasses | None = None,
        *,
        learns: bool = True,
    ) -> None:
        super().__init__(kept)
        self._vectors = kept.vectors[: len(centres.centres)]
        counts = centres.counts if learns else np.full(len(centres.counts), _NEVER_MOVED)
        self._memory = PrintedSemanticMemory(
            centres.centres, counts, hot or HotClasses(len(centres.counts)), tau
        )

    @property
    def bytes(self) -> int:
        return self._memory.bytes

    def look(self, row: int, track: int) -> LookAnswer:
        """Look a crop up; run it through where that recalls nothing."""
        vectors = [of_tap[row] for of_tap in self._vectors]
        begun = time.thread_time()
        found = self._memory.look(vectors)
        answer = super().look(row, track)
        if found is None:
            self._memory.classified(answer.label)
            taps = len(vectors)
        else:
            answer = LookAnswer(found[0], found[1] + 1)
            taps = answer.stages
        taken = time.thread_time() - begun
        return answer._replace(seconds=taken + float(self._pooling[taps - 1]))


class GuardedRecall(FullRuns):
    """The semantic memory that flies.

    :param centres: with the thresholds of ``eps``
    :param learns: False keeps the centres as they were fitted
    """

    def __init__(
        self,
        kept: KeptOutputs,
        centres: SemanticCentres,
        eps: float,
        hot: HotClasses | None = None,
        *,
        learns: bool = True,
    ) -> None:
        super().__init__(kept)
        self._certainty = kept.shares.max(axis=1)
        self._vectors = kept.vectors[: len(centres.centres)]
        parameters = SemanticMemoryParameters(error=_AUDITED * eps)
        if not learns:
            never = np.full(len(centres.counts), float(_NEVER_MOVED))
            centres = centres._replace(counts=never)
            parameters = SemanticMemoryParameters(error=_AUDITED * eps, most_counted=_NEVER_MOVED)
        self._memory = SemanticMemory(centres, hot, parameters)

    @property
    def bytes(self) -> int:
        return self._memory.bytes

    def look(self, row: int, track: int) -> LookAnswer:
        """Look a crop up tap by tap; run it through where that recalls nothing."""
        memory, begun = self._memory, time.thread_time()
        lookup = memory.lookup()
        for layer, of_tap in enumerate(self._vectors):
            recall = lookup.add(of_tap[row])
            if recall is not None and not recall.is_audit:
                label = memory.recalled(lookup)
                taken = time.thread_time() - begun
                return LookAnswer(label, layer + 1, taken + float(self._pooling[layer]))
        answer = super().look(row, track)
        memory.classified(lookup, answer.label, float(self._certainty[row]))
        taken = time.thread_time() - begun
        return answer._replace(seconds=taken + float(self._pooling[len(self._vectors) - 1]))


class ExitHeads(FullRuns):
    """Leaves where the head of a tap is sure enough (BranchyNet, arXiv 1709.01686).

    :param thresholds: (L,) of the odds of the likeliest class; see `fit_exits`
    """

    def __init__(self, kept: KeptOutputs, thresholds: Sequence[float]) -> None:
        super().__init__(kept)
        self._heads = [
            (stage, logits, threshold)
            for stage, (logits, threshold) in enumerate(
                zip(kept.heads, thresholds, strict=True), start=1
            )
            if logits is not None and np.isfinite(threshold)
        ]

    def look(self, row: int, track: int) -> LookAnswer:
        """Ask each head that may be left at."""
        begun = time.thread_time()
        for stage, logits, threshold in self._heads:
            of_crop = logits[row]
            label = int(of_crop.argmax())
            if odds(of_crop, label) >= threshold:
                return LookAnswer(label, stage, time.thread_time() - begun)
        return super().look(row, track)._replace(seconds=time.thread_time() - begun)


class KeptLabels:
    """Keeps the label of a track for some looks, and asks another method then."""

    def __init__(self, inner: Method, every: int) -> None:
        self._inner, self._every = inner, every
        self._known: dict[int, tuple[int, int]] = {}

    @property
    def bytes(self) -> int:
        return self._inner.bytes

    def look(self, row: int, track: int) -> LookAnswer:
        """Return the label that the track has, or recognise it anew."""
        begun = time.thread_time()
        label, left = self._known.get(track, (0, 0))
        if left:
            self._known[track] = label, left - 1
            return LookAnswer(label, 0, time.thread_time() - begun)
        answer = self._inner.look(row, track)
        self._known[track] = answer.label, self._every - 1
        return answer


class ConstantHotClasses(HotClasses):
    """A fast memory of the ``size`` classes with the highest scores, however few would do."""

    def __init__(self, classes: int, size: int) -> None:
        self._size = size
        super().__init__(classes)

    @property
    def hot(self) -> NDArray[np.bool_]:
        """Mark (J,) the classes."""
        marked = np.zeros(len(self.scores), np.bool_)
        marked[np.argsort(-self.scores, kind='stable')[: self._size]] = True
        return marked & (self.scores > 0.0)
