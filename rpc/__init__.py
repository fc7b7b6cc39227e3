"""Messages between Stoker's processes, and notifications for others."""
