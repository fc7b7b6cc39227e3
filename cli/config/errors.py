"""The error of a configuration that cannot be used."""


class WrongConfiguration(Exception):
    """The configuration cannot be used; the text names the option, and a right value."""
