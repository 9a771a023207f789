e.`seq`, e.`event_id`, e.`event_type`, e.`aggregate_type`, e.`aggregate_id`, e.`tenant_id`, e.`ordering_key`,
    {payload}, {payload_bytes}, e.`content_type`, {headers}, e.`attempts`, e.`queue` = 1,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', e.`occurred_at`), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', e.`created_at`),
    e.`status`, e.`partition`, e.`handler`, e.`replays`, e.`locked_by`, {bytes_if_too_large}
