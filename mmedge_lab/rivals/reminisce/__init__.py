"""The parts of Reminisce, each beside the simplest thing that could do the same.

Crops of simulated scenes go in, rows with intervals come out. `bench` has all rows, `crop_encoder`
is the encoder that may be left early, and `galleries` asks.
"""
