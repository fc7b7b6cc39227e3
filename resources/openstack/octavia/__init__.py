"""Resource types of the load balancing service."""
