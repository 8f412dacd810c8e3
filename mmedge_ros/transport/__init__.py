"""Pictures between processes: a ring in shared memory, without ROS.

Reserved: no module yet.
"""
