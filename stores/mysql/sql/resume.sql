DELETE FROM {pause} WHERE `kind` = {kind} AND `name` = {name}
