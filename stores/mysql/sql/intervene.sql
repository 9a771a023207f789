-- One row counts for the whole table, so that two operators never wait for each other in a circle.
UPDATE {partition} SET `interventions` = `interventions` + 1 WHERE `partition` = 0
