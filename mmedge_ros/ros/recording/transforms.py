"""Static transforms that a graph knows from its parameters, as a recording has them.

Written with rosbags, because the pip packages of ROS have no tf2_msgs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rosbags.typesys import Stores, get_typestore

from mmedge_ros.geometry.transforms import parse_static_transform, quaternion_from_rotation


def transforms_message(texts: Sequence[str]) -> bytes:
    """Serialise a TFMessage of transforms "parent child x y z qx qy qz qw"; empty for none.

    :raises GeometryError: for a text that is no transform
    """
    if not texts:
        return b''
    store = get_typestore(Stores.ROS2_KILTED)
    kinds = store.types
    time = kinds['builtin_interfaces/msg/Time'](sec=0, nanosec=0)
    edges = []
    for text in texts:
        edge = parse_static_transform(text)
        x, y, z = (float(v) for v in edge.translation)
        qx, qy, qz, qw = quaternion_from_rotation(edge.rotation)
        edges.append(
            kinds['geometry_msgs/msg/TransformStamped'](
                header=kinds['std_msgs/msg/Header'](stamp=time, frame_id=edge.parent),
                child_frame_id=edge.child,
                transform=kinds['geometry_msgs/msg/Transform'](
                    translation=kinds['geometry_msgs/msg/Vector3'](x=x, y=y, z=z),
                    rotation=kinds['geometry_msgs/msg/Quaternion'](x=qx, y=qy, z=qz, w=qw),
                ),
            )
        )
    message = kinds['tf2_msgs/msg/TFMessage'](transforms=edges)
    return np.asarray(store.serialize_cdr(message, 'tf2_msgs/msg/TFMessage')).tobytes()
