"""Compares what an action would make with the cloud of the caller, before anything is begun."""
