"""How commands end where something is wrong that a user can do something about."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import typer
from rich.markup import escape

from mmedge_ros.display import console, one_line


@contextmanager
def plain_errors() -> Iterator[None]:
    """Turn every error a user can do something about into one sentence and exit code 1."""
    # Imported here: the command line begins without any library of these packages.
    from mmedge_ros.configuration.errors import ConfigurationError
    from mmedge_ros.encoding.detector import EncodingError
    from mmedge_ros.evaluation.errors import EvaluationError
    from mmedge_ros.fusion.errors import FusionError
    from mmedge_ros.monitoring.errors import MonitoringError
    from mmedge_ros.parameter import ParameterError
    from mmedge_ros.replay.errors import ReplayError
    from mmedge_ros.sensing.errors import SensingError
    from mmedge_ros.simulation.errors import SimulationError
    from mmedge_ros.skipping.errors import SkippingError
    from mmedge_ros.training.errors import TrainingError

    try:
        yield
    except (
        ConfigurationError,
        EncodingError,
        EvaluationError,
        FusionError,
        MonitoringError,
        ParameterError,
        ReplayError,
        SensingError,
        SimulationError,
        SkippingError,
        TrainingError,
    ) as err:
        stop(str(err))
    except OSError as err:
        stop(f'{err.filename or "file"}: {err.strerror or err}')
    except ModuleNotFoundError as err:
        stop(
            f'{err.name} is not installed; this command needs ROS 2 and the built package '
            '(./mmedge brings both)'
        )


def stop(sentence: str) -> NoReturn:
    """End with a sentence and exit code 1."""
    console.print(f'[bold red]mmedge:[/] {escape(one_line(sentence))}', soft_wrap=True)
    raise typer.Exit(1)
