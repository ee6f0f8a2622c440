"""A stand-in of the tournament's package `environment`: its interface, over rules of our own."""
