"""Reads the nodes' parameter files, so that an offline replay obeys the same ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from mmedge_ros.core.parameter import ParameterError, build
from mmedge_ros.core.untrusted_files import PlainYamlError, load_plain_yaml
from mmedge_ros.encoding.detector import DetectorParameters
from mmedge_ros.encoding.track_recognition import RecogniserParameters
from mmedge_ros.pipeline.pipeline_parameters import PipelineParameters
from mmedge_ros.replay.offline_session import OfflineOptions
from mmedge_ros.sensing.radar.filter import RadarLimits

_MAX_BYTES = 1_000_000
_Part = TypeVar('_Part')

# Which node's parameters shape which part of an offline replay.
_PIPELINE = ('fusion', 'pipeline.')
_DETECTION = ('camera_encoder', 'detection.')
_LIMITS = ('radar_encoder', 'limits.')
_RECOGNISER = ('camera_encoder', 'recogniser.')
_ALL = (_PIPELINE, _DETECTION, _LIMITS, _RECOGNISER)


def with_parameter_file(options: OfflineOptions, path: Path) -> OfflineOptions:
    """Apply a ROS parameter file (node: ros__parameters: ...) to an offline replay.

    Parameters of nodes that an offline replay does not have are left to those nodes.

    :raises ParameterError: for a file that is none, an unknown name or a value out of bounds
    """
    nodes = _read(path)
    try:
        parts = [_part(nodes, *names) for names in _ALL]
        if not any(parts):
            known = ', '.join(f'{node}: {prefix}*' for node, prefix in _ALL)
            raise ParameterError(f'nothing in it concerns an offline replay, which has {known}')
        return replace(
            options,
            pipeline=build(PipelineParameters, parts[0]),
            detection=build(DetectorParameters, parts[1]),
            limits=build(RadarLimits, parts[2]),
            recogniser=build(
                RecogniserParameters, {'model': options.recogniser.model, **parts[3]}
            ),
        )
    except ParameterError as err:
        raise ParameterError(f'{path}: {err}') from err


def pipeline_parameters(path: Path | None) -> PipelineParameters:
    """Return what the fusion node of a live graph makes of a parameter file, if there is one.

    :raises ParameterError: as ``with_parameter_file``; but a file may also be for other nodes
    """
    return _built(PipelineParameters, _PIPELINE, path)


def detector_parameters(path: Path | None) -> DetectorParameters:
    """Return the same of the camera's encoder; errors as for ``pipeline_parameters``."""
    return _built(DetectorParameters, _DETECTION, path)


def _built(kind: type[_Part], names: tuple[str, str], path: Path | None) -> _Part:
    if path is None:
        return kind()
    nodes = _read(path)
    try:
        return build(kind, _part(nodes, *names))
    except ParameterError as err:
        raise ParameterError(f'{path}: {err}') from err


def _read(path: Path) -> Mapping[Any, Any]:
    try:
        return load_plain_yaml(path, _MAX_BYTES)
    except PlainYamlError as err:
        raise ParameterError(f'cannot read the parameter file {err}') from err


def _part(nodes: Mapping[Any, Any], node: str, prefix: str) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key in ('/**', f'/**/{node}', node, f'/{node}'):
        if key in nodes:
            values.update(_flatten(_parameters_of(nodes[key], key), ''))
    return {k.removeprefix(prefix): v for k, v in values.items() if k.startswith(prefix)}


def _parameters_of(entry: Any, node: str) -> Mapping[Any, Any]:
    parameters = entry.get('ros__parameters') if isinstance(entry, dict) else None
    if not isinstance(parameters, dict):
        raise ParameterError(f'{node!r} must hold "ros__parameters:" with names and values below')
    return parameters


def _flatten(values: Mapping[Any, Any], prefix: str) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, dict):
            flat.update(_flatten(value, f'{prefix}{key}.'))
        else:
            flat[f'{prefix}{key}'] = value
    return flat
