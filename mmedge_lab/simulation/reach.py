"""Whom the sensors of a hard flight could see at an instant, for the frame that judges."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mmedge_lab.simulation.camera_faults import CameraFaults
from mmedge_lab.simulation.hardships import Hardships, within
from mmedge_lab.simulation.world import World
from mmedge_ros.replay.ground_truth import BODY_MIDDLE, TrueObject, TrueScene


class Reach:
    """Answers for camera and radar; it draws nothing."""

    def __init__(self, world: World, hard: Hardships) -> None:
        self._world, self._hard = world, hard
        self._faults, self._radar = CameraFaults(world), _RadarSimulator(world)

    def of(self, scene: TrueScene, t: float) -> TrueScene:
        """Return a scene of ``t`` s with its condition and what the sensors could see."""
        rig, hard = self._world.rig, self._hard
        eye = self._world.path.state(t).pose.apply(rig.camera_pose.translation)
        heard = {} if within(hard.radar_silent, t) else self._radar.detection_probability(t)

        def is_clear(item: TrueObject) -> bool:
            distance = float(np.linalg.norm(item.position + BODY_MIDDLE - eye))
            return self._faults.clear(t, item.box, distance)

        objects = tuple(
            replace(item, clear=is_clear(item), radar=heard.get(item.id, 0.0))
            for item in scene.objects
        )
        return replace(scene, objects=objects, condition=hard.condition)


class _RadarSimulator:
    """What the radar returns, by distance alone."""

    def __init__(self, world: World) -> None:
        self._world = world

    def detection_probability(self, t: float) -> dict[int, float]:
        """Return the probability of each mover that one scan returns it."""
        pose = self._world.path.state(t).pose.compose(self._world.rig.radar_pose).inverse()
        places = {m.id: pose.apply(m.state(t).position) for m in self._world.movers}
        return {
            number: float(place[0] > abs(place[1]) and np.hypot(*place[:2]) < 18.0)
            for number, place in places.items()
        }
