DELETE FROM {audit} WHERE `id` IN ({ids})
