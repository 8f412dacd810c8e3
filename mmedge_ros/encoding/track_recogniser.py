"""Recognises tracked objects in the last pictures of the camera's encoder."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from mmedge_ros.core.data_types import Box, Decision, LabelSource, Novelty, TrackLabel
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.bricks import (
    RECOGNISER,
    BrickStatus,
    Loading,
    RunTime,
    measured_loading,
)
from mmedge_ros.encoding.bundle.manifest import joint_precision
from mmedge_ros.encoding.bundle.model_bundle import is_bundle
from mmedge_ros.encoding.classifier_description import ClassifierDescription, describe_classifier
from mmedge_ros.encoding.crops import as_input, crop_input
from mmedge_ros.encoding.detector import Image
from mmedge_ros.encoding.recent_pictures import RecentPictures
from mmedge_ros.encoding.tapped_classifier import MemorisedClassifier, open_classifier
from mmedge_ros.encoding.track_recognition import (
    NamedLook,
    RecogniserParameters,
    TrackRecognition,
    recalled_shares,
)


@dataclass(frozen=True)
class Recognised:
    """What was recognised in one decision; ``looks`` counts the tracks that were looked at."""

    labels: tuple[TrackLabel, ...] = ()
    novelties: tuple[Novelty, ...] = ()
    problems: tuple[str, ...] = ()
    looks: int = 0


class TrackRecogniser:
    """Looks at the tracks of decisions; belongs to the thread of the camera's encoder."""

    def __init__(
        self,
        classifier: MemorisedClassifier,
        description: ClassifierDescription,
        parameters: RecogniserParameters | None = None,
        loading: Loading | None = None,
    ) -> None:
        p = parameters or RecogniserParameters()
        self._loading = loading or Loading()
        self._run_time = RunTime()
        self.classifier = classifier
        self.pictures = RecentPictures()
        self.recognition = TrackRecognition(description.classes, description.labels, p.tracks)
        self._description = description

    def recognise(self, decision: Decision) -> Recognised:
        """Look at the tracks of a decision that are due; return what is known of all."""
        recognition, now_ns = self.recognition, decision.state_ns
        sources: dict[int, LabelSource] = {}
        problems = []
        for track in recognition.due(decision.tracks, now_ns):
            found = self.pictures.find(track)
            if found is None:
                continue
            try:
                look = self._look(found.picture.image, found.box)
            except EncodingError as err:
                problems.append(str(err))
                continue
            recognition.looked(track, look, now_ns)
            sources[track.id] = look.source
        labels = recognition.labels(decision.tracks, sources, now_ns)
        new = recognition.novelties(decision.tracks, labels, now_ns, decision.frame_id)
        marked = {novelty.track_id for novelty in new}
        if marked:
            labels = [
                replace(label, is_novel=True) if label.track_id in marked else label
                for label in labels
            ]
        return Recognised(tuple(labels), tuple(new), tuple(problems), len(sources))

    def warm_up(self) -> None:
        """Run once on an empty crop; the semantic memory learns nothing from it."""
        form = self._description.form
        empty = np.zeros((form.size[1], form.size[0], 3), np.uint8)
        self.classifier.classifier.classify(as_input(empty, form))

    def _look(self, picture: Image, box: Box) -> NamedLook:
        crop = crop_input(picture, box, self._description.form)
        with self._run_time.timed():
            look = self.classifier.look(crop)
        shares = look.shares
        if look.source is LabelSource.MEMORY:
            shares = recalled_shares(look.label, len(self._description.classes))
        values = self._description.attribute_values(look.attributes)
        return NamedLook(shares, values, look.source, look.exit)

    def brick(self) -> BrickStatus:
        """Return what its network does and costs; a run is a look, left early or not."""
        return BrickStatus(
            RECOGNISER,
            precision=joint_precision(self._description.stages),
            state=self._run_time.state,
            load_time=self._loading.seconds,
            run_time=self._run_time.mean,
            memory=self._loading.memory,
        )

    def figures(self) -> dict[str, object]:
        """Return what diagnostics and reports show: shares of labels, exits, and the memory."""
        counts, looks = self.recognition.counts, self.classifier.counts
        memory = self.classifier.memory
        hot = (
            ''
            if memory is None
            else ', '.join(
                name
                for name, is_hot in zip(self._description.classes, memory.hot.hot, strict=True)
                if is_hot
            )
        )
        return {
            'labels_reused': counts.reused,
            'labels_from_memory': counts.memory,
            'labels_in_full': counts.full,
            'labels_waiting': counts.waiting,
            'novelties': counts.novelties,
            'exits': ' '.join(str(count) for count in looks.exits),
            'recognition_saved': f'{looks.saved:.3f}',
            'memory_agreement': '' if memory is None else f'{memory.agreement:.3f}',
            'hot_classes': hot,
        }


def open_track_recogniser(
    model: Path, parameters: RecogniserParameters, threads: int = 1
) -> TrackRecogniser | None:
    """Open what the parameters ask for; None for nothing.

    :param model: the detector
    :raises EncodingError: if there is no recogniser, or it cannot be opened
    """
    if not parameters.model:
        return None
    folder = model if parameters.model == 'bundle' else Path(parameters.model).expanduser()
    description = describe_classifier(folder) if is_bundle(folder) else None
    if description is None:
        raise EncodingError(
            f'{folder} has no recogniser; name a bundle with one (`mmedge lab train recogniser`), '
            'or leave recogniser.model empty'
        )
    with measured_loading() as loading:
        classifier = open_classifier(description, threads, with_memory=parameters.memory)
    return TrackRecogniser(classifier, description, parameters, loading)
