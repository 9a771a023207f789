SELECT compatible_from FROM {migration} ORDER BY version DESC LIMIT 1
