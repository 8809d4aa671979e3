"""Synthetic tables from a generator that is trained against a critic, with bounds on what the critic learns of a record."""
