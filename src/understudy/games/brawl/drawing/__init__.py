"""Brawl as pictures: what each frame of a match looks like, as plain shapes."""
