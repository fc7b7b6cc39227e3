"""Moves stacks from Stoker's database into Heat's, without a call of any service that changes the cloud."""
