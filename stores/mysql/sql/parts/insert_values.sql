-- One row of the insert. Times arrive as microseconds since 1970.
(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
    COALESCE(TIMESTAMPADD(MICROSECOND, ?, TIMESTAMP'1970-01-01 00:00:00'), TIMESTAMPADD(MICROSECOND, ?, UTC_TIMESTAMP(6))),
    TIMESTAMPADD(MICROSECOND, ?, TIMESTAMP'1970-01-01 00:00:00'), ?, ?)
