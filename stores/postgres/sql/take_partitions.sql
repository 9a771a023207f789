UPDATE {partition} SET "node_id" = $1::text, "epoch" = (SELECT max("epoch") + 1 FROM {partition})
