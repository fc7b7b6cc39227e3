"""Rows, transactions and the schema: all that is stored."""
