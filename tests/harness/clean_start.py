"""Clears the environment; to be imported before everything that reads it."""

from harness import environment

environment.clear()
