DELETE FROM {pause} WHERE paused_until <= {now}
