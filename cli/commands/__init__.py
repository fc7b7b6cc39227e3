"""The commands of ``stoker-manage``."""
