-- Every change of membership or ownership first takes this row, so that they happen one after the other and take their
-- other locks in the same order.
SELECT 1 FROM {partition} WHERE `partition` = 0 FOR UPDATE
