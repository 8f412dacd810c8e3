"""Between records of the core and ROS messages; topics and quality of service."""
