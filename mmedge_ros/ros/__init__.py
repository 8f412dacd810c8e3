"""The only place where ROS is known: conversions, parameters, quality of service, nodes."""
