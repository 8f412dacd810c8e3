"""Opens the two ports of a radar on this machine."""

from __future__ import annotations

from serial.tools import list_ports

from mmedge_ros.sensing.radar.serial_discovery import RadarPorts, find_radar_ports
from mmedge_ros.sensing.radar.serial_link import SerialLink, SerialPort
from mmedge_ros.sensing.radar.source import Connect, RadarParameters


def serial_connection(p: RadarParameters) -> Connect:
    """Return what opens command and data port, now and after each loss.

    Ports that are not named are looked for each time: a board that was plugged in anew may
    have other ones.
    """

    def connect() -> tuple[SerialLink, SerialLink]:
        ports = RadarPorts(p.command_port, p.data_port)
        if not all(ports):
            found = find_radar_ports(list_ports.comports(), p.serial_number)
            ports = RadarPorts(ports.command or found.command, ports.data or found.data)
        command = SerialPort(ports.command, p.command_baud)
        try:
            return command, SerialPort(ports.data, p.data_baud)
        except BaseException:
            command.close()
            raise

    return connect
