"""Questions are answered while the graph runs: as goals of an action, and as plain text."""

from __future__ import annotations

import math
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from action_msgs.msg import GoalStatus
from fake_model_server import DONE, STREAM, Scripts, answered, listening, short_folder
from hand_made_sights import sighted, standing
from live_graph import Bystander
from rclpy.action import ActionClient
from std_msgs.msg import String

from mmedge_ros import action, msg
from mmedge_ros.core.data_types import CAMERA, NS_PER_S, Decision
from mmedge_ros.ros.graph.description import NodeDescription
from mmedge_ros.ros.graph.process_group import ProcessGroup
from mmedge_ros.ros.messages import names, qos
from mmedge_ros.ros.messages.conversions import from_time, to_track_array

# As many decisions as a queue holds.
SECONDS = 2.0
PEOPLE = 'how many people were seen?'
TOTAL = 20.0


class Result(NamedTuple):
    """The end of a goal, and the phases on its way."""

    status: int
    answer: Any
    phases: list[str]


class Asker:
    """A client of the questions node, which it shows two people who walk for two seconds."""

    def __init__(self, bystander: Bystander) -> None:
        self._bystander = bystander
        self._client = ActionClient(bystander.node, action.Ask, names.ASK)
        self._tracks = bystander.node.create_publisher(msg.TrackArray, names.TRACKS, qos.RECORD)
        self._texts = bystander.node.create_publisher(String, names.QUESTIONS, qos.RESULT)
        self.answers: list[str] = []
        bystander.node.create_subscription(
            String, names.ANSWERS, lambda text: self.answers.append(text.data), qos.RESULT
        )
        bystander.wait_until(self._client.server_is_ready)
        bystander.wait_until(
            lambda: self._tracks.get_subscription_count() and self._texts.get_subscription_count()
        )
        self.show()
        # Most of them; a busy node may lose some.
        bystander.wait_until(lambda: int(bystander.figure('questions', 'rows') or 0) >= 45)

    def show(self) -> None:
        """Publish decisions up to now."""
        now_ns = time.time_ns()
        people = [sighted(n, 1, n, standing(80.0 * n)) for n in (1, 2)]
        for step in range(round(10 * SECONDS)):
            stamp_ns = now_ns - round((SECONDS - step / 10) * NS_PER_S)
            seen = tuple(replace(one, position=one.position + step / 10) for one in people)
            decision = Decision(stamp_ns, stamp_ns, 'odom', seen, {CAMERA: stamp_ns})
            self._tracks.publish(to_track_array(decision))

    def send(self, question: str, deadline: float = 20.0, phases: list[str] | None = None) -> Any:
        """Send a goal; return its handle."""
        heard = [] if phases is None else phases
        goal = action.Ask.Goal(question=question, deadline=deadline)
        sent = self._client.send_goal_async(goal, lambda said: heard.append(said.feedback.phase))
        self._bystander.wait_until(sent.done)
        return sent.result()

    def result(self, handle: Any, phases: list[str] | None = None) -> Result:
        coming = handle.get_result_async()
        self._bystander.wait_until(coming.done)
        end = coming.result()
        return Result(end.status, end.result, phases or [])

    def ask(self, question: str, deadline: float = 20.0) -> Result:
        phases: list[str] = []
        return self.result(self.send(question, deadline, phases), phases)

    def say(self, question: str) -> str:
        """Ask as text; return the answer, without the line of the question."""
        line = ' '.join(question.split())
        self._texts.publish(String(data=question))
        found = self._bystander.wait_until(
            lambda: [text for text in self.answers if text.startswith(f'{line}\n')]
        )
        return str(found[0]).partition('\n')[2]


def decision_now() -> msg.TrackArray:
    now_ns = time.time_ns()
    track = sighted(7, 3, 0, standing())
    return to_track_array(Decision(now_ns, now_ns, 'odom', (track,), {}, published_ns=now_ns))


Started = Callable[..., AbstractContextManager[ProcessGroup]]


@pytest.fixture
def started(bystander: Bystander, tmp_path: Path) -> Started:
    """Starts the node by itself."""

    @contextmanager
    def start(**parameters: Any) -> Iterator[ProcessGroup]:
        nodes = [NodeDescription('questions', 'questions', parameters)]
        with ProcessGroup(nodes, tmp_path / 'logs', respawn=False) as group:
            bystander.group = group
            yield group
            assert group.watch() == []
            assert 'Traceback' not in group.last_words('questions', 99)

    return start


def test_a_count_is_answered_with_evidence_and_whatever_is_asked_the_node_lives(
    started: Started, bystander: Bystander
) -> None:
    with started() as group:
        asker = Asker(bystander)
        count = asker.ask(PEOPLE)
        assert count.status == GoalStatus.STATUS_SUCCEEDED
        assert count.phases == ['waiting']
        answer = count.answer
        assert answer.answer.startswith('2 ')
        assert answer.low <= 2.0 <= answer.high
        assert [(row.track, row.label) for row in answer.evidence] == [
            (1, 'person'),
            (2, 'person'),
        ]
        assert answer.evidence[0].begin == answer.begin
        assert (answer.refused, answer.source, answer.model, answer.model_refused) == (
            *('', 'tracks', '', ''),
        )
        assert math.isnan(answer.evidence[0].distance), 'nothing is known of the drone'

        for question, deadline, words in (
            ('$(touch /tmp/x); rm -rf / | sh', 9.0, 'not'),
            ("'; DROP TABLE items; --", 9.0, 'not'),
            ('x' * 1_000_000, 9.0, 'a question has 1 to 500 characters'),
            (PEOPLE, math.nan, 'name 0.1 to 600 s'),
        ):
            refused = asker.ask(question, deadline)
            assert refused.status == GoalStatus.STATUS_ABORTED, question[:40]
            assert words in refused.answer.refused
            assert refused.answer.answer == ''

        assert asker.say(f'  {PEOPLE} ').startswith('2 ')
        assert asker.say('what is love?').startswith('not answered: ')
        asker.say('y' * 490)
        assert list(group.pids) == ['questions']


def test_a_model_answers_and_describes_and_its_claim_ends_within_its_lease_when_it_dies(
    started: Started, bystander: Bystander
) -> None:
    node, sentences, demands = bystander.node, list[str](), list[msg.LatencyDemand]()
    node.create_subscription(
        String, names.DESCRIPTION, lambda m: sentences.append(m.data), qos.RECORD
    )
    node.create_subscription(msg.LatencyDemand, names.LATENCY_DEMAND, demands.append, qos.RECORD)
    tracks = node.create_publisher(msg.TrackArray, names.TRACKS, qos.RESULT)
    broken = decision_now()
    broken.tracks[0].pose.pose.position.x = math.nan
    says = Scripts([STREAM, answered('They walk together.', 2, 77), DONE])
    describing = {'describe.kinds': ['scene'], 'describe.total_limit': TOTAL}
    with short_folder() as folder, started(model=f'unix:{folder}/fake.sock', **describing):
        with listening(folder, says):
            asker = Asker(bystander)
            # Only now: the asker waits for a number of rows, and these rows would count too.
            node.create_timer(0.05, lambda: tracks.publish(decision_now()))
            node.create_timer(0.3, lambda: tracks.publish(broken))
            said = asker.ask(PEOPLE)
            # The last may be on its way when the answer is there.
            assert said.phases[:2] == ['waiting', 'encoding']
            assert said.phases[2:] in ([], ['decoding'])
            assert (said.answer.model, [*said.answer.model_tracks]) == ('They walk together.', [2])
            assert asker.say(PEOPLE).endswith('the model says: They walk together.')
            bystander.wait_until(lambda: len(demands) >= 2)
        died_ns = time.time_ns()
        bystander.wait_until(
            lambda: 'cannot be asked' in bystander.diagnostics['questions'].message
        )
        claimed, before = len(demands), len(bystander.told)
        bystander.wait_until(lambda: len(bystander.told) >= before + 3)
    assert sentences
    assert all('They walk together.' in sentence for sentence in sentences)
    assert (demands[0].source, demands[0].total_limit) == ('describing: scene', TOTAL)
    assert 0.0 < demands[0].decode_time < TOTAL
    # The fake ends after the sentence that it is at, and what was sent before that is on its way.
    assert len(demands) == claimed
    assert from_time(demands[-1].valid_until) < died_ns + 4 * NS_PER_S


def test_a_model_that_hangs_costs_no_answer_and_is_left_when_its_question_is_cancelled(
    started: Started, bystander: Bystander, tmp_path: Path
) -> None:
    opened, left = threading.Event(), threading.Event()

    def hang(connection: socket.socket, _: threading.Event) -> None:
        while connection.recv(1 << 20):
            opened.set()
        left.set()

    with listening(tmp_path, hang) as endpoint, started(model=f'unix:{endpoint.socket}'):
        asker = Asker(bystander)
        first = asker.send(PEOPLE)
        bystander.wait_until(opened.is_set)
        # The model has the first question; another one has its answer by its own deadline.
        begun = time.monotonic()
        second = asker.ask('how many cars were seen?', 1.0)
        waited = asker.ask(PEOPLE, 1.0)
        # What is kept to on a quiet machine is in docs/memory.md.
        assert time.monotonic() - begun < 4.0
        assert second.status == GoalStatus.STATUS_ABORTED
        assert waited.status == GoalStatus.STATUS_SUCCEEDED
        assert waited.answer.answer.startswith('2 ')
        assert waited.answer.model_refused == 'the model was busy with another question by then'
        assert not left.is_set()
        cancelling = first.cancel_goal_async()
        bystander.wait_until(cancelling.done)
        assert asker.result(first).status == GoalStatus.STATUS_CANCELED
        bystander.wait_until(left.is_set)
        cut_off = asker.ask(PEOPLE, 1.0)
        assert cut_off.answer.answer.startswith('2 ')
        assert 'cut off at the deadline' in cut_off.answer.model_refused
        assert cut_off.phases == ['waiting', 'encoding']
