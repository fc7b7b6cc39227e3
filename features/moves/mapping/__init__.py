"""Mapping between the rows of Heat's and those of Stoker's, which the moves of both directions share."""
