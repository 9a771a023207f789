SELECT (SELECT count(*) FROM pg_stat_replication) AS "standbys", current_setting('synchronous_standby_names') AS "synchronous",
    current_setting('synchronous_commit') AS "commit",
    (SELECT count(*) FROM pg_stat_replication WHERE "sync_state" IN ('sync', 'quorum')) AS "waited_for",
    pg_has_role(current_user, 'pg_read_all_stats', 'USAGE') AS "sees_all"
