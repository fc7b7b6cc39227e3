"""Steps of claimed tasks: what they are given, what they call, and what they store."""
