"""What never flies: simulated flights, judging, policies, training and rivals."""
