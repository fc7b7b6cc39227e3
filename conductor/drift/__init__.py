"""The observation of stacks: what of them is gone from the cloud, or differs from their templates."""
