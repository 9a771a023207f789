-- The position at which the receiver has the delivered event, such as TOPIC/PARTITION/OFFSET. NULL unless the handler has reported one.
ALTER TABLE {event} ADD COLUMN delivered_as TEXT;
