"""Agents outside of their run: loaded by name, or written as a file that needs NumPy alone."""
