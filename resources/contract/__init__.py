"""The contract between a resource type and the conductor that runs its steps."""
