"""All policies that are compared, by name."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

from mmedge_lab.judging import EvaluationError
from mmedge_lab.policies.blocking import Blocking
from mmedge_lab.policies.non_blocking import NonBlocking
from mmedge_lab.policies.pipelined import Pipelined
from mmedge_ros.data_types import RADAR
from mmedge_ros.untrusted_files import shown

Execution = Blocking | NonBlocking | Pipelined


class Choosing(Enum):
    """Where a policy's rates and levels come from."""

    HIGHEST = 'the highest rates and levels'
    LOWEST = 'the lowest rates and levels'
    DEFAULT = "the highest rates and the bundle's default level"
    OPTIMISER = 'the optimiser'
    PROFILE = 'the optimiser, which believes its profile for ever'
    PLUGIN = 'a trained chooser'


@dataclass(frozen=True)
class PolicyKind:
    """A policy: how it runs, and where its configurations come from.

    ``short`` is for figures, ``words`` is one sentence for readers. ``needs`` names the field of
    `Plugins` it cannot do without, '' for none. ``skips``: the bundle's gate is used, if it has
    one; ``alone``: its networks over the window get the newest unit alone; ``reuses``: what
    chooses may encode fewer pictures and follow what was detected in the others.
    """

    execution: Execution
    short: str
    words: str
    choosing: Choosing = Choosing.HIGHEST
    needs: str = ''
    skips: bool = False
    alone: bool = False
    reuses: bool = False

    @property
    def name(self) -> str:
        return self.execution.name


_KINDS = (
    PolicyKind(
        Blocking('blocking'),
        'blocking',
        'Waits for the end of the window and then encodes every unit of it anew, at the highest '
        'rates and levels.',
    ),
    PolicyKind(
        Blocking('blocking_cached', cached=True),
        'blocking, cached',
        'Waits for the end of the window and then encodes the units that no window before had, '
        'at the highest rates and levels.',
    ),
    PolicyKind(
        NonBlocking('non_blocking'),
        'non-blocking',
        'Encodes units as they come, at the highest rates and levels, and decides at the end of '
        'the window from whatever is ready.',
    ),
    PolicyKind(
        NonBlocking('imputation', imputes=True),
        'imputation',
        'As non-blocking, but where the newest picture is not ready a trained generator makes up '
        'its detections.',
        needs='imputation',
    ),
    PolicyKind(
        Blocking('modality_gating', cached=True, first=RADAR),
        'modality gating',
        "As blocking with cached units, but the radar's are encoded first, and a trained gate "
        'lowers the rate of the camera where more pictures would change nothing for the better.',
        Choosing.PLUGIN,
        needs='modality_gating',
    ),
    PolicyKind(
        Blocking('model_selection', cached=True),
        'model selection',
        'As blocking with cached units, but a trained selector chooses the level by what is seen.',
        Choosing.PLUGIN,
        needs='model_selection',
    ),
    PolicyKind(
        Pipelined('pipelined_max'),
        'pipelined, max',
        'Encodes units as they come and decides when all of the window are encoded, at the '
        'highest rates and levels.',
    ),
    PolicyKind(
        Pipelined('pipelined_min'),
        'pipelined, min',
        'Encodes units as they come and decides when all of the window are encoded, at the '
        'lowest rates and levels.',
        Choosing.LOWEST,
    ),
    PolicyKind(
        Pipelined('ours'),
        'ours',
        'The pipeline with the optimiser, calibrated in flight, and with skipping where the '
        'bundle brings a gate.',
        Choosing.OPTIMISER,
        skips=True,
        reuses=True,
    ),
    PolicyKind(
        Pipelined('ours_without_reuse'),
        'no reuse',
        'Ours with an optimiser that encodes every picture that it takes.',
        Choosing.OPTIMISER,
        skips=True,
    ),
    PolicyKind(
        Pipelined('ours_without_optimiser'),
        'no optimiser',
        "Ours at the highest rates and the bundle's default level, whatever the machine can do.",
        Choosing.DEFAULT,
        skips=True,
    ),
    PolicyKind(
        Pipelined('ours_without_calibration'),
        'no calibration',
        'Ours with an optimiser that believes the device profile for ever.',
        Choosing.PROFILE,
        skips=True,
        reuses=True,
    ),
    PolicyKind(
        Pipelined('ours_without_skipping'),
        'no skipping',
        'Ours without a gate: every window is decided in full.',
        Choosing.OPTIMISER,
        reuses=True,
    ),
    PolicyKind(
        Blocking('ours_without_pipelining', cached=True),
        'no pipelining',
        'Blocking with cached units in the configurations that the optimiser chooses.',
        Choosing.OPTIMISER,
    ),
    PolicyKind(
        Pipelined('ours_without_aggregation'),
        'no aggregation',
        "Ours with the bundle's fusion networks, which get the newest unit of each sensor alone.",
        Choosing.OPTIMISER,
        skips=True,
        alone=True,
        reuses=True,
    ),
)

POLICIES: Mapping[str, PolicyKind] = MappingProxyType({kind.name: kind for kind in _KINDS})


def policy_named(name: str) -> PolicyKind:
    """Return a policy by its name.

    :raises EvaluationError: if there is none, naming the nearest
    """
    if name not in POLICIES:
        near = difflib.get_close_matches(name, POLICIES, n=1, cutoff=0.0)[0]
        raise EvaluationError(
            f'there is no policy {shown(name)}; the nearest is {near!r}, there are '
            f'{", ".join(POLICIES)}'
        )
    return POLICIES[name]
