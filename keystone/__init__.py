"""Credentials with which stacks act for their users at Keystone."""
