"""Steps of claimed tasks: their input, their calls, and their results."""
