-- One row counts for the whole table.
UPDATE {partition} SET interventions = interventions + 1 WHERE partition = 0
