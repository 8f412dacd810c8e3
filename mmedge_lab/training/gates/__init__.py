"""What a gate is worth: closed-loop replays, certificates and their report."""
