"""Answers the actions of Amazon's CloudFormation API."""
