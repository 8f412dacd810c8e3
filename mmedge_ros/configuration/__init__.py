"""Choosing sensing rates and model levels: what is possible, how long it takes, what is best."""
