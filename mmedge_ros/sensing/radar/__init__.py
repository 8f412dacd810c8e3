"""TI mmWave radars: configuration, serial ports, packets and scans."""
