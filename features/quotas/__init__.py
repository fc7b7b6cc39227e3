"""Shows and changes the quotas of projects."""
