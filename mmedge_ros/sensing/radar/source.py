"""A TI mmWave radar on two serial ports: configured, read, and found again when it was lost."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass

from serial.tools import list_ports

from mmedge_ros.core.clock import Clock
from mmedge_ros.core.data_types import NS_PER_S, RADAR, Configuration, SkipDecision
from mmedge_ros.core.parameter import parameter
from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.capture_control import Admission, CaptureControl, LatestQueue
from mmedge_ros.sensing.radar.chirp_commands import BoardVersion
from mmedge_ros.sensing.radar.chirp_configuration import (
    ChirpConfiguration,
    configuration_for,
    read_configuration,
)
from mmedge_ros.sensing.radar.handshake import (
    CommandLine,
    send_configuration,
    start_board,
    stop_sensor,
)
from mmedge_ros.sensing.radar.scan import RadarScan, ScanMaker
from mmedge_ros.sensing.radar.serial_ports import (
    RadarPorts,
    SerialLink,
    SerialPort,
    find_radar_ports,
)
from mmedge_ros.sensing.radar.tlv_packet import TlvPacket
from mmedge_ros.sensing.radar.tlv_parser import TlvParser

DECIMATION = 'decimation'
RESTART = 'restart'

# Opening a port that is not there costs nothing, so a board that is back is found soon.
_RETRY = 0.25
# Without a packet for so many frames, and at least so long, the radar has fallen silent.
_SILENT_FRAMES = 3.0
_SHORTEST_SILENCE = 0.5
# The first frame after the start may take longer.
_FIRST_SILENCE = 2.0
# A packet whose end nothing proves is taken as whole when nothing comes for so long.
_QUIET = 0.01
# Old bytes are read away before the start, but not for ever.
_DRAINING = 0.5
# Periods that differ by less are the same.
_SAME_PERIOD = 0.01
_JOINING = 1.5
# Start, eight of data, stop.
_BITS_PER_BYTE = 10.0


@dataclass(frozen=True)
class RadarParameters:
    """Which radar is used, and how."""

    configuration: str = parameter(
        '', 'chirp configuration (.cfg); empty takes the shipped one for the board that answers'
    )
    command_port: str = parameter('', 'port of the command line; empty finds it by its USB id')
    data_port: str = parameter('', 'port of the data; empty finds it by its USB id')
    serial_number: str = parameter(
        '', "serial number of the board's USB bridge, where several are plugged in"
    )
    # Speed of the command port (baud).
    command_baud: int = 115200
    data_baud: int = parameter(921600, 'speed of the data port', 'baud', 9600, 3_250_000)
    answer_time: float = parameter(
        1.0, 'how long the board may take to answer a command', 's', 0.05, 30.0
    )
    rate_by: str = parameter(
        DECIMATION,
        'how a lower rate is reached: by leaving out frames, or by restarting the sensor with a '
        'longer frame period, which costs a gap of about a second but saves power',
        choices=(DECIMATION, RESTART),
    )
    queue: int = 4  # scans that may wait; when full the oldest is dropped and counted


Connect = Callable[[], tuple[SerialLink, SerialLink]]


class RadarSource:
    """Runs a radar in a thread of its own; `take` hands out its scans.

    Whatever fails is reported in one sentence (`missing`) and tried again until it works.

    :param connect: opens command and data port
    :param on_event: called with sentences from the reading thread
    :raises SensingError: if the named configuration cannot be used
    """

    def __init__(
        self,
        p: RadarParameters,
        clock: Clock,
        connect: Connect,
        on_event: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.version = BoardVersion()
        self.connections = 0
        self.taken = self.thinned = self.skipped = 0
        self.scans: LatestQueue[RadarScan] = LatestQueue(p.queue)
        self._p = p
        self._clock = clock
        self._connect = connect
        self._on_event = on_event
        self._named = read_configuration(p.configuration) if p.configuration else None
        self._control = CaptureControl(RADAR)
        self._lock = threading.Lock()
        self._parser = TlvParser(live=True)
        self._maker: ScanMaker | None = None
        self._base: ChirpConfiguration | None = None
        self._said: set[str] = set()
        self._problem = 'the radar is not connected yet'
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name='radar', daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self.scans.close()
        if self._thread.is_alive():
            self._thread.join(_JOINING)

    def take(self, timeout: float) -> RadarScan | None:
        """Return the next scan; None if none comes within ``timeout`` s."""
        return self.scans.take(timeout)

    def configure(self, configuration: Configuration) -> None:
        """Take scans at the rate of a configuration from the instant it takes effect."""
        with self._lock:
            self._control.schedule.add(configuration)

    def lease(self, skip: SkipDecision) -> None:
        with self._lock:
            self._control.lease(skip)

    def missing(self) -> list[str]:
        """Say what is wrong with the radar at present."""
        return [self._problem] if self._problem else []

    def is_failing(self) -> bool:
        return bool(self._problem)

    def figures(self) -> dict[str, object]:
        counts = asdict(self._maker.counts) if self._maker else {}
        period = self._maker.configuration.period if self._maker else 0.0
        return {
            'board': str(self.version),
            'configuration': self._maker.configuration.source if self._maker else '',
            'frame period (ms)': f'{1e3 * period:g}',
            'connections': self.connections,
            **counts,
            'packets_damaged': self._parser.damaged,
            'bytes_thrown_away': self._parser.bytes_thrown_away,
            'transferred': self.taken,
            'thinned': self.thinned,
            'skipped': self.skipped,
            'dropped': self.scans.dropped,
        }

    # ------------------------------------------------------------------ the reading thread

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                self._session()
            except SensingError as error:
                self._fail(str(error))
            self._ended.wait(_RETRY)

    def _session(self) -> None:
        """Connect, configure, and read until something fails."""
        command, data = self._connect()
        with contextlib.closing(command), contextlib.closing(data):
            line = CommandLine(command, self._clock, self._p.answer_time)
            self._parser.finish()
            self.version, configuration = start_board(
                line, self._choose, lambda: self._drain(data)
            )
            maker = self._use(configuration)
            self.connections += 1
            try:
                self._read(line, data, maker)
            finally:
                if self._ended.is_set():
                    with contextlib.suppress(SensingError):
                        line.send('sensorStop')

    def _choose(self, version: BoardVersion) -> ChirpConfiguration:
        self._base = self._named or configuration_for(version)
        for warning in self._base.warnings:
            self._say_once(warning)
        return self._at_wanted_period(self._base)

    def _use(self, configuration: ChirpConfiguration) -> ScanMaker:
        if self._maker is None:
            self._maker = ScanMaker(configuration, self._p.data_baud / _BITS_PER_BYTE)
        else:
            self._maker.reconfigure(configuration)
        return self._maker

    def _drain(self, data: SerialLink) -> None:
        """Throw away what a running sensor had sent before it was stopped."""
        deadline_ns = self._clock.monotonic_ns() + round(_DRAINING * NS_PER_S)
        while data.read() and self._clock.monotonic_ns() < deadline_ns:
            pass

    def _read(self, line: CommandLine, data: SerialLink, maker: ScanMaker) -> None:
        heard_ns = self._clock.monotonic_ns()
        received, silence = self._parser.bytes_received, _FIRST_SILENCE
        arrived_ns = self._clock.now_ns()
        while not self._ended.is_set():
            if piece := data.read():
                arrived_ns = self._clock.now_ns()
            packets = self._parser.feed(piece) if piece else self._parser.settle()
            for packet in packets:
                self._deliver(maker, packet, arrived_ns)
            if packets:
                heard_ns, received = self._clock.monotonic_ns(), self._parser.bytes_received
                silence = max(_SHORTEST_SILENCE, _SILENT_FRAMES * maker.configuration.period)
                self._recover(maker.configuration)
                if self._change_period(line, maker.configuration):
                    heard_ns, silence = self._clock.monotonic_ns(), _FIRST_SILENCE
            elif self._clock.monotonic_ns() - heard_ns > silence * NS_PER_S:
                raise SensingError(_silence(data.name, self._parser.bytes_received - received))

    def _deliver(self, maker: ScanMaker, packet: TlvPacket, now_ns: int) -> None:
        scan = maker.make(packet, now_ns)
        if scan is None:
            return
        with self._lock:
            verdict = self._control.admit(scan.stamp_ns, now_ns)
        self.thinned += verdict is Admission.THINNED
        self.skipped += verdict is Admission.SKIPPED
        if verdict is Admission.TAKE:
            self.taken += 1
            self.scans.put(scan)

    def _change_period(self, line: CommandLine, present: ChirpConfiguration) -> bool:
        """Restart the sensor if its frame period is to be another one, and say whether it was."""
        if self._p.rate_by != RESTART or self._base is None:
            return False
        wanted = self._at_wanted_period(self._base)
        if abs(wanted.period - present.period) <= _SAME_PERIOD * present.period:
            return False
        self._on_event(
            f'{line.name}: restarting the sensor with a frame period of {1e3 * wanted.period:g} '
            f'ms instead of {1e3 * present.period:g}; scans pause for a moment'
        )
        stop_sensor(line)
        send_configuration(line, wanted)
        self._use(wanted)
        return True

    def _at_wanted_period(self, configuration: ChirpConfiguration) -> ChirpConfiguration:
        """Return the configuration with the frame period for the present rate."""
        if self._p.rate_by != RESTART:
            return configuration
        with self._lock:
            rate = self._control.schedule.at(self._clock.now_ns()).of(RADAR).rate
        # A rate is an upper bound: the configuration's own period is the shortest.
        if not 0.0 < rate * configuration.period < 1.0 - _SAME_PERIOD:
            return configuration
        try:
            return configuration.with_period(1.0 / rate)
        except SensingError as error:
            self._say_once(f'{error}; leaving out frames instead')
            return configuration

    def _fail(self, problem: str) -> None:
        """Note what is wrong, and say it when it is news."""
        if problem != self._problem:
            self._problem = problem
            self._on_event(f'{problem} (trying again)')

    def _recover(self, configuration: ChirpConfiguration) -> None:
        if self._problem:
            self._problem = ''
            self._on_event(
                f'the radar sends frames: {self.version}, {configuration.source}, every '
                f'{1e3 * configuration.period:g} ms'
            )

    def _say_once(self, sentence: str) -> None:
        if sentence not in self._said:
            self._said.add(sentence)
            self._on_event(sentence)


def _silence(name: str, received: int) -> str:
    """Say what is wrong with a data port that brings no packets."""
    if received:
        return (
            f'{name}: {received} bytes but no packet; is it the data port, and does its speed '
            'agree with the board?'
        )
    return f'{name}: the radar has fallen silent; has it lost power?'


def serial_connection(p: RadarParameters) -> Connect:
    """Return what opens command and data port, now and after each loss.

    Ports that are not named are looked for each time: a board that was plugged in anew may
    have other ones.
    """

    def connect() -> tuple[SerialLink, SerialLink]:
        ports = RadarPorts(p.command_port, p.data_port)
        if not all(ports):
            detected = find_radar_ports(list_ports.comports(), p.serial_number)
            ports = RadarPorts(ports.command or detected.command, ports.data or detected.data)
        command = SerialPort(ports.command, p.command_baud)
        try:
            return command, SerialPort(ports.data, p.data_baud, _QUIET)
        except BaseException:
            command.close()
            raise

    return connect
