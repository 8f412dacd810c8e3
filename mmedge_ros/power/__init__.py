"""What perception may spend, by the battery: states of power, and what each allows."""
