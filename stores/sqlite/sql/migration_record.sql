INSERT INTO {migration} (version, applied_at) VALUES ({version}, {now});
