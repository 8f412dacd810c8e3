"""Trains the gate that lets the camera rest, certifies it, and puts it into a copy of a bundle.

A decision made early changes what comes next, so samples are not collected from flights in
which nothing was skipped, but from flights in which early decisions were made at random. There
each moment counts, also those that were rejected: what would have been decided then is known.
Other flights certify thresholds, in closed loop.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.judging.bench import flight_subject
from mmedge_lab.judging.bundle_under_test import NOMINAL, BundleUnderTest, open_bundle
from mmedge_lab.judging.encoded_flight import encode_flight, load_flight
from mmedge_lab.training import Report, TrainingError, part_of
from mmedge_lab.training.bundle_files import enter_section, file_entry, new_bundle, require_free
from mmedge_lab.training.certificate import FEWEST_SEEDS, Certificate, FlightLoss, by_seed, certify
from mmedge_lab.training.checkpoint import work_beside
from mmedge_lab.training.dense_training import (
    DenseFit,
    DenseSettings,
    fit_network,
    log_odds,
    yes_or_no,
)
from mmedge_lab.training.flight_works import Arrays, FlightArrays, FlightBeginning
from mmedge_lab.training.gate_loop import AtRandom, FlightLoop, JudgedMoment, LoopSettings
from mmedge_lab.worker_processes import OnShare
from mmedge_ros.core.data_types import (
    CAMERA,
    RADAR,
    Configuration,
    FloatArray,
    ModalityConfiguration,
)
from mmedge_ros.pipeline.fusion_strategy import open_pipeline
from mmedge_ros.pipeline.pipeline_parameters import DECISION, FEATURE, PipelineParameters
from mmedge_ros.windows.audits import AuditParameters
from mmedge_ros.windows.bundle_gate import NETWORK, SECTION, WEIGHTS
from mmedge_ros.windows.feature_fusion import FeatureFusion
from mmedge_ros.windows.gate import Gate, gate_bytes
from mmedge_ros.windows.gate_features import FIELDS
from mmedge_ros.windows.skip_control import SkipParameters

# From hardly ever to nearly always: the pattern of skips should look like any gate's.
SHARES = (0.05, 0.15, 0.4)
# Evenly spaced logits from 0.88 to 0.38, 0.5 among them. More careful ones save next to nothing.
THRESHOLDS: tuple[float, ...] = tuple(
    float(1.0 / (1.0 + np.exp(-logit))) for logit in np.linspace(2.0, -0.5, 6)
)
# Losses that are certified beside the wanted one.
DELTAS = (0.005, 0.01, 0.02)
SAMPLES, CALIBRATION = 'samples', 'calibration'
_CAMERA_RATE, _RADAR_RATE = 30.0, 20.0
# Audits compare with the usual loss, which is never nothing.
_LEAST_LOSS = 1e-3
# Share of the progress shown.
_SAMPLED = 0.4
# How the gate is trained.
SETTINGS = DenseSettings(dropout=0.2, epochs=150)


class GateSamples(NamedTuple):
    """Gate features (N, F), what of the reference's decision was kept (N,), and the flight (N,).

    ``flights`` are numbers; samples of one flight belong together.
    """

    features: FloatArray
    kept: FloatArray
    flights: NDArray[np.int64]


def collect_samples(
    loop: FlightLoop, number: int, shares: Sequence[float] = SHARES, seed: int = 0
) -> GateSamples:
    """Replay a flight with gates that decide early at random.

    :raises ReplayError: if it is not encoded with the levels of the configuration
    """
    moments: list[JudgedMoment] = []
    for place, share in enumerate(shares):
        run = loop.gated(AtRandom(share, seed + place), 0.5, moments=True)
        moments += loop.reference.judged(run)
    return GateSamples(
        np.array([moment.features.vector() for moment in moments]).reshape(-1, len(FIELDS)),
        np.array([1.0 - moment.loss for moment in moments]),
        np.full(len(moments), number, np.int64),
    )


def train_gate(samples: GateSamples, settings: DenseSettings = SETTINGS) -> tuple[Gate, DenseFit]:
    """Train a gate; the same samples and settings give the same gate.

    Flights are held out as a whole, and training stops where it was best for them.

    :raises TrainingError: for too few samples or flights, or if all answers are the same
    """
    kept = samples.kept
    if len(kept) and kept.min() == kept.max():
        raise TrainingError(
            'all early decisions turned out the same way, there is nothing to learn; replay '
            'flights with more happening in them'
        )
    fit = fit_network(
        samples.features,
        samples.flights,
        yes_or_no(kept),
        lambda rows: np.array([log_odds(kept[rows], 1e-3)]),
        settings,
    )
    n = fit.network
    return Gate(
        n.mean, n.scale, n.weights1, n.bias1, n.weights2[:, 0], float(np.ravel(n.bias2)[0])
    ), fit


class GateSetting(NamedTuple):
    """What flies with a gate: a bundle, decision or feature fusion, and a configuration.

    Losses are measured in the first ``seconds`` of a flight; 0 for all of it.
    """

    bundle: BundleUnderTest
    strategy: str
    configuration: Configuration
    seconds: float = 0.0


def open_loop(flight: Path, setting: GateSetting) -> FlightLoop:
    """Read a flight and encode it; audits would only disturb what is measured.

    :raises ReplayError: if it cannot be read
    :raises EncodingError: if the bundle cannot be used, or has no networks for the strategy
    """
    bundle, configuration = setting.bundle, setting.configuration
    wanted = {part.modality: [part.level] for part in configuration.modalities}
    with FlightBeginning(flight, setting.seconds) as recording:
        encoded = load_flight(recording, PipelineParameters())
        encode_flight(encoded, recording, bundle.encoders(), wanted)
    skipping = SkipParameters(audits=AuditParameters(share=0.0))
    parameters = PipelineParameters(strategy=setting.strategy, skipping=skipping)
    settings = LoopSettings(configuration, bundle.profile, parameters)
    if setting.strategy == FEATURE:
        # The networks are opened once; a gate that is there already plays no part.
        networks = bundle.networks()
        ungated = replace(parameters, skipping=SkipParameters(delta=0.0))

        def make() -> FeatureFusion | None:
            return open_pipeline(bundle.folder, ungated, networks).feature_fusion

        settings = replace(settings, make_fusion=make)
    return FlightLoop(encoded, settings)


def collect(setting: GateSetting, path: Path, number: int, _: OnShare) -> Arrays:
    """Collect the samples of a flight, see `GateSamples`."""
    loop = open_loop(path, setting._replace(seconds=0.0))
    return collect_samples(loop, number, seed=100 * number)._asdict()


def try_gate(
    gate: Gate, setting: GateSetting, path: Path, _: int, on_share: OnShare
) -> dict[str, np.ndarray]:
    """Replay a flight in closed loop with each of `THRESHOLDS`; of each a `FlightLoss`."""
    loop, losses = open_loop(path, setting), []
    for place, threshold in enumerate(THRESHOLDS):
        losses.append(loop.reference.loss(loop.gated(gate, threshold)))
        on_share((place + 1) / len(THRESHOLDS))
    return {'losses': np.array(losses, np.float64)}


def build_gate(
    setting: GateSetting,
    samples: Sequence[Path],
    calibration: Sequence[Path],
    out: Path,
    delta: float,
    confidence: float,
    seed: int,
    jobs: int,
    report: Report,
) -> list[Certificate]:
    """Train a gate, certify it and, where the wanted loss is certified, write the bundle.

    What was replayed before is kept in a folder beside the bundle until that is written.

    :param samples: flights to learn from
    :param calibration: flights that certify
    :param out: the new bundle, a copy of that of ``setting``
    :param delta: the loss that must be certified for a gate to be written at all
    :param seed: of the training
    :param jobs: processes to use; 0 for one per processor
    :return: what is certified of each loss, the wanted one among them
    :raises TrainingError: if it cannot be done with these flights
    :raises EncodingError: if the bundle cannot be used
    """
    require_free(out)
    bundle, strategy = setting.bundle, setting.strategy
    sets = {SAMPLES: samples, CALIBRATION: calibration}
    made_from = f'{bundle.digest} {strategy} {setting.configuration} {FIELDS}'
    replayed = FlightArrays(work_beside(out), made_from, sets, jobs)
    seeds = [flight_subject(flight).seed for flight in calibration]
    if len(set(seeds)) < FEWEST_SEEDS:
        raise TrainingError(
            f'the flights to certify with are of {len(set(seeds))} seeds; fewer than '
            f'{FEWEST_SEEDS} certify nothing'
        )
    made = replayed.of(SAMPLES, partial(collect, setting), part_of(report, 0.0, _SAMPLED))
    gate, fit = train_gate(
        joined([GateSamples(**arrays) for arrays in made.values()]), SETTINGS._replace(seed=seed)
    )
    digest = hashlib.sha256(gate_bytes(gate)).hexdigest()[:12]
    rest = part_of(report, _SAMPLED, 1.0)
    kind = f'{digest}.{setting.seconds:g}'
    tried = replayed.of(CALIBRATION, partial(try_gate, gate, setting), rest, 'certifying', kind)
    flights = [
        [FlightLoss(*row) for row in arrays['losses'].tolist()] for arrays in tried.values()
    ]
    losses = [by_seed(row, seeds) for row in zip(*flights, strict=True)]
    certificates = [certify(THRESHOLDS, losses, of, confidence) for of in sorted({*DELTAS, delta})]
    if any(c.holds and c.delta <= delta for c in certificates):
        facts = {
            'camera_level': setting.configuration.of(CAMERA).level,
            'training': fit.facts(),
        }
        with new_bundle(out, bundle.folder) as copy:
            write_bundle_gate(copy, gate, strategy, [CAMERA], certificates, facts)
        replayed.remove()
    return certificates


def joined(parts: Sequence[GateSamples]) -> GateSamples:
    """Put samples of flights together."""
    return GateSamples(*map(np.concatenate, zip(*parts, strict=True)))


def gate_setting(bundle: Path, level: str, strategy: str, seconds: float = 0.0) -> GateSetting:
    """Return what a gate is made for: full rates, and the radar's best level.

    :param level: of the camera, '' for one model that serves every level
    :param strategy: decision or feature, '' for what the bundle does
    :param seconds: how much of each flight certifies, 0 for all
    :raises TrainingError: if the bundle lacks the level or the networks
    :raises EncodingError: if it cannot be used
    """
    opened = open_bundle(bundle, NOMINAL)
    strategy = strategy or (FEATURE if opened.has_fusion else DECISION)
    encoders = opened.encoders()
    known, scans = encoders[CAMERA].levels, encoders[RADAR].levels
    if known and level not in known:
        raise TrainingError(f'{bundle} has no level {level!r}; choose {", ".join(known)}')
    if strategy == FEATURE and not opened.has_fusion:
        raise TrainingError(f'{bundle} has no fusion networks; use --strategy {DECISION}')
    camera = ModalityConfiguration(CAMERA, _CAMERA_RATE, level)
    radar = ModalityConfiguration(RADAR, _RADAR_RATE, scans[-1] if scans else '')
    return GateSetting(opened, strategy, Configuration(1, 0, (camera, radar)), seconds)


def write_bundle_gate(
    folder: Path,
    gate: Gate,
    strategy: str,
    slow: Sequence[str],
    certificates: Sequence[Certificate],
    facts: Mapping[str, Any] | None = None,
) -> None:
    """Write a gate and what is certified of it into a bundle; an earlier one is replaced.

    :param facts: what else is known of it, plain values
    :raises OSError: if it cannot be written
    """
    (folder / WEIGHTS).write_bytes(gate_bytes(gate))
    section = {
        NETWORK: file_entry(folder / WEIGHTS),
        'strategy': strategy,
        'slow': list(slow),
        'thresholds': [
            {
                'delta': certificate.delta,
                'threshold': round(certificate.threshold, 6),
                'confidence': certificate.confidence,
                'seeds': certificate.seeds,
                **_lost(certificate.total),
            }
            for certificate in sorted(certificates, key=lambda c: c.delta)
            if certificate.holds
        ],
        **(facts or {}),
    }
    enter_section(folder, SECTION, section)


def _lost(total: FlightLoss) -> dict[str, float]:
    return {
        'early': int(total.early),
        'iou_loss': round(total.iou / max(total.people, 1), 5),
        'miss_loss': round(total.missed / max(total.held, 1), 5),
        'early_loss': max(round(total.early_lost / max(total.early, 1), 5), _LEAST_LOSS),
        'saved': round(total.saved / max(total.encodes, 1), 5),
    }
