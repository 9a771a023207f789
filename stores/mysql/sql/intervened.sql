-- How often operators have intervened.
SELECT `interventions` FROM {partition} WHERE `partition` = 0
