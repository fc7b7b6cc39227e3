"""The programs of Stoker, and how they are put together."""
