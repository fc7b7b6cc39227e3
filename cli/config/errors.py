"""The error of a configuration that cannot be used."""


class WrongConfiguration(Exception):
    """The configuration cannot be used; the text says which option, and what would be right."""
