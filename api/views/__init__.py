"""Views: what replies show, in Heat's shapes."""
