"""Building the parts of the programs from the configuration."""
