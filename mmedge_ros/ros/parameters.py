"""Declares a parameter dataclass on a node and reads it back, checked."""

from __future__ import annotations

from typing import Any, TypeVar

from rcl_interfaces.msg import (
    FloatingPointRange,
    IntegerRange,
    ParameterDescriptor,
    SetParametersResult,
)
from rclpy.node import Node
from rclpy.parameter import Parameter as RosParameter

from mmedge_ros.core.parameter import Parameter, build, declared

_T = TypeVar('_T')

# What rclpy itself declares or takes beside ours.
_FOREIGN = ('use_sim_time', 'start_type_description_service')
_FOREIGN_PREFIX = 'qos_overrides.'
_HIGHEST_INT = 2**63 - 1


def declare(node: Node, kind: type[_T]) -> _T:
    """Declare every field of ``kind`` (read-only: they shape objects built once) and read them.

    :raises ParameterError: for an unknown name (rclpy would ignore a misspelt key in a YAML
        file in silence), a wrong type or a value outside its bounds
    """
    items = {item.name: item for item in declared(kind)}
    given = {name: _core_value(items.get(name), value) for name, value in _overrides(node).items()}
    values = build(kind, given)
    for item in items.values():
        value = given.get(item.name, item.default)
        # Checked above, and better than rclpy would: its own look at the overrides is left out.
        node.declare_parameter(
            item.name, _ros_value(value), descriptor_of(item), ignore_override=True
        )
    node.add_on_set_parameters_callback(_same_clock)
    return values


def is_overridden(node: Node, name: str) -> bool:
    """Return whether a parameter was given from outside, be it declared or not."""
    return name in getattr(node, '_parameter_overrides', {})


def _same_clock(changes: list[RosParameter]) -> SetParametersResult:
    """Refuse another clock in flight: what was received by the one has no time on the other."""
    if any(change.name == 'use_sim_time' for change in changes):
        reason = 'the clock cannot be changed in flight; start the node with use_sim_time'
        return SetParametersResult(successful=False, reason=reason)
    return SetParametersResult(successful=True)


def _overrides(node: Node) -> dict[str, Any]:
    """Return what was given for the node from outside, without what belongs to rclpy."""
    # rclpy has no public way to list overrides of undeclared parameters.
    overrides = getattr(node, '_parameter_overrides', {})
    return {
        name: parameter.value
        for name, parameter in overrides.items()
        if name not in _FOREIGN and not name.startswith(_FOREIGN_PREFIX)
    }


def _core_value(item: Parameter | None, value: Any) -> Any:
    if item is None or isinstance(value, bool):
        return value
    if isinstance(item.default, float) and isinstance(value, int):
        return float(value)  # YAML writes 1 for 1.0
    if isinstance(item.default, tuple) and not isinstance(value, str):
        # A list without elements has no type in ROS: [''] stands for it, and [] arrives as None.
        return tuple(v for v in value or () if v != '')
    return value


def _ros_value(value: Any) -> Any:
    return (list(value) or ['']) if isinstance(value, tuple) else value


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
