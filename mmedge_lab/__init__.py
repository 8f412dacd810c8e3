"""What never flies: reports, simulation, evaluation, training and comparison."""
