"""Parts of the flight memory's paper (Reminisce), each beside its control."""
