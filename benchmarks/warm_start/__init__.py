"""A small policy for machines without a GPU, taught by demonstrations before any reinforcement learning."""
