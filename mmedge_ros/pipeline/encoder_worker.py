"""One encoder at work in a thread of its own, so that receiving never waits for inference."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from mmedge_ros.core.clock import Clock
from mmedge_ros.core.data_types import (
    Configuration,
    Decision,
    SkipDecision,
    Unit,
    UnitFeatures,
    UnitOutcome,
    UnitReceipt,
    extend_trail,
)
from mmedge_ros.core.run_record import count_failure, unexpected
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.track_recogniser import Recognised, TrackRecogniser
from mmedge_ros.encoding.unit_encoder import UnitEncoder
from mmedge_ros.pipeline.unit_intake import Admitted, UnitIntake, receipt_of
from mmedge_ros.sensing import SensingError

_LOG = logging.getLogger(__name__)


def _ignore(*_: object) -> None:
    """Nobody wants to know."""


class EncoderWorker:
    """Takes units from any thread and encodes them one after the other.

    Whatever goes wrong with a unit, the next one is encoded: a sensor is not lost to one bad
    message or to an unforeseen error, which is counted, reported and logged. While no unit waits
    it looks back on the newest decision: it recognises its tracks, where the encoder has a
    ``recogniser``, and hands the decision to whoever remembers what was seen.

    :param on_receipt: called for each receipt, before inference, from the offering thread or
        (for failures) from the worker
    :param on_features: called for each encoded unit from the worker
    :param on_recognised: called with what was recognised in each decision, from the worker
    :param on_look_back: called with each decision after that, from the worker
    """

    def __init__(
        self,
        encoder: UnitEncoder,
        clock: Clock,
        on_receipt: Callable[[UnitReceipt], None],
        on_features: Callable[[UnitFeatures], None],
        capacity: int = 2,
        on_recognised: Callable[[Recognised, Decision], None] = _ignore,
        on_look_back: Callable[[Decision], None] = _ignore,
    ) -> None:
        self.encoded = self.followed = 0
        self.failures: Counter[str] = Counter()
        self._encoder = encoder
        self._clock = clock
        self._on_receipt = on_receipt
        self._on_features = on_features
        self._on_recognised = on_recognised
        self._on_look_back = on_look_back
        self.recogniser: TrackRecogniser | None = getattr(encoder, 'recogniser', None)
        self._decision: Decision | None = None
        self.intake = UnitIntake(encoder.modality, capacity)
        self._changed = threading.Condition()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name='encoder', daemon=True)

    def start(self) -> None:
        """Begin to encode."""
        self._thread.start()

    def stop(self, timeout: float = 1.0) -> None:
        """Let the unit in work be finished, drop the others."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join(timeout)

    def offer(self, unit: Unit) -> None:
        """Take in a unit; returns at once."""
        with self._changed:
            # Receipts leave in order and before the worker can publish the unit's features.
            for receipt in self.intake.offer(unit):
                self._on_receipt(receipt)
            self._changed.notify()

    def offer_tracks(self, decision: Decision) -> None:
        """Look back on a decision when no unit waits; only on the newest one."""
        with self._changed:
            self._decision = decision
            self._changed.notify()

    def configure(self, configuration: Configuration) -> None:
        """Enter a configuration; it applies by stamp."""
        with self._changed:
            self.intake.control.schedule.add(configuration)

    def lease(self, skip: SkipDecision) -> None:
        """Enter a skip lease."""
        with self._changed:
            self.intake.control.lease(skip)

    def figures(self) -> dict[str, object]:
        """Return what became of the units that were offered."""
        intake = self.intake
        return {
            'received': intake.received,
            'encoded': self.encoded,
            'followed': self.followed,
            'waiting': len(intake),
            'dropped': intake.dropped,
            'skipped': intake.skipped,
            'thinned': intake.thinned,
            'failed': self.failures.total(),
            'implausible_stamps': intake.implausible_stamps,
        }

    def _run(self) -> None:
        while True:
            with self._changed:
                # Asked even if none waits: so it knows that the encoder keeps up.
                while (admitted := self.intake.take()) is None and not self._is_wanted:
                    self._changed.wait()
                if self._stopping:
                    return
                decision = None
                if admitted is None:
                    decision, self._decision = self._decision, None
            if admitted is None:
                if decision is not None:
                    self._look_back(decision)
                continue
            try:
                self._encode(admitted)
            # Neither the features nor the word of a failure could be handed on.
            except Exception as err:  # noqa: BLE001
                if count_failure(self.failures, unexpected(err)):
                    _LOG.exception('a unit of the %s is lost', admitted.unit.modality)

    @property
    def _is_wanted(self) -> bool:
        return self._stopping or self._decision is not None

    def _look_back(self, decision: Decision) -> None:
        try:
            if self.recogniser is not None:
                recognised = self.recogniser.recognise(decision)
                for problem in recognised.problems:
                    count_failure(self.failures, problem)
                self._on_recognised(recognised, decision)
            self._on_look_back(decision)
        except Exception as err:  # noqa: BLE001
            if count_failure(self.failures, unexpected(err)):
                _LOG.exception('tracks are not recognised or remembered')

    def _encode(self, admitted: Admitted) -> None:
        unit = admitted.unit
        begin_ns, begun = self._clock.now_ns(), self._clock.monotonic_ns()
        try:
            features = self._encoder.encode(
                unit, admitted.configuration, admitted.configuration_id
            )
        except (SensingError, EncodingError) as err:
            count_failure(self.failures, str(err))
            self._on_receipt(receipt_of(unit, UnitOutcome.FAILED, str(err)))
            return
        except Exception as err:  # noqa: BLE001
            if count_failure(self.failures, unexpected(err)):
                _LOG.exception('a unit of the %s cannot be encoded', unit.modality)
            self._on_receipt(receipt_of(unit, UnitOutcome.FAILED, unexpected(err)))
            return
        trail = extend_trail(unit.trail, 'queue', begin_ns)
        begin_ns = trail[-1].end_ns
        end_ns = begin_ns + self._clock.monotonic_ns() - begun
        if features.followed:
            self.followed += 1
        else:
            self.encoded += 1
        self._on_features(replace(features, trail=extend_trail(trail, features.stage, end_ns)))
