"""The use cases, asked for by users, steps and duties: each commits a transaction, then sends hints."""
