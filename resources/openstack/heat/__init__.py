"""Resource types for the orchestration services of other regions and clouds."""
