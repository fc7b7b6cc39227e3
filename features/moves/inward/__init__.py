"""Moves stacks from Heat into Stoker, by Heat's database or its API, without a change of the cloud."""
