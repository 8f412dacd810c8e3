"""Workers that are told to stop; in a module of their own, which their processes can import."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.bench import Subject, Sums
from mmedge_lab.worker_processes import OnShare, prepare_worker


def stopped_twice(cleaned: Path) -> None:
    prepare_worker()
    try:
        os.kill(os.getpid(), signal.SIGTERM)
    finally:
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)
        cleaned.touch()


def stop_when_the_main_thread_has_ended() -> None:
    threading.main_thread().join()
    os.kill(os.getpid(), signal.SIGTERM)


def stopped_at_its_end() -> None:
    prepare_worker()
    threading.Thread(target=stop_when_the_main_thread_has_ended).start()


def half_done(ends: str, on_share: OnShare) -> None:
    """Do half of a flight's work, and then the rest, or what ``ends`` says."""
    on_share(0.5)
    if ends == 'killed':
        os.kill(os.getpid(), signal.SIGKILL)
    if ends == 'failed':
        raise EvaluationError('no truth')
    on_share(1.0)


def by_seed(subject: Subject) -> Sums:
    """Judge a subject of a bench."""
    return {'hits': float(subject.seed), 'all': 1.0}
