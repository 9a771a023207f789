-- One row with the columns of identify.sql, if the tally of the transaction is $1 and it has deleted no event; none otherwise. What the
-- session has deleted in the second before counts as well, until the server has passed that on. It names no table, so that the server plans next to nothing, on a connection that is about to commit.
SELECT 0::bigint AS "seq", '' AS "event_id", NULL AS "handler"
WHERE current_setting('{tally}', true) = $1 AND current_setting('track_counts') = 'on'
  AND pg_stat_get_xact_tuples_deleted('{event}'::regclass) = 0
