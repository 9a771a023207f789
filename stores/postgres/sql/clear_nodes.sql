-- What a node owned beyond its row is freed by the statements that follow this one in the same transaction.
DELETE FROM {node} WHERE "expires_at" <= clock_timestamp() RETURNING 1
