SELECT MIN(`seq`) FROM {event} FORCE INDEX (`pillarbox_heads`) WHERE `head` IS NOT NULL AND `seq` > {above}
