"""StarCraft II through burnysc2: features, strategies, endings; a stand-in of the game; a template.

The public names are those of `understudy.sc2`.
"""
