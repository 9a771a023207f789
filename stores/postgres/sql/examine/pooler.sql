SELECT coalesce(current_setting('{examination}', true), '') = 'on'
