"""What a bundle brings to the pipeline: feature fusion, a gate, scale of noise, usual pictures."""

from __future__ import annotations

import logging
from pathlib import Path

from mmedge_ros.core.data_types import CAMERA
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.bundle.default_model import default_detector
from mmedge_ros.encoding.bundle.model_bundle import ModelBundle, is_bundle, load_bundle
from mmedge_ros.encoding.picture_drift import PictureDrift, read_usual_pictures
from mmedge_ros.pipeline.perception_pipeline import PerceptionPipeline
from mmedge_ros.pipeline.pipeline_parameters import DECISION, FEATURE, PipelineParameters
from mmedge_ros.tracking.noise_scale import USUAL_SCALE, is_fitted, read_noise_scale
from mmedge_ros.tracking.score_calibration import ScoreCalibration
from mmedge_ros.windows.bundle_gate import bundle_gate
from mmedge_ros.windows.early_decision import GatedDecision, Gating
from mmedge_ros.windows.feature_fusion import FeatureFusion, FusionNetworks
from mmedge_ros.windows.fusion_runtime import FusionNetworkRuntime
from mmedge_ros.windows.skip_control import SkipControl

_LOG = logging.getLogger(__name__)


def model_of_encoders(named: str, simulated: bool, parameters: PipelineParameters) -> Path | None:
    """Return the model that encoders of the same settings use; None without a camera.

    :param named: as for `default_detector`, and so is ``simulated``
    :raises EncodingError: if there is none of that name
    """
    if CAMERA not in parameters.modalities:
        return None
    try:
        return default_detector(named, simulated)
    except EncodingError:
        if named:
            raise
        return None  # the encoder of the camera says so


def fusion_strategy(model: Path | None, parameters: PipelineParameters) -> str:
    """Return ``feature`` or ``decision``.

    :param model: what the encoders use, a bundle or a weight file; None where there is none
    :raises EncodingError: if the manifest of a bundle cannot be read, or feature fusion is asked
        for and there is none
    """
    return DECISION if _bundle_with_fusion(model, parameters) is None else FEATURE


def open_pipeline(
    model: Path | None, parameters: PipelineParameters, networks: FusionNetworks | None = None
) -> PerceptionPipeline:
    """Make the pipeline with the strategy of the bundle, its gate, noise scale and usual pictures.

    :param networks: fusion networks of the bundle, if they are open already
    :raises EncodingError: as ``fusion_strategy``, and if networks, noise scale or usual
        pictures cannot be used
    :raises FusionError: if they do not fit this version, or windows overlap too much for them
    :raises SkippingError: if the gate of the bundle cannot be used
    """
    bundle = _bundle_with_fusion(model, parameters)
    fusion = None
    if bundle is not None:
        decoding = parameters.features.decoding(bundle.fusion_threshold)
        if networks is None:
            networks = FusionNetworkRuntime.from_bundle(bundle, parameters.features.threads)
        fusion = FeatureFusion(networks, decoding)
        fusion.warm_up()
    noise_scale, usual = USUAL_SCALE, None
    if model is not None and is_bundle(model):
        noise_scale, usual = read_noise_scale(model), read_usual_pictures(model)
    drift = None if usual is None else PictureDrift(usual)
    gating = _gating_of(model, parameters, DECISION if fusion is None else FEATURE)
    if gating is None:
        # The tracker's thresholds were set with the scores of bundles whose errors were fitted.
        scores = ScoreCalibration() if model is not None and not is_fitted(model) else None
        return PerceptionPipeline(
            parameters, fusion, noise_scale=noise_scale, drift=drift, scores=scores
        )
    return gated_pipeline(gating, parameters, fusion, noise_scale=noise_scale, drift=drift)


def gated_pipeline(
    gating: Gating,
    parameters: PipelineParameters | None = None,
    fusion: FeatureFusion | None = None,
    noise_scale: float = 1.0,
    drift: PictureDrift | None = None,
) -> PerceptionPipeline:
    """Make a pipeline whose gate decides some windows before they end."""
    p = parameters or PipelineParameters()
    high_score = p.tracking(fusion is not None).high_score
    early = GatedDecision(gating, high_score, p.windows.window)
    return PerceptionPipeline(
        p,
        fusion,
        early_decision=early,
        noise_scale=noise_scale,
        drift=drift,
    )


def _gating_of(model: Path | None, parameters: PipelineParameters, strategy: str) -> Gating | None:
    """Return the gate of a bundle with its rules, if it was certified for what is to be flown."""
    skipping, windows = parameters.skipping, parameters.windows
    if skipping.delta <= 0.0 or model is None or CAMERA not in parameters.modalities:
        return None
    gate = bundle_gate(model) if is_bundle(model) else None
    if gate is None:
        return None
    certified = gate.certified(skipping.delta)
    if gate.strategy != strategy:
        reason = f'it was trained with {gate.strategy} fusion, and this is {strategy} fusion'
    elif certified is None:
        reason = f'no threshold is certified for skipping.delta {skipping.delta:g}'
    else:
        control = SkipControl(
            skipping,
            certified.threshold,
            windows.window,
            windows.stride,
            gate.slow,
            usual_loss=certified.early_loss,
        )
        return Gating(gate.gate, control, parameters.scene_change)
    _LOG.warning('the gate of %s is not used, no sensor rests: %s', model, reason)
    return None


def _bundle_with_fusion(model: Path | None, parameters: PipelineParameters) -> ModelBundle | None:
    """Return the bundle if its fusion networks are to be used."""
    if parameters.strategy == DECISION:
        return None
    bundle = None
    if model is not None and is_bundle(model) and CAMERA in parameters.modalities:
        bundle = load_bundle(model)
    if bundle is not None and bundle.has_fusion:
        return bundle
    if parameters.strategy == FEATURE:
        raise EncodingError(
            f'strategy is {FEATURE}, but {_named(model, parameters)}; use a bundle with a fusion '
            f'section, or strategy: {DECISION}'
        )
    return None


def _named(model: Path | None, parameters: PipelineParameters) -> str:
    if CAMERA not in parameters.modalities:
        return 'there is no camera'
    return f'{model} has no networks for it' if model is not None else 'there is no model bundle'
