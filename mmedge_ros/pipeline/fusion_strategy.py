"""Which strategy fuses the sensors: learned feature fusion where the bundle has it."""

from __future__ import annotations

from pathlib import Path

from mmedge_ros.aggregation.fusion_runtime import FusionNetworkRuntime
from mmedge_ros.data_types import CAMERA
from mmedge_ros.encoding.default_model import default_detector
from mmedge_ros.encoding.detector import EncodingError
from mmedge_ros.encoding.model_bundle import ModelBundle, is_bundle, load_bundle
from mmedge_ros.fusion.feature_fusion import FeatureFusion, FusionNetworks
from mmedge_ros.pipeline.perception_pipeline import (
    DECISION,
    FEATURE,
    PerceptionPipeline,
    PipelineParameters,
)


def model_of_encoders(named: str, simulated: bool, parameters: PipelineParameters) -> Path | None:
    """Return the model that encoders of the same settings use; None where it does not matter.

    :param named: as for `default_detector`, and so is ``simulated``
    :raises EncodingError: if there is none of that name
    """
    if parameters.strategy == DECISION or CAMERA not in parameters.modalities:
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
    """Make the pipeline with the strategy of the bundle.

    :param networks: fusion networks of the bundle, if they are open already
    :raises EncodingError: as ``fusion_strategy``, and if the fusion networks cannot be used
    :raises FusionError: if they do not fit this version, or windows overlap too much for them
    """
    bundle = _bundle_with_fusion(model, parameters)
    if bundle is None:
        return PerceptionPipeline(parameters)
    decoding = parameters.features.decoding(bundle.fusion_threshold)
    if networks is None:
        networks = FusionNetworkRuntime.from_bundle(bundle, parameters.features.threads)
    fusion = FeatureFusion(networks, decoding)
    fusion.warm_up()
    return PerceptionPipeline(parameters, fusion)


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
