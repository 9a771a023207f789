-- What was given up, for operators: they list, count, replay and discard it, however much else the table keeps.
CREATE INDEX {dead_index} ON {event} ("seq") WHERE "status" = 3;
