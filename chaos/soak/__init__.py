"""A soak: some relays under a steady load for an hour, with random faults, watched for anything that grows."""
