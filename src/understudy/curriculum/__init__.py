"""Stages with criteria: easy opponents first, then harder ones, by evidence. Pure."""
