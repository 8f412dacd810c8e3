"""Declares a parameter dataclass on a node and reads it back, checked."""

from __future__ import annotations

from typing import Any, TypeVar

from rcl_interfaces.msg import (
    FloatingPointRange,
    IntegerRange,
    ParameterDescriptor,
)
from rclpy.node import Node

from mmedge_ros.parameter import Parameter, ParameterError, build, declared, unknown_name_message

_T = TypeVar('_T')

# What rclpy itself declares or takes beside ours.
_FOREIGN = ('use_sim_time', 'start_type_description_service', 'qos_overrides.')
_HIGHEST_INT = 2**63 - 1


def declare(node: Node, kind: type[_T]) -> _T:
    """Declare every field of ``kind`` (read-only: they shape objects built once) and read them.

    :raises ParameterError: for an unknown name, a wrong type or a value outside its bounds
    """
    items = declared(kind)
    _refuse_unknown(node, [item.name for item in items])
    values: dict[str, Any] = {}
    for item in items:
        values[item.name] = _declare_one(node, item)
    return build(kind, values)


def _refuse_unknown(node: Node, names: list[str]) -> None:
    """A misspelt key in a YAML file must not be ignored in silence, as rclpy would."""
    # rclpy has no public way to list overrides of undeclared parameters.
    for name in getattr(node, '_parameter_overrides', {}):
        if name not in names and not name.startswith(_FOREIGN):
            raise ParameterError(unknown_name_message(name, names))


def _declare_one(node: Node, item: Parameter) -> Any:
    # An empty list has no element to tell its type by; ROS takes '' for it.
    is_list = isinstance(item.default, tuple)
    default = (list(item.default) or ['']) if is_list else item.default
    overrides = getattr(node, '_parameter_overrides', {})
    given = overrides.get(item.name)
    descriptor = descriptor_of(item)
    if given is not None and isinstance(item.default, float) and isinstance(given.value, int):
        # YAML writes 1 for 1.0.
        default = float(given.value)
        node.declare_parameter(item.name, default, descriptor, ignore_override=True)
        return default
    try:
        value = node.declare_parameter(item.name, default, descriptor).value
    except Exception as err:  # rclpy raises several unrelated classes for a bad override
        shown = given.value if given is not None else default
        raise ParameterError(f'parameter {item.name!r} cannot be {shown!r}: {err}') from err
    return tuple(v for v in value if v != '') if is_list else value


def descriptor_of(item: Parameter) -> ParameterDescriptor:
    """Make the ROS descriptor: description, unit and range."""
    bounds = item.bounds
    unit = f' [{bounds.unit}]' if bounds.unit else ''
    descriptor = ParameterDescriptor(
        name=item.name, description=bounds.description + unit, read_only=True
    )
    if bounds.choices:
        descriptor.additional_constraints = 'one of: ' + ', '.join(bounds.choices)
    if bounds.minimum is None and bounds.maximum is None:
        return descriptor
    if isinstance(item.default, float):
        low = float('-inf') if bounds.minimum is None else float(bounds.minimum)
        high = float('inf') if bounds.maximum is None else float(bounds.maximum)
        descriptor.floating_point_range = [FloatingPointRange(from_value=low, to_value=high)]
    elif isinstance(item.default, int):
        low = -_HIGHEST_INT if bounds.minimum is None else int(bounds.minimum)
        high = _HIGHEST_INT if bounds.maximum is None else int(bounds.maximum)
        descriptor.integer_range = [IntegerRange(from_value=low, to_value=high)]
    return descriptor
