"""Following people through time: Kalman filter, data association, track life cycle."""
