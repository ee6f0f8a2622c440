"""Drawings of brawl: scenes of plain shapes (`scene`), fighters, and a whole match (`match`)."""
