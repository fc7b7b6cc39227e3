"""Views: the contents of replies, in Heat's shapes."""
