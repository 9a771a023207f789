DELETE FROM {inbox} WHERE `consumer` = {consumer} AND `message_id` IN ({ids})
