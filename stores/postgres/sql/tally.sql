-- One row with the columns of identify.sql, if the tally of the transaction is $1 and it has deleted no event since its first write; none
-- otherwise. It names no table, so that the server plans next to nothing, on a connection that is about to commit.
SELECT 0::bigint AS "seq", '' AS "event_id", NULL AS "handler"
WHERE current_setting('{tally}', true) = concat($1, ' ', pg_stat_get_xact_tuples_deleted('{event}'::regclass))
  AND current_setting('track_counts') = 'on'
