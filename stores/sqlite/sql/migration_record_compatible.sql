INSERT INTO {migration} (version, applied_at, compatible_from) VALUES ({version}, {now}, {compatible_from});
