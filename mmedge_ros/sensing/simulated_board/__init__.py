"""A radar board without hardware, on two pseudo-terminals."""
