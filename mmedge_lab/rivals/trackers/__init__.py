"""Other trackers beside ours, on the same detections."""
