-- The position of each row by the place of its number in a list; NULL for a row that is not in it.
, `delivered_as` = ELT(FIELD(`seq`, {placed}), {positions})
