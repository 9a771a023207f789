UPDATE {audit} SET `changed` = {changed}, `outcome` = {outcome} WHERE `id` = {entry}
