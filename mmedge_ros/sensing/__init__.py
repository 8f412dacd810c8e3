"""From sensor messages and raw bytes to arrays."""
