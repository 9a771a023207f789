SELECT count(*) FROM (SELECT FROM {inbox} WHERE "consumer" = $1::text LIMIT $2::bigint) AS counted
