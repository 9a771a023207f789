DELETE FROM {pause} WHERE `paused_until` <= UTC_TIMESTAMP(6)
