"""Whom the sensors of a hard flight could see at an instant, for the frame that judges."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from mmedge_lab.simulation.camera_faults import CameraFaults
from mmedge_lab.simulation.hardships import Hardships
from mmedge_lab.simulation.radar import RadarSimulator
from mmedge_lab.simulation.world import World
from mmedge_ros.replay.ground_truth import BODY_MIDDLE, TrueObject, TrueScene

_RADAR_RATE = 10.0  # Hz


class Reach:
    """Answers for camera and radar; it draws nothing."""

    def __init__(self, world: World, hard: Hardships) -> None:
        self._world, self._hard = world, hard
        self._faults, radar = CameraFaults(world), RadarSimulator(world)
        self._heard = lru_cache(1)(lambda n: radar.detection_probability(n / _RADAR_RATE))

    def of(self, scene: TrueScene, t: float) -> TrueScene:
        """Return a scene of ``t`` s with its condition and what the sensors could see."""
        rig, hard = self._world.rig, self._hard
        eye = self._world.path.state(t).pose.apply(rig.camera_pose.translation)
        # It costs as much as a scan, and changes as slowly as people walk.
        heard = self._heard(round(_RADAR_RATE * t))

        def is_clear(item: TrueObject) -> bool:
            distance = float(np.linalg.norm(item.position + BODY_MIDDLE - eye))
            return self._faults.clear(t, item.box, distance)

        objects = tuple(
            replace(item, clear=is_clear(item), radar=heard.get(item.id, 0.0))
            for item in scene.objects
        )
        return replace(scene, objects=objects, condition=hard.condition)
