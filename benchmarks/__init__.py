"""What the paper did, as data, and the code that runs and reports it."""
