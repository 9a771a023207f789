SELECT `id`, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', `began_at`), `who`, `action`, `subject`, `changed`, `outcome`
FROM {audit} WHERE `id` < {below} ORDER BY `id` DESC LIMIT {limit}
