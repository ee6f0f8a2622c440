"""Screens: matches in the terminal and as pictures, curves of training, family trees."""
